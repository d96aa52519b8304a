//! Errors that end a generation, and those that end the member.

use super::Progress;
use super::course::Trigger;
use super::event::{Action, NoticeKind};
use super::{Leaves, Membership};
use crate::protocol::ErrorCode;

impl Membership {
    /// The group has continued without this member: other members may already own its partitions.
    pub(super) fn expelled(&mut self, leaves: Leaves, why: &str) {
        self.network.warn(format!("out of generation {}: {why}", self.generation.id));
        self.leave_generation(leaves);
        self.course.begin(self.network.now, Trigger::Expelled);
    }

    /// The member leaves the group for good and raises one [`Action::Fatal`]. `leave` sends LeaveGroup too.
    pub(super) fn fail(&mut self, code: ErrorCode, message: &str, leave: bool) {
        if self.failed || self.closed {
            return;
        }
        if leave {
            self.want_leave_group(message, self.network.request_deadline());
        }
        self.failed = true;
        self.leave_generation(Leaves::Group);
        self.close_group("the member has failed");
        self.commits.refuse_all(code, &mut self.network.actions);
        self.fetches.refuse_all(code, &mut self.network.actions);
        self.network.actions.push(Action::Fatal { code, message: message.to_owned() });
    }

    /// After a failure the application must still give its partitions up.
    pub(super) fn drive_failure(&mut self) -> Progress {
        let owes = self.failed && self.departure.is_none() && self.notice.is_none() && !self.ownership.is_empty();
        if owes {
            let revoked = self.ownership.partitions();
            self.notify(NoticeKind::Leave, true, revoked);
        }
        owes
    }

    /// An error of a group request with its remedy.
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
