//! The names of topics. Assignments have ids only.

use super::ConsumerMembership;
use crate::member::Progress;
use crate::member::backoff::Backoff;
use crate::member::connections::{Broken, Pending};
use crate::member::discovery::Bootstrap;
use crate::member::event::Action;
use crate::member::machine::Machine;
use crate::protocol::cluster::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use crate::protocol::{ApiKey, ErrorCode, TopicId, read_response};
use std::collections::BTreeMap;

/// The first version with ids.
const IDS_FROM: i16 = 10;

/// The names of topics that the member knows.
#[derive(Debug)]
pub(super) struct KnownTopicNames {
    pub(super) names: BTreeMap<TopicId, String>,
    /// Topics that the broker refuses. Each is reported once.
    refused: BTreeMap<String, ErrorCode>,
    /// The number of the subscription whose topics were requested.
    asked_for: Option<u64>,
    backoff: Backoff,
}

impl KnownTopicNames {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { names: BTreeMap::new(), refused: BTreeMap::new(), asked_for: None, backoff }
    }

    pub(super) fn not_before(&self) -> u64 {
        self.backoff.not_before()
    }
}

impl ConsumerMembership {
    fn needs_topics(&self) -> bool {
        let new = self.subscription.as_ref().is_some_and(|wanted| Some(wanted.number) != self.topics.asked_for);
        let nameless = self
            .current
            .target
            .as_ref()
            .is_some_and(|target| target.keys().any(|id| !self.topics.names.contains_key(id)));
        new || nameless
    }

    /// Asks for the topics of the subscription, or for all if it has an expression. The request contains no ids: a broker that
    /// does not know an id yet answers without a name, and the subscription has every name.
    pub(super) fn drive_topics(&mut self) -> Progress {
        if self.failed || !self.needs_topics() {
            return false;
        }
        let Some(wanted) = &self.subscription else { return false };
        let number = wanted.number;
        let topics = wanted.expression.is_none().then(|| {
            let topic = |name: &String| MetadataRequestTopic { name: Some(name.clone()), ..Default::default() };
            wanted.topics.iter().map(topic).collect()
        });
        let conn = match self.network.bootstrap() {
            Bootstrap::Ready(conn) => conn,
            Bootstrap::Begun => return true,
            Bootstrap::Waits => return false,
        };
        if self.network.awaits(conn, ApiKey::Metadata) || !self.topics.backoff.ready(self.network.now) {
            return false;
        }
        if self.network.version(conn, ApiKey::Metadata, i16::MAX) < Some(IDS_FROM) {
            self.fail_with(ErrorCode::UNSUPPORTED_VERSION, &self.too_old());
            return true;
        }
        let body = MetadataRequest { topics, allow_auto_topic_creation: false, ..Default::default() };
        self.topics.asked_for = Some(number);
        // If no answer names an id, the member asks again. Without this back-off it would ask without a pause.
        self.topics.backoff.failed(self.network.now, &mut self.network.jitter);
        self.ask(conn, &body, i16::MAX, self.network.request_deadline());
        true
    }

    pub(super) fn on_metadata(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: MetadataResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        self.network.discovery.learn(response.brokers);
        // Names of topics that are neither assigned nor held are not kept: the answer may have all topics of a cluster.
        let held = self.holdings.by_topic();
        let mut names = std::mem::take(&mut self.topics.names);
        let target = self.current.target.as_ref();
        names.retain(|id, _| held.contains_key(id) || target.is_some_and(|target| target.contains_key(id)));
        for topic in response.topics {
            // The name is null only in an answer about an unknown id, and no request here contains ids.
            let Some(name) = topic.name else { continue };
            let subscribed = self.subscription.as_ref().is_some_and(|wanted| wanted.topics.contains(&name));
            let code = topic.error_code;
            if code.is_none() {
                self.topics.refused.remove(&name);
                if subscribed || target.is_some_and(|target| target.contains_key(&topic.topic_id)) {
                    names.insert(topic.topic_id, name);
                }
                continue;
            }
            let remedy = match code {
                ErrorCode::TOPIC_AUTHORIZATION_FAILED => "grant this user DESCRIBE and READ on it",
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => "it will be read once it exists",
                ErrorCode::INVALID_TOPIC_EXCEPTION => "no topic can have that name",
                // The broker cannot describe the topic yet.
                _ => continue,
            };
            if subscribed && self.topics.refused.insert(name.clone(), code).is_none() {
                let message = format!("topic '{name}': {code}: {remedy}");
                self.network.actions.push(Action::Error { code, topic: Some(name), message });
            }
        }
        self.topics.names = names;
        if !self.needs_topics() {
            self.topics.backoff.succeeded();
        }
        Ok(())
    }
}
