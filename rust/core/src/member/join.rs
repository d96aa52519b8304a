//! Into a generation: when to join, with what, and what the answer makes of the member.

use super::connections::{Broken, Pending};
use super::event::{Action, NoticeKind, Role};
use super::{Converted, Identity, Membership, Phase, RebalanceProtocol};
use crate::protocol::join_group::{JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse};
use crate::protocol::{ApiKey, ErrorCode, read_response};

/// The protocol type of consumer groups.
pub(super) const CONSUMER: &str = "consumer";

/// The longest reason that brokers keep.
const LONGEST_REASON: usize = 255;

impl Membership {
    /// A Stable member is to join again.
    pub(super) fn want_rejoin(&mut self, reason: &str) {
        if matches!(self.phase, Phase::Stable) && self.rejoin.is_none() {
            let mut end = reason.len().min(LONGEST_REASON);
            while !reason.is_char_boundary(end) {
                end -= 1;
            }
            self.rejoin = Some(reason[..end].to_owned());
        }
    }

    /// The host wants a rebalance: a follower's join with the metadata that the broker has would cause none.
    pub(super) fn on_rejoin_wanted(&mut self, reason: &str) {
        if matches!(self.phase, Phase::Stable) {
            self.change_metadata();
            self.want_rejoin(reason);
        }
    }

    pub(super) fn change_metadata(&mut self) {
        self.nonce = self.nonce.wrapping_add(1).max(1);
    }

    pub(super) fn wants_to_join(&self) -> bool {
        let may = self.subscription.is_some()
            && self.departure.is_none()
            && !self.failed
            && !self.closed
            && !self.liveness.expired;
        may && match self.phase {
            Phase::Unjoined => true,
            Phase::Stable => self.rejoin.is_some(),
            Phase::Joining | Phase::Planning(_) | Phase::Syncing(_) => false,
        }
    }

    pub(super) fn drive_join(&mut self) {
        self.drive_failure();
        if !self.wants_to_join() {
            self.join_wanted_at = None;
            return;
        }
        let wanted_at = *self.join_wanted_at.get_or_insert(self.now);
        if self.notice.is_some() {
            return;
        }
        let lost = self.is_lost();
        if self.prepared.is_none() || lost {
            // Lost partitions are given up at once. A join waits for the present topics.
            if lost || self.matches_the_topics_since(wanted_at) {
                self.prepare(lost);
            }
            return;
        }
        if !self.join_backoff.ready(self.now) {
            return;
        }
        // What was asked to be committed before the partitions were given up belongs to the old generation.
        let old = self.identity.generation >= 0 && !self.rejoining;
        if old && !self.commits.is_idle() && self.now < self.commits_until {
            return;
        }
        if let Some(conn) = self.ready(Role::Group) {
            self.join(conn);
        }
    }

    /// Whether the topics are as new as `wanted_at`, where the subscription has expressions to match against them.
    fn matches_the_topics_since(&self, wanted_at: u64) -> bool {
        let all_topics = self.subscription.as_ref().is_some_and(|wanted| wanted.all_topics);
        !all_topics || self.cluster.of_all && self.cluster.asked_at.is_some_and(|at| at >= wanted_at)
    }

    /// Whether the metadata that assignors write now may go into a join: expressions must have been matched against the topics
    /// of that moment.
    pub(super) fn may_be_prepared(&self) -> bool {
        self.join_wanted_at.is_none_or(|wanted_at| self.matches_the_topics_since(wanted_at))
    }

    fn prepare(&mut self, lost: bool) {
        self.prepared = None;
        let revoked = match self.config.rebalance_protocol() {
            _ if lost => self.ownership.partitions(),
            RebalanceProtocol::Eager => self.ownership.partitions(),
            RebalanceProtocol::Cooperative => {
                let wanted = self.subscription.as_ref();
                self.ownership.outside(|topic| wanted.is_some_and(|wanted| wanted.topics.contains(topic)))
            }
        };
        self.notify(NoticeKind::Prepare, lost, revoked);
    }

    fn join(&mut self, conn: u64) {
        let static_version = self.net.get(conn).and_then(|connection| connection.version(ApiKey::JoinGroup, i16::MAX));
        if self.config.is_static() && static_version.is_some_and(|version| version < 5) {
            let message = self.explain("JoinGroup", ErrorCode::UNSUPPORTED_VERSION);
            self.fail(ErrorCode::UNSUPPORTED_VERSION, &message, false);
            return;
        }
        let nonce = self.nonce.to_be_bytes();
        let metadata = |bytes: &[u8]| match self.nonce {
            0 => bytes.to_vec(),
            _ => [bytes, &nonce].concat(),
        };
        let protocols = self
            .prepared
            .iter()
            .flatten()
            .map(|(name, bytes)| JoinGroupProtocol { name: name.clone(), metadata: metadata(bytes) });
        let body = JoinGroupRequest {
            group_id: self.config.group_id.clone(),
            // Checked to fit when the member was made.
            session_timeout_ms: self.config.session_timeout_ms as i32,
            rebalance_timeout_ms: self.config.max_poll_interval_ms as i32,
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
            protocol_type: CONSUMER.to_owned(),
            protocols: protocols.collect(),
            reason: self.rejoin.clone(),
        };
        if self.ask(conn, &body, i16::MAX, self.now + self.config.parked_timeout_ms()) {
            self.phase = Phase::Joining;
            self.rejoining = true;
            self.session.parked(self.now);
            self.join_sent_at = self.now;
            self.joined_epoch = self.subscription.as_ref().map(|wanted| wanted.epoch);
            self.join_wanted_at = None;
            self.audit_comeback();
        } else if !self.failed {
            let message = "what this member joins with has no form in the protocol: a name is too long";
            self.fail(ErrorCode::INVALID_REQUEST, message, true);
        }
    }

    /// Not in this generation; the member id stays.
    pub(super) fn join_again(&mut self) {
        self.phase = Phase::Unjoined;
        self.join_backoff.failed(self.now, &mut self.jitter);
    }

    /// As the protocol wants it: at once, but a second time in a row only after a while.
    pub(super) fn join_again_at_once(&mut self) {
        self.phase = Phase::Unjoined;
        self.join_backoff.failed_once_free(self.now, &mut self.jitter);
    }

    pub(super) fn on_joined(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: JoinGroupResponse = read_response(&pending.header, frame)?;
        self.throttle(conn, response.throttle_time_ms);
        if !matches!(self.phase, Phase::Joining) || !self.is_current(&pending.stamp) {
            return Ok(());
        }
        match response.error_code {
            ErrorCode::NONE => return self.enter(response),
            ErrorCode::MEMBER_ID_REQUIRED => {
                if response.member_id.is_empty() {
                    return Err(Broken("JoinGroup asks for a member id and gives none".to_owned()));
                }
                // Whoever has an id and still is asked for one has met no Kafka.
                let repeated = !self.identity.member_id.is_empty();
                self.identity.member_id = response.member_id;
                self.phase = Phase::Unjoined;
                if repeated {
                    self.join_backoff.failed(self.now, &mut self.jitter);
                }
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS | ErrorCode::UNKNOWN_SERVER_ERROR => self.join_again(),
            ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::NETWORK_EXCEPTION => {
                self.join_again();
                self.coordinator_lost(&format!("JoinGroup: {}", response.error_code));
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.reset_generation(false, "the coordinator does not know this member");
                self.join_again_at_once();
            }
            ErrorCode::ILLEGAL_GENERATION => {
                self.reset_generation(true, "the coordinator is in another generation");
                self.join_again_at_once();
            }
            ErrorCode::REBALANCE_IN_PROGRESS => self.join_again_at_once(),
            code => {
                let message = self.explain("JoinGroup", code);
                self.fail(code, &message, false);
            }
        }
        Ok(())
    }

    /// A static member that does not join stays in the group with the claims that it joined with the time before, without an
    /// error. So does one whose last answer got lost. What it has taken since may be somebody else's: it must commit nothing
    /// of that in the generation it enters now, nor read on from where it was. (An eager member has given up everything
    /// before it asks; a broker that plans itself waits for whoever owns something.)
    fn missed_a_plan(&self, response: &JoinGroupResponse) -> bool {
        self.config.rebalance_protocol() == RebalanceProtocol::Cooperative
            && !self.ownership.is_empty()
            && !response.leader.is_empty()
            && response.generation_id > self.claimed_in.saturating_add(1)
    }

    fn enter(&mut self, response: JoinGroupResponse) -> Result<(), Broken> {
        if response.generation_id < 0 || response.member_id.is_empty() {
            return Err(Broken(format!("JoinGroup succeeds with generation {}", response.generation_id)));
        }
        let kind = response.protocol_type.as_deref().unwrap_or(CONSUMER);
        let protocol = response.protocol_name.clone().unwrap_or_default();
        if kind != CONSUMER || self.config.assignor(&protocol).is_none() {
            self.identity.member_id = response.member_id;
            let message = format!(
                "group '{}' chose protocol '{protocol}' of type '{kind}', which this member does not offer: is the group used \
                 by something else?",
                self.config.group_id
            );
            self.fail(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &message, true);
            return Ok(());
        }
        if self.missed_a_plan(&response) {
            self.identity.member_id = response.member_id;
            self.reset_generation(true, "others have made a plan without this member");
            self.join_again_at_once();
            return Ok(());
        }
        self.claimed_in = response.generation_id;
        let leads = !response.leader.is_empty() && response.leader == response.member_id;
        self.identity =
            Identity { member_id: response.member_id.clone(), generation: response.generation_id, protocol, leads };
        self.fencing = Some((response.member_id.clone(), response.generation_id));
        self.session.answered(self.now);
        self.discovery.succeeded();
        self.heartbeat.begin(self.now, &self.config);
        self.rejoin = None;
        self.watched = None;
        if response.leader.is_empty() {
            if !self.converted_by_broker() {
                return Ok(());
            }
        } else {
            self.converted = false;
        }
        if leads {
            self.lead(response.members, response.skip_assignment);
        } else {
            self.phase = Phase::Syncing(Some(Vec::new()));
        }
        Ok(())
    }

    /// The group is served by the brokers' own assignor. Whether the member carries on.
    fn converted_by_broker(&mut self) -> bool {
        let message = format!(
            "group '{}' is served by the brokers' own assignor: a consumer with group.protocol=consumer has joined it \
             (KIP-848), so {} is no longer asked. Stop that consumer, or set group.consumer.migration.policy=disabled on the \
             brokers",
            self.config.group_id, self.identity.protocol
        );
        if self.config.converted == Converted::Fail {
            self.out.push(Action::ConvertedByBroker { message: message.clone() });
            self.fail(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &message, true);
            return false;
        }
        if !self.converted {
            self.converted = true;
            self.out.push(Action::ConvertedByBroker { message: message.clone() });
            self.warn(message);
        }
        true
    }
}
