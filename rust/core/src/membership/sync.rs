//! The plan handed in, the share received.

use super::audit::Audit;
use super::connections::{Broken, Pending};
use super::event::{Partitions, Role};
use super::join::CONSUMER;
use super::{Membership, Phase};
use crate::protocol::sync_group::{SyncGroupAssignment, SyncGroupRequest, SyncGroupResponse};
use crate::protocol::{ErrorCode, read_response};
use crate::wire::assignment::Assignment;
use std::collections::{BTreeMap, BTreeSet};

impl Membership {
    pub(super) fn drive_sync(&mut self) {
        if !matches!(self.phase, Phase::Syncing(Some(_))) {
            return;
        }
        let Some(conn) = self.ready(Role::Group) else { return };
        let Phase::Syncing(entries) = &mut self.phase else { return };
        let assignments = entries
            .take()
            .into_iter()
            .flatten()
            .map(|(member_id, assignment)| SyncGroupAssignment { member_id, assignment });
        let body = SyncGroupRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.identity.generation,
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
            protocol_type: Some(CONSUMER.to_owned()),
            protocol_name: Some(self.identity.protocol.clone()),
            assignments: assignments.collect(),
        };
        if self.ask(conn, &body, i16::MAX, self.now + self.config.parked_timeout_ms()) {
            self.session.parked(self.now);
        } else if !self.failed {
            self.fail(ErrorCode::INVALID_REQUEST, "the plan has no form in the protocol: it is too large", true);
        }
    }

    pub(super) fn on_synced(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: SyncGroupResponse = read_response(&pending.header, frame)?;
        self.throttle(conn, response.throttle_time_ms);
        if !matches!(self.phase, Phase::Syncing(None)) || !self.is_current(&pending.stamp) {
            return Ok(());
        }
        match response.error_code {
            ErrorCode::NONE => {
                self.session.answered(self.now);
                let kind = response.protocol_type.as_deref().unwrap_or(CONSUMER);
                let protocol = response.protocol_name.as_deref().unwrap_or(&self.identity.protocol);
                if kind != CONSUMER || protocol != self.identity.protocol {
                    let message = format!(
                        "SyncGroup answers for protocol '{protocol}' of type '{kind}', not for '{}' that this member joined \
                         with",
                        self.identity.protocol
                    );
                    self.fail(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &message, true);
                    return Ok(());
                }
                self.take_share(response.assignment);
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => self.join_again(),
            ErrorCode::UNKNOWN_SERVER_ERROR => {
                let leads = self.identity.leads;
                if leads {
                    self.warn(
                        "the coordinator could not store the plan: the group may not fit one record of \
                         __consumer_offsets. Raise that topic's max.message.bytes (and replica.fetch.max.bytes), or use \
                         fewer partitions or members"
                            .to_owned(),
                    );
                }
                self.join_again();
            }
            ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::NETWORK_EXCEPTION => {
                self.join_again();
                self.coordinator_lost(&format!("SyncGroup: {}", response.error_code));
            }
            ErrorCode::REBALANCE_IN_PROGRESS => self.join_again_at_once(),
            ErrorCode::ILLEGAL_GENERATION => {
                self.reset_generation(true, "SyncGroup came too late for its generation");
                self.join_again_at_once();
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.reset_generation(false, "the coordinator does not know this member");
                self.join_again_at_once();
            }
            code => {
                let message = self.explain("SyncGroup", code);
                self.fail(code, &message, code != ErrorCode::FENCED_INSTANCE_ID);
            }
        }
        Ok(())
    }

    /// The member is in its generation and has a share, of whatever quality.
    fn take_share(&mut self, bytes: Vec<u8>) {
        let (share, foreign) = match self.read_share(&bytes) {
            Ok(read) => read,
            Err(reason) => {
                self.warn(format!("the leader's plan has no share for this member that can be read: {reason}"));
                // The same metadata would be answered with the same bytes.
                self.change_metadata();
                self.join_again();
                return;
            }
        };
        self.phase = Phase::Stable;
        self.rejoining = false;
        self.rejoin = None;
        self.heartbeat.begin(self.now, &self.config);
        self.prepared = None;
        self.discovery.succeeded();
        if self.owned_generation.checked_add(1) != Some(self.identity.generation) {
            // The generation between may have given what was released to somebody else.
            self.ownership.forget_released();
        }
        if self.audit == Audit::Ahead {
            self.audit = Audit::Wanted;
        }
        let (added, revoked) = self.ownership.compare(&share);
        self.notify_share(revoked, added, share, bytes);
        if foreign.is_empty() {
            self.join_backoff.succeeded();
        } else {
            // The subscription has changed since the plan was made (a static member came back with another one), or the
            // leader is wrong; either way, joining with what the broker knows already would bring the same plan.
            self.warn(format!("the share has topics that are not subscribed to: {}", foreign.join(", ")));
            self.change_metadata();
            self.want_rejoin("the assignment does not fit the subscription");
            self.join_backoff.failed(self.now, &mut self.jitter);
        }
        // A subscription that changed while the group rebalanced is for the next generation.
        if self.subscription.as_ref().map(|wanted| wanted.epoch) != self.joined_epoch {
            self.want_rejoin("the subscription has changed");
        }
    }

    /// The share, and topics in it that are not subscribed to.
    fn read_share(&self, bytes: &[u8]) -> Result<(Partitions, Vec<String>), String> {
        let read = Assignment::read(bytes).map_err(|error| error.to_string())?;
        let wanted = self.subscription.as_ref();
        let mut share: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
        let mut foreign = BTreeSet::new();
        for (topic, numbers) in read.partitions.iter() {
            let topic = std::str::from_utf8(topic).map_err(|_| "a topic's name is not UTF-8".to_owned())?;
            if !wanted.is_some_and(|wanted| wanted.topics.contains(topic)) {
                foreign.insert(topic.to_owned());
                continue;
            }
            share.entry(topic).or_default().extend(numbers.iter().filter(|&number| number >= 0));
        }
        share.retain(|_, numbers| !numbers.is_empty());
        let share = share.into_iter().map(|(topic, numbers)| (topic.to_owned(), numbers.into_iter().collect()));
        Ok((share.collect(), foreign.into_iter().collect()))
    }
}
