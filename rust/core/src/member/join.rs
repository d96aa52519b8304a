//! JoinGroup: its time, its metadata, and the effects of its answer.

use super::backoff::Backoff;
use super::connections::{Broken, Pending};
use super::course::Trigger;
use super::event::{Action, NoticeKind, Role};
use super::heartbeat::Heartbeat;
use super::machine::Machine;
use super::{Converted, Leaves, Membership, Phase, Progress, RebalanceProtocol};
use crate::protocol::join_group::{JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse};
use crate::protocol::{ApiKey, CONSUMER, ErrorCode, read_response};

/// The longest reason that brokers keep.
const LONGEST_REASON: usize = 255;

/// The attempt to join, from the first trigger to JoinGroup.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) backoff: Backoff,
    /// The time since which the member has wanted to join.
    pub(super) wanted_at: Option<u64>,
    /// The assignors' metadata, once the application has written it.
    pub(super) prepared: Option<Vec<(String, Vec<u8>)>>,
    /// The time until which JoinGroup waits for the commits that the application requested while it prepared.
    pub(super) commits_until: u64,
    /// The time of the last JoinGroup.
    pub(super) sent_at: u64,
    /// The epoch of the subscription that the last JoinGroup was for.
    pub(super) subscription_epoch: Option<u64>,
    /// This number is appended to the metadata, where a leader ignores it. A coordinator rebalances for a follower only if the
    /// follower's metadata has changed, so a new number forces a rebalance.
    nonce: u32,
}

impl Attempt {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            wanted_at: None,
            prepared: None,
            commits_until: 0,
            sent_at: 0,
            subscription_epoch: None,
            nonce: 0,
        }
    }
}

impl Membership {
    /// Makes a Stable member join again.
    pub(super) fn want_rejoin(&mut self, trigger: Trigger, reason: &str) {
        if matches!(self.generation.phase, Phase::Stable) && self.generation.rejoin.is_none() {
            let mut end = reason.len().min(LONGEST_REASON);
            while !reason.is_char_boundary(end) {
                end -= 1;
            }
            self.generation.rejoin = Some(reason[..end].to_owned());
            self.course.begin(self.network.now, trigger);
        }
    }

    /// The host requests a rebalance. A follower's JoinGroup with unchanged metadata would cause none.
    pub(super) fn on_rejoin_wanted(&mut self, reason: &str) {
        if matches!(self.generation.phase, Phase::Stable) {
            self.change_metadata();
            self.want_rejoin(Trigger::Asked, reason);
        }
    }

    pub(super) fn change_metadata(&mut self) {
        self.attempt.nonce = self.attempt.nonce.wrapping_add(1).max(1);
    }

    pub(super) fn wants_to_join(&self) -> bool {
        let may = self.subscription.is_some()
            && self.departure.is_none()
            && !self.failed
            && !self.closed
            && !self.liveness.expired;
        may && match self.generation.phase {
            Phase::Unjoined => true,
            Phase::Stable => self.generation.rejoin.is_some(),
            Phase::Joining | Phase::Planning(_) | Phase::Syncing(_) => false,
        }
    }

    pub(super) fn drive_join(&mut self) -> Progress {
        if !self.wants_to_join() {
            return self.attempt.wanted_at.take().is_some();
        }
        let progress = self.attempt.wanted_at.is_none();
        let wanted_at = *self.attempt.wanted_at.get_or_insert(self.network.now);
        // If the course has not begun yet, the join has no other trigger.
        self.course.begin(self.network.now, Trigger::Joined);
        if self.notice.is_some() {
            return progress;
        }
        let lost = self.is_lost();
        if self.attempt.prepared.is_none() || lost {
            // Lost partitions are given up at once. Otherwise the member waits for the present topics, which the metadata needs.
            if !lost && !self.matches_the_topics_since(wanted_at) {
                return progress;
            }
            self.prepare(lost);
            return true;
        }
        if !self.attempt.backoff.ready(self.network.now) {
            return progress;
        }
        // The commits of the callbacks belong to the old generation. After JoinGroup the coordinator refuses them.
        let old = self.generation.id >= 0 && !self.generation.rejoining;
        if old && !self.commits.is_idle() && self.network.now < self.attempt.commits_until {
            return progress;
        }
        let Some(conn) = self.network.ready(Role::Group) else { return progress };
        self.join(conn);
        true
    }

    /// Whether the cluster's topics were requested at `wanted_at` or later. True for a subscription without expressions: only
    /// expressions are matched against the cluster's topics.
    fn matches_the_topics_since(&self, wanted_at: u64) -> bool {
        let all_topics = self.subscription.as_ref().is_some_and(|wanted| wanted.all_topics);
        !all_topics || self.cluster.of_all && self.cluster.asked_at.is_some_and(|at| at >= wanted_at)
    }

    /// Whether metadata written now may go into JoinGroup: expressions must have been matched against the present topics.
    pub(super) fn may_be_prepared(&self) -> bool {
        self.attempt.wanted_at.is_none_or(|wanted_at| self.matches_the_topics_since(wanted_at))
    }

    fn prepare(&mut self, lost: bool) {
        self.attempt.prepared = None;
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
        let static_version = self.network.version(conn, ApiKey::JoinGroup, i16::MAX);
        if self.config.is_static() && static_version.is_some_and(|version| version < 5) {
            let message = self.explain("JoinGroup", ErrorCode::UNSUPPORTED_VERSION);
            self.fail(ErrorCode::UNSUPPORTED_VERSION, &message, false);
            return;
        }
        let nonce = self.attempt.nonce.to_be_bytes();
        let metadata = |bytes: &[u8]| match self.attempt.nonce {
            0 => bytes.to_vec(),
            _ => [bytes, &nonce].concat(),
        };
        let protocols = self
            .attempt
            .prepared
            .iter()
            .flatten()
            .map(|(name, bytes)| JoinGroupProtocol { name: name.clone(), metadata: metadata(bytes) });
        let body = JoinGroupRequest {
            group_id: self.config.group_id.clone(),
            // `Config::check` has made sure that both times fit.
            session_timeout_ms: self.config.session_timeout_ms as i32,
            rebalance_timeout_ms: self.config.rebalance_timeout_ms() as i32,
            member_id: self.member_id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
            protocol_type: CONSUMER.to_owned(),
            protocols: protocols.collect(),
            reason: self.generation.rejoin.clone(),
        };
        if self.ask(conn, &body, i16::MAX, self.network.now + self.config.parked_timeout_ms()) {
            self.generation.phase = Phase::Joining;
            self.generation.rejoining = true;
            self.ownership.forget_outgoing();
            self.generation.session.parked(self.network.now);
            self.attempt.sent_at = self.network.now;
            self.course.attempts = self.course.attempts.saturating_add(1);
            self.attempt.subscription_epoch = self.subscription.as_ref().map(|wanted| wanted.epoch);
            self.attempt.wanted_at = None;
            self.audit_comeback();
        } else if !self.failed {
            let message = "the member cannot join: the name of an assignor is longer than 32,767 bytes";
            self.fail(ErrorCode::INVALID_REQUEST, message, true);
        }
    }

    /// Makes the member join again after a back-off, with its member id.
    pub(super) fn join_again(&mut self) {
        self.generation.phase = Phase::Unjoined;
        self.attempt.backoff.failed(self.network.now, &mut self.network.jitter);
    }

    /// Makes the member join again at once, as the protocol requires; from the second time in a row on, after a back-off.
    pub(super) fn join_again_at_once(&mut self) {
        self.generation.phase = Phase::Unjoined;
        self.attempt.backoff.failed_once_free(self.network.now, &mut self.network.jitter);
    }

    pub(super) fn on_joined(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: JoinGroupResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        if !matches!(self.generation.phase, Phase::Joining) || !self.is_current(&pending.stamp) {
            return Ok(());
        }
        match response.error_code {
            ErrorCode::NONE => return self.enter_generation(response),
            ErrorCode::MEMBER_ID_REQUIRED => {
                if response.member_id.is_empty() {
                    return Err(Broken("JoinGroup asks for a member id and gives none".to_owned()));
                }
                // The broker asks for a member id although the member has sent one. Kafka's brokers do not do that, so the member
                // must not repeat JoinGroup at once.
                let repeated = !self.member_id.is_empty();
                self.member_id = response.member_id;
                self.generation.phase = Phase::Unjoined;
                if repeated {
                    self.attempt.backoff.failed(self.network.now, &mut self.network.jitter);
                } else {
                    self.course.attempts = self.course.attempts.saturating_sub(1);
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
                self.expelled(Leaves::MemberId, "the coordinator does not know this member");
                self.join_again_at_once();
            }
            ErrorCode::ILLEGAL_GENERATION => {
                self.expelled(Leaves::Generation, "the coordinator is in another generation");
                self.join_again_at_once();
            }
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.ends_its_rejoin();
                self.join_again_at_once();
            }
            code => {
                let message = self.explain("JoinGroup", code);
                self.fail(code, &message, false);
            }
        }
        Ok(())
    }

    /// Whether a plan was made without this member's newest claims. The coordinator keeps a static member that does not rejoin,
    /// or whose answer got lost, in the group with the metadata of its last JoinGroup, and reports no error. Partitions that the
    /// member has taken since may belong to others: it must neither commit nor read them on in the generation that it enters.
    ///
    /// A missed plan does no harm to an eager member, which has given all its partitions up before JoinGroup, nor in a group for
    /// which the broker plans (KIP-848): the broker waits until the owner has given a partition up.
    fn missed_a_plan(&self, response: &JoinGroupResponse) -> bool {
        self.config.rebalance_protocol() == RebalanceProtocol::Cooperative
            && !self.ownership.is_empty()
            && !response.leader.is_empty()
            && response.generation_id > self.ownership.claimed_in.saturating_add(1)
    }

    fn enter_generation(&mut self, response: JoinGroupResponse) -> Result<(), Broken> {
        if response.generation_id < 0 || response.member_id.is_empty() {
            return Err(Broken(format!("JoinGroup succeeds with generation {}", response.generation_id)));
        }
        let kind = response.protocol_type.as_deref().unwrap_or(CONSUMER);
        let protocol = response.protocol_name.clone().unwrap_or_default();
        if kind != CONSUMER || self.config.assignor(&protocol).is_none() {
            self.member_id = response.member_id;
            let message = format!(
                "group '{}' chose protocol '{protocol}' of type '{kind}', which this member does not offer: is the group used \
                 by something else?",
                self.config.group_id
            );
            self.fail(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &message, true);
            return Ok(());
        }
        if self.missed_a_plan(&response) {
            self.member_id = response.member_id;
            self.expelled(Leaves::Generation, "others have made a plan without this member");
            self.join_again_at_once();
            return Ok(());
        }
        self.ownership.claimed_in = response.generation_id;
        self.course.joined_at = Some(self.network.now);
        let leads = !response.leader.is_empty() && response.leader == response.member_id;
        self.fencing = Some((response.member_id.clone(), response.generation_id));
        self.member_id = response.member_id;
        self.generation.id = response.generation_id;
        self.generation.protocol = protocol;
        self.generation.leads = leads;
        self.generation.rejoin = None;
        self.generation.watched = None;
        self.generation.session.answered(self.network.now);
        self.generation.heartbeat = Heartbeat::begin(self.network.now, self.turn, &self.config);
        self.network.discovery.succeeded();
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
            self.generation.phase = Phase::Syncing(Some(Vec::new()));
        }
        Ok(())
    }

    /// The brokers' own assignor serves the group (KIP-848). Returns whether the member carries on.
    fn converted_by_broker(&mut self) -> bool {
        let message = format!(
            "group '{}' is served by the brokers' own assignor: a consumer with group.protocol=consumer has joined it \
             (KIP-848), so {} is no longer asked. Stop that consumer, or set group.consumer.migration.policy=disabled on the \
             brokers",
            self.config.group_id, self.generation.protocol
        );
        if self.config.converted == Converted::Fail {
            self.network.actions.push(Action::ConvertedByBroker { message: message.clone() });
            self.fail(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &message, true);
            return false;
        }
        if !self.converted {
            self.converted = true;
            self.network.actions.push(Action::ConvertedByBroker { message: message.clone() });
            self.network.warn(message);
        }
        true
    }
}
