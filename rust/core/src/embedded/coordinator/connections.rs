//! Requests under way and their answers.
//!
//! A broker serves one request of a connection at a time: what comes behind a parked JoinGroup or SyncGroup waits.

use super::request::Request;
use crate::protocol::{Body, RequestHeader, write_response};
use std::collections::{BTreeMap, VecDeque};

/// The bytes for a connection: a response frame, without the length in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The number that the caller gave the connection.
    pub connection: u64,
    /// Header and body.
    pub frame: Vec<u8>,
}

/// The right to answer one request. Not `Copy`, and [`Connections::answer`] takes it: no request is answered twice.
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
    /// Of the request being served.
    serial: u64,
    waiting: VecDeque<(RequestHeader, Request)>,
}

/// The connections that have a request under way, and the answers not yet handed to the caller.
#[derive(Debug, Default)]
pub(super) struct Connections {
    busy: BTreeMap<u64, Connection>,
    /// Requests that may be served now.
    ready: VecDeque<(Ticket, Request)>,
    replies: Vec<Reply>,
    last_serial: u64,
}

impl Connections {
    /// Takes a request in: it is ready at once, or when the requests before it on its connection are answered.
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

    /// Answers a request; nothing happens when its connection is gone.
    pub(super) fn answer<B: Body>(&mut self, ticket: Ticket, body: &B) {
        let Ticket { connection, serial, header } = ticket;
        let Some(busy) = self.busy.get_mut(&connection).filter(|busy| busy.serial == serial) else { return };
        let frame = write_response(&header, body);
        // Every string and every array of an answer came in with a request, or is bounded as `MemberIds` does.
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

    /// Forgets a connection, the requests behind its pending one, and where to send the answer of that one.
    pub(super) fn forget(&mut self, connection: u64) {
        self.busy.remove(&connection);
    }

    /// Whether a request of the connection is unanswered.
    pub(super) fn is_busy(&self, connection: u64) -> bool {
        self.busy.contains_key(&connection)
    }

    /// The answers given since the last call.
    pub(super) fn take_replies(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.replies)
    }
}
