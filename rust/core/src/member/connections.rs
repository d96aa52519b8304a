//! The member's connections and the requests that are unanswered on them.
//!
//! A broker answers the requests of a connection in their order, so a frame may answer only the oldest unanswered request. Any
//! other frame means that the two sides no longer agree where frames begin, and the connection is closed.

use super::event::Role;
use crate::protocol::writer::WriteError;
use crate::protocol::{ApiKey, Body, FrameError, RequestHeader, write_request};
use std::collections::{BTreeMap, VecDeque};

/// Member id and generation at the time of a request. The answer to the request changes nothing in another generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) member_id: String,
    pub(super) generation: i32,
}

/// A request that waits for its answer.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) header: RequestHeader,
    pub(super) stamp: Stamp,
    pub(super) sent_at: u64,
    pub(super) deadline: u64,
}

/// Why a connection must be closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken(pub(super) String);

impl From<FrameError> for Broken {
    fn from(error: FrameError) -> Self {
        Self(error.to_string())
    }
}

#[derive(Debug)]
enum ConnectionState {
    Connecting { deadline: u64 },
    Open { versions: BTreeMap<i16, (i16, i16)> },
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) role: Role,
    state: ConnectionState,
    pending: VecDeque<Pending>,
    muted_until: u64,
    /// Whether the connection is closed as soon as all its requests are answered.
    pub(super) retiring: bool,
}

impl Connection {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, ConnectionState::Open { .. })
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn awaits(&self, api: ApiKey) -> bool {
        self.pending.iter().any(|pending| pending.header.api == api)
    }

    /// Whether a request may be sent now.
    pub(super) fn may_send(&self, now: u64) -> bool {
        self.is_open() && !self.retiring && now >= self.muted_until
    }

    pub(super) fn open(&mut self, versions: BTreeMap<i16, (i16, i16)>) {
        self.state = ConnectionState::Open { versions };
    }

    /// The newest version that both sides speak, up to `most`.
    pub(super) fn version(&self, api: ApiKey, most: i16) -> Option<i16> {
        let ConnectionState::Open { versions } = &self.state else { return None };
        let &(theirs_least, theirs_most) = versions.get(&api.code())?;
        let (least, ours_most) = api.versions();
        let version = theirs_most.min(ours_most).min(most);
        (version >= least.max(theirs_least)).then_some(version)
    }

    /// Sends no request for the broker's throttle time (KIP-219: the client must wait), at most for `most`.
    pub(super) fn throttle(&mut self, now: u64, throttle_time_ms: i32, most: u64) {
        let wait = u64::try_from(throttle_time_ms).unwrap_or(0).min(most);
        self.muted_until = self.muted_until.max(now + wait);
    }

    /// Takes the request that the next frame answers.
    pub(super) fn next_pending(&mut self) -> Option<Pending> {
        self.pending.pop_front()
    }

    /// The requests that wait for their answers.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = &Pending> {
        self.pending.iter()
    }

    /// The time at which the handshake, or the first of the requests, times out.
    pub(super) fn deadline(&self) -> Option<u64> {
        match self.state {
            ConnectionState::Connecting { deadline } => Some(deadline),
            ConnectionState::Open { .. } => self.pending.iter().map(|pending| pending.deadline).min(),
        }
    }

    pub(super) fn muted_until(&self) -> u64 {
        self.muted_until
    }
}

/// All connections of a member.
#[derive(Debug, Default)]
pub(super) struct Connections {
    by_id: BTreeMap<u64, Connection>,
    last_conn: u64,
    last_correlation: i32,
}

impl Connections {
    pub(super) fn begin(&mut self, role: Role, deadline: u64) -> u64 {
        self.last_conn += 1;
        let connection = Connection {
            role,
            state: ConnectionState::Connecting { deadline },
            pending: VecDeque::new(),
            muted_until: 0,
            retiring: false,
        };
        self.by_id.insert(self.last_conn, connection);
        self.last_conn
    }

    pub(super) fn get(&self, conn: u64) -> Option<&Connection> {
        self.by_id.get(&conn)
    }

    pub(super) fn get_mut(&mut self, conn: u64) -> Option<&mut Connection> {
        self.by_id.get_mut(&conn)
    }

    pub(super) fn remove(&mut self, conn: u64) -> Option<Connection> {
        self.by_id.remove(&conn)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Connection)> {
        self.by_id.iter().map(|(&conn, connection)| (conn, connection))
    }

    /// The connections for which `is` holds.
    pub(super) fn which(&self, is: impl Fn(&Connection) -> bool) -> Vec<u64> {
        self.iter().filter(|(_, connection)| is(connection)).map(|(conn, _)| conn).collect()
    }

    pub(super) fn with_role(&self, role: Role) -> Option<(u64, &Connection)> {
        self.iter().find(|(_, connection)| connection.role == role)
    }

    /// The frame of a request, with its length. From now on the request counts as unanswered.
    pub(super) fn ask<B: Body>(
        &mut self,
        conn: u64,
        version: i16,
        client_id: Option<&str>,
        body: &B,
        (stamp, sent_at, deadline): (Stamp, u64, u64),
    ) -> Result<Vec<u8>, WriteError> {
        self.last_correlation = self.last_correlation.wrapping_add(1) & i32::MAX;
        let header = RequestHeader {
            api: B::KEY,
            version,
            correlation_id: self.last_correlation,
            client_id: client_id.map(str::to_owned),
        };
        let frame = write_request(&header, body)?;
        let length = i32::try_from(frame.len())
            .map_err(|_| WriteError::LongArray { what: "the request", length: frame.len() })?;
        let mut bytes = Vec::with_capacity(frame.len() + 4);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&frame);
        if let Some(connection) = self.by_id.get_mut(&conn) {
            connection.pending.push_back(Pending { header, stamp, sent_at, deadline });
        }
        Ok(bytes)
    }
}
