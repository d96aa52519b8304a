//! Connections as the member sees them: requests out, frames in, each answered in its turn.
//!
//! A broker answers the requests of a connection in their order, so the oldest unanswered request is the only one that a
//! frame may answer. Anything else means that the two sides no longer agree where frames begin: the connection is closed.

use super::event::Role;
use crate::protocol::{ApiKey, Body, FrameError, RequestHeader, write_request};
use crate::wire::writer::WriteError;
use std::collections::{BTreeMap, VecDeque};

/// Who the member was when it asked. An answer to somebody it no longer is must change nothing.
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
enum State {
    Connecting { deadline: u64 },
    Open { versions: BTreeMap<i16, (i16, i16)> },
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) role: Role,
    state: State,
    pending: VecDeque<Pending>,
    /// What came of a frame that is not whole yet: never longer than a frame may be, for its length is looked at first.
    buffer: Vec<u8>,
    muted_until: u64,
    /// Close it as soon as nothing is unanswered on it.
    pub(super) retiring: bool,
}

impl Connection {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
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
        self.state = State::Open { versions };
    }

    /// The newest version that both sides speak, up to `most`.
    pub(super) fn version(&self, api: ApiKey, most: i16) -> Option<i16> {
        let State::Open { versions } = &self.state else { return None };
        let &(theirs_least, theirs_most) = versions.get(&api.code())?;
        let (least, ours_most) = api.versions();
        let version = theirs_most.min(ours_most).min(most);
        (version >= least.max(theirs_least)).then_some(version)
    }

    /// The broker wants less of us for a while (KIP-219: the client does the waiting), but no longer than `most`.
    pub(super) fn throttle(&mut self, now: u64, throttle_time_ms: i32, most: u64) {
        let wait = u64::try_from(throttle_time_ms).unwrap_or(0).min(most);
        self.muted_until = self.muted_until.max(now + wait);
    }

    /// Takes bytes as they came.
    pub(super) fn receive(&mut self, bytes: Vec<u8>) {
        if self.buffer.is_empty() {
            self.buffer = bytes;
        } else {
            self.buffer.extend_from_slice(&bytes);
        }
    }

    /// The next whole frame, without its length, and the request that it answers.
    pub(super) fn next_frame(&mut self, most: usize) -> Result<Option<(Pending, Vec<u8>)>, Broken> {
        let Some(length) = self.buffer.first_chunk::<4>().map(|length| i32::from_be_bytes(*length)) else {
            return Ok(None);
        };
        // A response has at least its correlation id.
        let length = match usize::try_from(length) {
            Ok(length) if (4..=most).contains(&length) => length,
            _ => return Err(Broken(format!("a frame of {length} bytes is not between 4 and {most} long"))),
        };
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        // The frame takes over the memory of the buffer: otherwise a large answer would be in memory twice, once for as long as
        // the connection lives.
        let behind = self.buffer.split_off(4 + length);
        let mut frame = std::mem::replace(&mut self.buffer, behind);
        frame.drain(..4);
        match self.pending.pop_front() {
            Some(pending) => Ok(Some((pending, frame))),
            None => Err(Broken("a response came to no request".to_owned())),
        }
    }

    /// When it has waited too long, if it waits.
    pub(super) fn deadline(&self) -> Option<u64> {
        match self.state {
            State::Connecting { deadline } => Some(deadline),
            State::Open { .. } => self.pending.iter().map(|pending| pending.deadline).min(),
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
            state: State::Connecting { deadline },
            pending: VecDeque::new(),
            buffer: Vec::new(),
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

    pub(super) fn with_role(&self, role: Role) -> Option<(u64, &Connection)> {
        self.iter().find(|(_, connection)| connection.role == role)
    }

    /// The frame of a request, with its length, and its place in the queue of answers.
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
