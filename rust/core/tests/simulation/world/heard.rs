//! The last proof of each host's session, from the bytes of its connections. It checks the member's own clock.

use kafka_assignors_core::protocol::heartbeat::HeartbeatResponse;
use kafka_assignors_core::protocol::offsets::OffsetCommitResponse;
use kafka_assignors_core::protocol::reader::Reader;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode, RequestHeader, read_response};
use std::collections::BTreeMap;

/// A host's number, and the number of its process.
type Process = (usize, u32);

/// The unanswered requests, and the newest proof of each session.
#[derive(Default)]
pub(super) struct Heard {
    /// By connection and correlation id, the request and its time.
    asked: BTreeMap<(u64, i32), (Process, RequestHeader, u64)>,
    /// The latest time at which the coordinator certainly had the member. The session may end one session timeout
    /// later.
    alive_at: BTreeMap<Process, u64>,
}

fn is_parked(header: &RequestHeader) -> bool {
    matches!(header.api, ApiKey::JoinGroup | ApiKey::SyncGroup)
}

impl Heard {
    pub(super) fn asks(&mut self, link: u64, process: Process, bytes: &[u8], now: u64) {
        let header = RequestHeader::read(&mut Reader::new(&bytes[4..])).unwrap();
        self.asked.insert((link, header.correlation_id), (process, header, now));
    }

    pub(super) fn hears(&mut self, link: u64, frame: &[u8], now: u64) {
        let id = frame.first_chunk::<4>().map_or(0, |id| i32::from_be_bytes(*id));
        let Some((process, header, sent_at)) = self.asked.remove(&(link, id)) else { return };
        // A member with an unanswered JoinGroup or SyncGroup stays in the group until any response. The response to
        // another request proves the session only at the time of the request.
        if is_parked(&header) {
            self.alive(process, now);
        } else if counts(&header, frame) {
            self.alive(process, sent_at);
        }
    }

    /// A connection was closed. If a JoinGroup or SyncGroup was unanswered on it, the coordinator had the member until
    /// now.
    pub(super) fn ends(&mut self, link: u64, now: u64) {
        let ids: Vec<(u64, i32)> = self.asked.range((link, i32::MIN)..=(link, i32::MAX)).map(|(&id, _)| id).collect();
        for id in ids {
            if let Some((process, header, _)) = self.asked.remove(&id)
                && is_parked(&header)
            {
                self.alive(process, now);
            }
        }
    }

    fn alive(&mut self, process: Process, at: u64) {
        let known = self.alive_at.entry(process).or_default();
        *known = at.max(*known);
    }

    /// Whether the session may have ended: no proof of it is newer than one session timeout.
    pub(super) fn is_overdue(&self, process: Process, session_ms: u64, now: u64) -> bool {
        let waits = self.asked.values().any(|(other, header, _)| *other == process && is_parked(header));
        !waits && self.alive_at.get(&process).is_none_or(|at| now >= at + session_ms)
    }
}

/// Whether the answer proves that the coordinator has the member.
fn counts(header: &RequestHeader, frame: &[u8]) -> bool {
    match header.api {
        ApiKey::Heartbeat => {
            let response: HeartbeatResponse = read_response(header, frame).unwrap();
            matches!(response.error_code, ErrorCode::NONE | ErrorCode::REBALANCE_IN_PROGRESS)
        }
        ApiKey::OffsetCommit => {
            let response: OffsetCommitResponse = read_response(header, frame).unwrap();
            response.topics.iter().flat_map(|topic| &topic.partitions).all(|partition| partition.error_code.is_none())
        }
        _ => false,
    }
}
