//! Errors that end the member.

use super::ConsumerMembership;
use crate::member::event::{Action, Role};
use crate::protocol::ErrorCode;

impl ConsumerMembership {
    /// Takes the member out of the group for good, with one [`Action::Fatal`]. The application must still give its partitions up,
    /// as lost.
    pub(super) fn fail_with(&mut self, code: ErrorCode, message: &str) {
        if self.failed || self.closed {
            return;
        }
        self.failed = true;
        self.leave_membership();
        self.leaving = None;
        self.network.close_where("the member has failed", |connection| connection.role == Role::Group);
        self.commits.refuse_all(code, &mut self.network.actions);
        self.fetches.refuse_all(code, &mut self.network.actions);
        self.network.actions.push(Action::Fatal { code, message: message.to_owned() });
    }

    pub(super) fn too_old(&self) -> String {
        format!(
            "the brokers of group '{}' do not speak the consumer protocol (KIP-848): use brokers from 4.0 on with group.version \
             1, or group.protocol=classic",
            self.config.group_id
        )
    }

    /// An error of a heartbeat, with the broker's message and a remedy.
    pub(super) fn explain(&self, code: ErrorCode, said: Option<&str>) -> String {
        if code == ErrorCode::UNSUPPORTED_VERSION {
            return self.too_old();
        }
        let instance = self.config.group_instance_id.as_deref().unwrap_or_default();
        let remedy = match code {
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => "grant this user DESCRIBE on every subscribed topic".to_owned(),
            ErrorCode::GROUP_AUTHORIZATION_FAILED => "grant this user READ on the group".to_owned(),
            ErrorCode::GROUP_MAX_SIZE_REACHED => {
                "the group has as many members as the broker's group.consumer.max.size allows".to_owned()
            }
            ErrorCode::FENCED_INSTANCE_ID => {
                format!("another process has joined with group.instance.id '{instance}': give each process its own")
            }
            ErrorCode::UNRELEASED_INSTANCE_ID => format!(
                "a member with group.instance.id '{instance}' is in the group, or was fenced less than a session ago: stop the \
                 other process, or wait for the end of its session"
            ),
            ErrorCode::UNSUPPORTED_ASSIGNOR => format!(
                "the broker's group.consumer.assignors does not have '{}'",
                self.config.remote_assignor.as_deref().unwrap_or_default()
            ),
            ErrorCode::INVALID_REGULAR_EXPRESSION => {
                "the broker matches whole names with RE2/J: give an expression of that syntax".to_owned()
            }
            ErrorCode::GROUP_ID_NOT_FOUND => {
                "the group is one of another type, or a classic group that the broker does not convert".to_owned()
            }
            _ => "the broker's log may say more".to_owned(),
        };
        let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
        format!("ConsumerGroupHeartbeat in group '{}' failed: {code}{said}: {remedy}", self.config.group_id)
    }
}
