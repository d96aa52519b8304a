//! When to ask for topics, and what their answer sets off.

use super::connections::{Broken, Pending};
use super::event::Action;
use super::metadata::differs;
use super::{Membership, Phase};
use crate::protocol::cluster::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use crate::protocol::{ApiKey, ErrorCode, read_response};
use std::collections::BTreeSet;

impl Membership {
    /// The topics that matter now; `None` is all of them.
    fn topics_wanted(&self) -> Option<BTreeSet<String>> {
        let wanted = self.subscription.as_ref()?;
        if wanted.all_topics {
            return None;
        }
        let mut names = wanted.topics.clone();
        if let Phase::Planning(planning) = &self.phase {
            names.extend(planning.names.iter().cloned());
        } else if let Some(watched) = &self.watched {
            names.extend(watched.names.iter().cloned());
        }
        Some(names)
    }

    /// When the topics have to be asked for; a time that has passed means now.
    pub(super) fn metadata_due(&self) -> Option<u64> {
        let wanted = self.subscription.as_ref().filter(|_| !self.failed && self.departure.is_none())?;
        let Some(asked_at) = self.cluster.asked_at else { return Some(self.now) };
        if let Phase::Planning(planning) = &self.phase
            && !self.cluster.covers(&planning.names, planning.since)
        {
            return Some(self.now);
        }
        // Whoever led will most likely lead again: with the topics at hand it plans at once.
        if matches!(self.phase, Phase::Joining) && self.identity.leads && asked_at < self.join_sent_at {
            return Some(self.now);
        }
        let stale_for_join = wanted.all_topics
            && self.prepared.is_none()
            && self.join_wanted_at.is_some_and(|since| !self.cluster.of_all || asked_at < since);
        let unverified = self.watched.as_ref().is_some_and(|watched| {
            let since = watched.verify_since.unwrap_or(0);
            matches!(self.phase, Phase::Stable) && !self.cluster.covers(&watched.names, since)
        });
        if stale_for_join
            || unverified
            || self.audit_needs_topics()
            || self.share_needs_topics()
            || self.discovery.brokers_stale
        {
            return Some(self.now);
        }
        let soon = self.cluster.unsettled || self.hopes_for_partitions();
        let period = if soon { self.config.max_backoff_ms } else { self.config.metadata_refresh_ms };
        Some(asked_at + period)
    }

    pub(super) fn drive_metadata(&mut self) {
        if self.metadata_due().is_none_or(|due| self.now < due) {
            return;
        }
        let Some(conn) = self.bootstrap() else { return };
        if self.net.get(conn).is_some_and(|connection| connection.awaits(ApiKey::Metadata)) {
            return;
        }
        let names = self.topics_wanted();
        let topic = |name: &String| MetadataRequestTopic { name: name.clone(), ..Default::default() };
        let body = MetadataRequest {
            topics: names.as_ref().map(|names| names.iter().map(topic).collect()),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        self.cluster.asking = names;
        self.ask(conn, &body, i16::MAX, self.now + self.config.request_timeout_ms);
    }

    pub(super) fn on_metadata(&mut self, conn: u64, pending: &Pending, frame: Vec<u8>) -> Result<(), Broken> {
        let response: MetadataResponse = read_response(&pending.header, &frame)?;
        // The largest of all answers: its bytes would stay in memory beside the structures made of it below.
        drop(frame);
        self.throttle(conn, response.throttle_time_ms);
        self.discovery.brokers_stale = false;
        let news = self.cluster.update(pending.sent_at, response);
        for (topic, code) in news {
            if self.subscription.as_ref().is_none_or(|wanted| !wanted.topics.contains(&topic)) {
                // Another member's, which it hears of itself.
                self.info(format!("topic '{topic}', which others read: {code}"));
                continue;
            }
            let remedy = match code {
                ErrorCode::TOPIC_AUTHORIZATION_FAILED => "grant this user DESCRIBE and READ on it",
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => "it will be read once it exists",
                _ => "no topic can have that name",
            };
            let message = format!("topic '{topic}': {code}: {remedy}");
            self.out.push(Action::Error { code, topic: Some(topic), message });
        }
        if self.subscription.as_ref().is_some_and(|wanted| wanted.all_topics) && self.cluster.of_all {
            self.out.push(Action::Topics { topics: self.cluster.names() });
        }
        self.look_for_changes();
        self.look_for_left_out();
        Ok(())
    }

    /// The leader plans again when what it planned with has changed, whoever reads it.
    fn look_for_changes(&mut self) {
        if !matches!(self.phase, Phase::Stable) {
            return;
        }
        let Some(watched) = &mut self.watched else { return };
        if !self.cluster.covers(&watched.names, watched.verify_since.unwrap_or(0)) {
            return;
        }
        watched.verify_since = None;
        let shapes = self.cluster.shapes(&watched.names);
        let changed = watched.shapes.as_ref().is_some_and(|planned| differs(planned, &shapes, watched.with_racks));
        if watched.shapes.is_none() {
            watched.shapes = Some(shapes);
        } else if changed {
            self.want_rejoin("topics or partitions have changed");
        }
    }
}
