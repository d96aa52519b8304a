//! What errors do to the member: a generation that is over, and the end.

use super::event::{Action, NoticeKind};
use super::{Identity, Membership};
use crate::protocol::ErrorCode;

impl Membership {
    /// The group has gone on without this member: what it owns may be somebody else's already.
    pub(super) fn reset_generation(&mut self, keep_id: bool, why: &str) {
        self.warn(format!("out of generation {}: {why}", self.identity.generation));
        let member_id = if keep_id { std::mem::take(&mut self.identity.member_id) } else { String::new() };
        self.identity = Identity { member_id, ..Identity::default() };
        self.stop_waiting("the generation is over");
        self.rejoining = false;
        self.rejoin = None;
        self.watched = None;
        self.ownership.forget_released();
        self.cancel_notice();
        if !self.ownership.is_empty() {
            // The metadata names what was owned.
            self.prepared = None;
        }
    }

    /// Out of the group for good; the application is told once.
    pub(super) fn fail(&mut self, code: ErrorCode, message: &str, leave: bool) {
        if self.failed || self.closed {
            return;
        }
        if leave {
            self.say_farewell(message, self.now + self.config.request_timeout_ms);
        }
        self.failed = true;
        self.abandon_group();
        self.identity = Identity::default();
        self.cancel_notice();
        self.close_role(super::Role::Group, "the member has failed");
        self.commits.refuse_all(code, &mut self.out);
        self.fetches.refuse_all(code, &mut self.out);
        self.out.push(Action::Fatal { code, message: message.to_owned() });
    }

    /// After the end the application still has to let go of what it had.
    pub(super) fn drive_failure(&mut self) {
        if self.failed && self.departure.is_none() && self.notice.is_none() && !self.ownership.is_empty() {
            let revoked = self.ownership.partitions();
            self.notify(NoticeKind::Leave, true, revoked);
        }
    }

    /// What an error of the group requests says to a person, beyond its name.
    pub(super) fn explain(&self, request: &str, code: ErrorCode) -> String {
        let group = &self.config.group_id;
        let remedy = match code {
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL => {
                "the other members offer none of this member's assignors: list one that all have, and change it in two \
                 rolling restarts"
            }
            ErrorCode::INVALID_SESSION_TIMEOUT => {
                "session.timeout.ms is outside the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
            }
            ErrorCode::GROUP_MAX_SIZE_REACHED => "the group has as many members as the broker's group.max.size allows",
            ErrorCode::GROUP_AUTHORIZATION_FAILED => "grant this user READ on the group",
            ErrorCode::FENCED_INSTANCE_ID => {
                "another process has joined with the same group.instance.id: give each process its own"
            }
            ErrorCode::UNSUPPORTED_VERSION => "the broker is too old for static members: take group.instance.id away",
            ErrorCode::INVALID_GROUP_ID => "give a valid group.id",
            _ => "the broker's log may say more",
        };
        format!("{request} in group '{group}' failed: {code}: {remedy}")
    }
}
