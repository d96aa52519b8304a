//! The events of a group.

/// The time at which an event is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// In the request that reports the event.
    Now,
    /// With a later event, or in [`ServerSideGroup::plan`](super::ServerSideGroup::plan).
    Later,
}

/// The subscription in a member's request.
#[derive(Debug, Clone, Copy)]
pub struct Subscribing<'a> {
    /// The names of topics, in the order of the request.
    pub names: &'a [&'a str],
    /// A regular expression of the broker.
    pub expression: Option<&'a str>,
}

/// A member of a live group, as ConsumerGroupDescribe lists it.
#[derive(Debug, Clone)]
pub struct Described<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its instance id.
    pub instance: Option<&'a str>,
    /// The names that it subscribes to.
    pub names: Vec<&'a str>,
    /// The expression that it subscribes to.
    pub expression: Option<&'a str>,
    /// Its target: topics and partitions in the order in which the broker lists them.
    pub target: Vec<(&'a str, Vec<u32>)>,
}
