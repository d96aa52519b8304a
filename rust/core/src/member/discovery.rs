//! The addresses of the brokers, the group's coordinator, and the times of the next searches for them.

use super::backoff::{Backoff, Jitter};
use crate::protocol::ErrorCode;
use crate::protocol::cluster::MetadataBroker;

/// Newer versions ask for several groups at once.
pub(super) const FIND_COORDINATOR: i16 = 3;

/// A broker's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) node_id: i32,
    pub(super) host: String,
    pub(super) port: i32,
}

/// The brokers, the coordinator, and the back-offs of the searches for them.
#[derive(Debug)]
pub(super) struct Discovery {
    pub(super) coordinator: Option<Address>,
    pub(super) backoff: Backoff,
    pub(super) bootstrap_backoff: Backoff,
    pub(super) offsets_not_before: u64,
    /// As Metadata last named them.
    brokers: Vec<Address>,
    /// The number of the next broker to ask, modulo the number of named brokers and bootstrap servers.
    turn: usize,
    /// Whether Metadata must be asked for again because its brokers may be gone.
    pub(super) brokers_stale: bool,
}

impl Discovery {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            coordinator: None,
            bootstrap_backoff: backoff.clone(),
            backoff,
            offsets_not_before: 0,
            brokers: Vec::new(),
            turn: 0,
            brokers_stale: true,
        }
    }

    /// The brokers that Metadata names.
    pub(super) fn learn(&mut self, brokers: Vec<MetadataBroker>) {
        self.brokers_stale = false;
        if !brokers.is_empty() {
            let address =
                |broker: MetadataBroker| Address { node_id: broker.node_id, host: broker.host, port: broker.port };
            self.brokers = brokers.into_iter().map(address).collect();
        }
    }

    /// The broker whose turn it is: first those that Metadata named, then the bootstrap servers, of which there is at least one.
    pub(super) fn next_broker(&self, bootstrap: &[(String, i32)]) -> Address {
        let at = self.turn % (self.brokers.len() + bootstrap.len());
        self.brokers.get(at).cloned().unwrap_or_else(|| {
            let (host, port) = bootstrap[at - self.brokers.len()].clone();
            Address { node_id: -1, host, port }
        })
    }

    pub(super) fn failed(&mut self, now: u64, jitter: &mut Jitter) {
        self.backoff.failed(now, jitter);
    }

    /// The coordinator has served a request: the next failure begins with the shortest back-off again.
    pub(super) fn succeeded(&mut self) {
        self.backoff.succeeded();
    }

    pub(super) fn bootstrap_lost(&mut self, now: u64, quiet: bool, jitter: &mut Jitter) {
        self.turn = self.turn.wrapping_add(1);
        if !quiet {
            self.bootstrap_backoff.failed(now, jitter);
        }
    }

    pub(super) fn offsets_lost(&mut self, now: u64, quiet: bool, jitter: &mut Jitter) {
        if !quiet {
            self.backoff.failed(now, jitter);
            self.offsets_not_before = self.backoff.not_before();
        }
    }

    pub(super) fn deadlines(&self) -> [Option<u64>; 3] {
        [Some(self.backoff.not_before()), Some(self.bootstrap_backoff.not_before()), Some(self.offsets_not_before)]
    }
}

/// The state of the connection to any broker.
pub(super) enum Bootstrap {
    /// A request may be sent on it now.
    Ready(u64),
    /// The connection has just been begun.
    Begun,
    /// The connection is not open yet, is throttled, or must not be begun before a back-off is over.
    Waits,
}

/// Whether every repetition of the request would fail too.
pub(super) fn is_fatal(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::GROUP_AUTHORIZATION_FAILED
            | ErrorCode::CLUSTER_AUTHORIZATION_FAILED
            | ErrorCode::INVALID_GROUP_ID
            | ErrorCode::UNSUPPORTED_VERSION
            | ErrorCode::SASL_AUTHENTICATION_FAILED
            | ErrorCode::UNSUPPORTED_SASL_MECHANISM
            | ErrorCode::ILLEGAL_SASL_STATE
            | ErrorCode::INVALID_REQUEST
    )
}
