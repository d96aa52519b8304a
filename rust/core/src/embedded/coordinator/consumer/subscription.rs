//! The members' subscriptions: the topics that the planner needs, and the regular expressions.

use super::ConsumerGroup;
use crate::embedded::coordinator::config::Config;
use crate::embedded::coordinator::topics::ClusterTopics;
use crate::expression::Expression;
use crate::planning::server_side::{Uuid, When};
use std::collections::BTreeSet;

/// An expression to which at least one member subscribes.
#[derive(Debug)]
pub(in crate::embedded::coordinator) struct Resolved {
    matcher: Expression,
    /// Whether the topics have been searched. On a broker the search takes a while, so the broker answers the heartbeat with a
    /// new expression before it ends.
    done: bool,
    /// The topics that match.
    pub(super) topics: BTreeSet<String>,
}

impl ConsumerGroup {
    /// Whether a member of the group already subscribes to this expression.
    pub(super) fn knows(&self, expression: &str) -> bool {
        self.expressions.contains_key(expression)
    }

    /// Adds the expression of a member that has just subscribed to it.
    pub(super) fn add_expression(&mut self, text: &str, matcher: Option<Expression>) {
        if let (false, Some(matcher)) = (self.knows(text), matcher) {
            let resolved = Resolved { matcher, done: false, topics: BTreeSet::new() };
            self.expressions.insert(text.to_owned(), resolved);
        }
    }

    /// Forgets the expressions to which no member subscribes any more.
    pub(super) fn forget_expressions(&mut self) {
        let used: BTreeSet<&str> = self.members.values().filter_map(|member| member.expression.as_deref()).collect();
        self.expressions.retain(|text, _| used.contains(text.as_str()));
    }

    /// Passes the topics with these names to the planner.
    pub(super) fn track<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, topics: &ClusterTopics) {
        for name in names {
            let Some(topic) = topics.get(name) else { continue };
            let (id, count) = (Uuid::from_bytes(topic.id), u32::try_from(topic.partitions).unwrap_or(0));
            // If the cluster has more partitions with this topic than can be planned, the topic gets no owner.
            let _ = self.planner.grow(name, count, Some(id), When::Later);
        }
    }

    /// Passes the changes of topics since the last heartbeat to the planner.
    pub(super) fn refresh_topics(&mut self, topics: &ClusterTopics) {
        if self.topics_version == topics.version() {
            return;
        }
        self.topics_version = topics.version();
        let is_gone = |name: &str, id: Uuid| topics.get(name).is_none_or(|topic| Uuid::from_bytes(topic.id) != id);
        let gone: Vec<String> = self
            .planner
            .topics()
            .filter(|&(name, id, _)| is_gone(name, id))
            .map(|(name, ..)| name.to_owned())
            .collect();
        for name in gone {
            // The planner has just listed the topic, so it cannot refuse.
            let _ = self.planner.delete(&name, When::Later);
        }
        let mut names: BTreeSet<String> =
            self.members.values().flat_map(|member| member.names.iter().cloned()).collect();
        names.extend(self.expressions.values().flat_map(|resolved| resolved.topics.iter().cloned()));
        self.track(names.iter().map(String::as_str), topics);
    }

    /// Finds the topics of new expressions. If the topics changed and the last search was long enough ago, finds those of all
    /// expressions. A broker does this in the background, after the answer to a heartbeat.
    pub(super) fn resolve(&mut self, config: &Config, now: u64, topics: &ClusterTopics) {
        let is_due = now >= self.resolved_at.saturating_add(config.consumer_regex_refresh_ms);
        let all = self.resolved_version != topics.version() && is_due;
        let wanted = |(text, resolved): (&String, &Resolved)| (all || !resolved.done).then(|| text.clone());
        let wanted: Vec<String> = self.expressions.iter().filter_map(wanted).collect();
        if all {
            (self.resolved_version, self.resolved_at) = (topics.version(), now);
        }
        let before = self.planner.changes();
        for text in wanted {
            let Some(resolved) = self.expressions.get_mut(&text) else { continue };
            let matching: Vec<&str> = topics.names().filter(|name| resolved.matcher.matches(name)).collect();
            let found: BTreeSet<String> = matching.iter().map(|&name| name.to_owned()).collect();
            if resolved.done && resolved.topics == found {
                continue;
            }
            (resolved.done, resolved.topics) = (true, found);
            self.track(matching.iter().copied(), topics);
            // With `Later` no plan is made, so no error is possible.
            let _ = self.planner.resolve(&text, &matching, When::Later);
        }
        if self.planner.changes() != before {
            self.raise_epoch();
        }
    }
}
