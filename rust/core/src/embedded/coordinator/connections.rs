//! The unanswered requests, and the responses.
//!
//! A broker serves one request of a connection at a time. Requests after an unanswered JoinGroup or SyncGroup wait.

use super::request::Request;
use crate::protocol::{Body, RequestHeader, write_response};
use std::collections::{BTreeMap, VecDeque};

/// A response for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The caller's number of the connection.
    pub connection: u64,
    /// The frame without its length: header and body.
    pub frame: Vec<u8>,
}

/// The right to answer one request. It is not `Copy`, and [`Connections::answer`] consumes it: no request is answered
/// twice.
#[derive(Debug)]
pub(super) struct Ticket {
    connection: u64,
    /// Distinguishes a connection from a later one with the same number.
    serial: u64,
    pub(super) header: RequestHeader,
}

impl Ticket {
    pub(super) fn version(&self) -> i16 {
        self.header.version
    }

    pub(super) fn client_id(&self) -> &str {
        self.header.client_id.as_deref().unwrap_or_default()
    }
}

#[derive(Debug)]
struct Connection {
    /// The serial of the request in service.
    serial: u64,
    waiting: VecDeque<(RequestHeader, Request)>,
}

/// The connections with an unanswered request, and the responses for the caller.
#[derive(Debug, Default)]
pub(super) struct Connections {
    busy: BTreeMap<u64, Connection>,
    /// Requests that may be served now.
    ready: VecDeque<(Ticket, Request)>,
    replies: Vec<Reply>,
    last_serial: u64,
}

impl Connections {
    /// Adds a request. It is ready when the earlier requests of its connection are answered.
    pub(super) fn accept(&mut self, connection: u64, header: RequestHeader, request: Request) {
        if let Some(busy) = self.busy.get_mut(&connection) {
            busy.waiting.push_back((header, request));
            return;
        }
        self.last_serial += 1;
        let serial = self.last_serial;
        self.busy.insert(connection, Connection { serial, waiting: VecDeque::new() });
        self.ready.push_back((Ticket { connection, serial, header }, request));
    }

    /// The next request to serve.
    pub(super) fn next(&mut self) -> Option<(Ticket, Request)> {
        self.ready.pop_front()
    }

    /// Answers a request. No effect if its connection was closed.
    pub(super) fn answer<B: Body>(&mut self, ticket: Ticket, body: &B) {
        let Ticket { connection, serial, header } = ticket;
        let Some(busy) = self.busy.get_mut(&connection).filter(|busy| busy.serial == serial) else { return };
        let frame = write_response(&header, body);
        // Writing cannot fail: every string and array of a response was part of a request, or is bounded, as in
        // `MemberIds`.
        debug_assert!(frame.is_ok(), "{frame:?}");
        self.replies.push(Reply { connection, frame: frame.unwrap_or_default() });
        match busy.waiting.pop_front() {
            Some((header, request)) => {
                self.last_serial += 1;
                busy.serial = self.last_serial;
                self.ready.push_back((Ticket { connection, serial: busy.serial, header }, request));
            }
            None => {
                self.busy.remove(&connection);
            }
        }
    }

    /// Removes a connection and its waiting requests. The answer to its request in service is dropped.
    pub(super) fn forget(&mut self, connection: u64) {
        self.busy.remove(&connection);
    }

    /// Whether a request of the connection is unanswered.
    pub(super) fn is_busy(&self, connection: u64) -> bool {
        self.busy.contains_key(&connection)
    }

    /// The responses since the last call.
    pub(super) fn take_replies(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.replies)
    }
}
