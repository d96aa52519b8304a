//! SyncGroup: the leader's plan goes to the coordinator, each member's assignment comes back.

use super::connections::{Broken, Pending};
use super::event::Role;
use super::machine::Machine;
use super::{Leaves, Membership, Phase, Progress};
use crate::protocol::sync_group::{SyncGroupAssignment, SyncGroupRequest, SyncGroupResponse};
use crate::protocol::{CONSUMER, ErrorCode, read_response};

impl Membership {
    pub(super) fn drive_sync(&mut self) -> Progress {
        if !matches!(self.generation.phase, Phase::Syncing(Some(_))) {
            return false;
        }
        let Some(conn) = self.network.ready(Role::Group) else { return false };
        let Phase::Syncing(entries) = &mut self.generation.phase else { return false };
        let assignments = entries
            .take()
            .into_iter()
            .flatten()
            .map(|(member_id, assignment)| SyncGroupAssignment { member_id, assignment });
        let body = SyncGroupRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.generation.id,
            member_id: self.member_id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
            protocol_type: Some(CONSUMER.to_owned()),
            protocol_name: Some(self.generation.protocol.clone()),
            assignments: assignments.collect(),
        };
        if self.ask(conn, &body, i16::MAX, self.network.now + self.config.parked_timeout_ms()) {
            self.generation.session.parked(self.network.now);
        } else if !self.failed {
            self.fail(ErrorCode::INVALID_REQUEST, "the plan has no form in the protocol: it is too large", true);
        }
        true
    }

    pub(super) fn on_synced(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: SyncGroupResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        if !matches!(self.generation.phase, Phase::Syncing(None)) || !self.is_current(&pending.stamp) {
            return Ok(());
        }
        match response.error_code {
            ErrorCode::NONE => {
                self.generation.session.answered(self.network.now);
                let kind = response.protocol_type.as_deref().unwrap_or(CONSUMER);
                let protocol = response.protocol_name.as_deref().unwrap_or(&self.generation.protocol);
                if kind != CONSUMER || protocol != self.generation.protocol {
                    let message = format!(
                        "SyncGroup answers for protocol '{protocol}' of type '{kind}', not for '{}' that this member joined \
                         with",
                        self.generation.protocol
                    );
                    self.fail(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &message, true);
                    return Ok(());
                }
                self.take_assignment(response.assignment);
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => self.join_again(),
            ErrorCode::UNKNOWN_SERVER_ERROR => {
                let leads = self.generation.leads;
                if leads {
                    self.network.warn(
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
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.ends_its_rejoin();
                self.join_again_at_once();
            }
            ErrorCode::ILLEGAL_GENERATION => {
                self.expelled(Leaves::Generation, "SyncGroup came too late for its generation");
                self.join_again_at_once();
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.expelled(Leaves::MemberId, "the coordinator does not know this member");
                self.join_again_at_once();
            }
            code => {
                let message = self.explain("SyncGroup", code);
                self.fail(code, &message, code != ErrorCode::FENCED_INSTANCE_ID);
            }
        }
        Ok(())
    }
}
