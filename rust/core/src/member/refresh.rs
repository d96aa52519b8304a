//! Metadata: the times of the requests for topics, and the effects of the answers.

use super::connections::{Broken, Pending};
use super::course::Trigger;
use super::discovery::Bootstrap;
use super::event::Action;
use super::machine::Machine;
use super::metadata::{ClusterRacks, differs};
use super::{Membership, Phase, Progress};
use crate::protocol::cluster::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use crate::protocol::{ApiKey, ErrorCode, read_response};
use std::collections::BTreeSet;

impl Membership {
    /// The topics to request; `None` stands for all topics of the cluster.
    fn topics_wanted(&self) -> Option<BTreeSet<String>> {
        let wanted = self.subscription.as_ref()?;
        if wanted.all_topics {
            return None;
        }
        let mut names = wanted.topics.clone();
        if let Phase::Planning(planning) = &self.generation.phase {
            names.extend(planning.names.iter().cloned());
        } else if let Some(watched) = &self.generation.watched {
            names.extend(watched.names.iter().cloned());
        }
        Some(names)
    }

    /// The time of the next request for the topics; a time in the past means now.
    pub(super) fn metadata_due(&self) -> Option<u64> {
        let wanted = self.subscription.as_ref().filter(|_| !self.failed && self.departure.is_none())?;
        let Some(asked_at) = self.cluster.asked_at else { return Some(self.network.now) };
        if let Phase::Planning(planning) = &self.generation.phase
            && !self.cluster.covers(&planning.names, planning.since)
        {
            return Some(self.network.now);
        }
        // A member that led will most likely lead again. If it already has the topics, it plans as soon as JoinGroup is answered.
        if matches!(self.generation.phase, Phase::Joining) && self.generation.leads && asked_at < self.attempt.sent_at {
            return Some(self.network.now);
        }
        let stale_for_join = wanted.all_topics
            && self.attempt.prepared.is_none()
            && self.attempt.wanted_at.is_some_and(|since| !self.cluster.of_all || asked_at < since);
        let unverified = self.generation.watched.as_ref().is_some_and(|watched| {
            let since = watched.verify_since.unwrap_or(0);
            matches!(self.generation.phase, Phase::Stable) && !self.cluster.covers(&watched.names, since)
        });
        if stale_for_join
            || unverified
            || self.audit_needs_topics()
            || self.assignment_needs_topics()
            || self.network.discovery.brokers_stale
        {
            return Some(self.network.now);
        }
        let soon = self.cluster.indescribable_topic || self.asks_for_missing();
        let period = if soon { self.config.max_backoff_ms } else { self.config.metadata_refresh_ms };
        Some(asked_at + period)
    }

    pub(super) fn drive_metadata(&mut self) -> Progress {
        if self.metadata_due().is_none_or(|due| self.network.now < due) {
            return false;
        }
        let conn = match self.network.bootstrap() {
            Bootstrap::Ready(conn) => conn,
            Bootstrap::Begun => return true,
            Bootstrap::Waits => return false,
        };
        if self.network.awaits(conn, ApiKey::Metadata) {
            return false;
        }
        let names = self.topics_wanted();
        let topic = |name: &String| MetadataRequestTopic { name: Some(name.clone()), ..Default::default() };
        let body = MetadataRequest {
            topics: names.as_ref().map(|names| names.iter().map(topic).collect()),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        self.cluster.asking = names;
        self.ask(conn, &body, i16::MAX, self.network.request_deadline());
        true
    }

    pub(super) fn on_metadata(&mut self, conn: u64, pending: &Pending, frame: Vec<u8>) -> Result<(), Broken> {
        let response: MetadataResponse = read_response(&pending.header, &frame)?;
        // No other answer is as large. Without this drop, its bytes would stay in memory beside the structures made of it below.
        drop(frame);
        self.network.throttle(conn, response.throttle_time_ms);
        let racks = ClusterRacks::new(&response.brokers);
        self.network.discovery.learn(response.brokers);
        let news = self.cluster.update(pending.sent_at, racks, response.topics);
        for (topic, code) in news {
            if self.subscription.as_ref().is_none_or(|wanted| !wanted.topics.contains(&topic)) {
                // The members that subscribe to the topic report this themselves.
                self.network.info(format!("topic '{topic}', which others read: {code}"));
                continue;
            }
            let remedy = match code {
                ErrorCode::TOPIC_AUTHORIZATION_FAILED => "grant this user DESCRIBE and READ on it",
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => "it will be read once it exists",
                _ => "no topic can have that name",
            };
            let message = format!("topic '{topic}': {code}: {remedy}");
            self.network.actions.push(Action::Error { code, topic: Some(topic), message });
        }
        if self.subscription.as_ref().is_some_and(|wanted| wanted.all_topics) && self.cluster.of_all {
            self.network.actions.push(Action::Topics { topics: self.cluster.names() });
        }
        self.look_for_changes();
        self.look_for_missing();
        Ok(())
    }

    /// The leader joins again when a topic of any member has changed since the plan.
    fn look_for_changes(&mut self) {
        if !matches!(self.generation.phase, Phase::Stable) {
            return;
        }
        let Some(watched) = &mut self.generation.watched else { return };
        if !self.cluster.covers(&watched.names, watched.verify_since.unwrap_or(0)) {
            return;
        }
        watched.verify_since = None;
        let shapes = self.cluster.shapes(&watched.names);
        let changed = watched.shapes.as_ref().is_some_and(|planned| differs(planned, &shapes, watched.with_racks));
        if watched.shapes.is_none() {
            watched.shapes = Some(shapes);
        } else if changed {
            self.want_rejoin(Trigger::Topics, "topics or partitions have changed");
        }
    }
}
