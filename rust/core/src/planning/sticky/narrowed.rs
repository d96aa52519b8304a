//! Restrictions as subscriptions: the group that the search under restrictions plans.

use hashbrown::HashMap;

use crate::planning::group::{Group, GroupBuilder, NONE, TopicSpec, Topics};
use crate::planning::ownership::Ownership;
use crate::planning::restrictions::Restrictions;

/// A group in which the subscribers of a topic are those that may have its partitions: a topic whose partitions have several
/// sets of members is several topics. Where capacities are limited, there is one more member, the last: *nobody*, which may have
/// every partition and gets those that no real member has room for.
pub(super) struct Narrowed {
    /// The group. It has no claims; the names of topics and members are numbers.
    pub(super) group: Group,
    /// The owners so far that may keep their partitions.
    pub(super) owner: Vec<u32>,
    /// By flat partition of this group, the flat partition of the group that was narrowed.
    pub(super) partition_of: Vec<u32>,
    /// By member, as [`Restrictions::capacity`]; the member *nobody* has no limit.
    pub(super) capacity: Vec<u32>,
    /// The number of the member *nobody*, where capacities are limited.
    pub(super) nobody: Option<u32>,
}

/// The group with its restrictions as subscriptions. O(partitions + subscription entries of the group with and without
/// restrictions, times a logarithm).
pub(super) fn narrow(group: &Group, restrictions: &Restrictions, ownership: &Ownership) -> Narrowed {
    let topics = group.topics();
    let mut subscribers = vec![Vec::new(); topics.len()];
    for member in 0..group.members() as u32 {
        group.subscription(member).iter().for_each(|&topic| subscribers[topic as usize].push(member));
    }
    // By topic, its parts: the members that may have a part, and its partitions. Sets that differ only in members that do
    // not subscribe to the topic are one part, so that the plan does not depend on how restrictions were written.
    let mut parts: Vec<Vec<(Vec<u32>, Vec<u32>)>> = Vec::with_capacity(topics.len());
    for topic in 0..topics.len() as u32 {
        let mut of_topic: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        let (mut by_set, mut by_able): (HashMap<u32, usize>, HashMap<Vec<u32>, usize>) = Default::default();
        for partition in topics.range(topic) {
            let at = *by_set.entry(restrictions.set(partition)).or_insert_with(|| {
                let able: Vec<u32> = restrictions.able(&subscribers[topic as usize], partition).collect();
                *by_able.entry(able).or_insert_with_key(|able| {
                    of_topic.push((able.clone(), Vec::new()));
                    of_topic.len() - 1
                })
            });
            of_topic[at].1.push(partition);
        }
        parts.push(of_topic);
    }
    let numbered = || parts.iter().flatten();
    let names: Vec<String> = (0..numbered().count()).map(|part| format!("{part:010}")).collect();
    let specs = numbered().zip(&names).map(|((_, partitions), name)| TopicSpec {
        name,
        partitions: partitions.len() as i64,
        racks: None,
    });
    // Its names are in order and distinct, and it has as many partitions as the group.
    let narrowed = Topics::new(specs.collect()).expect("the topics of a group, in parts, are topics");
    let mut builder = GroupBuilder::new(narrowed);
    let mut parts_of = vec![Vec::new(); group.members()];
    for (part, (able, _)) in (0u32..).zip(numbered()) {
        able.iter().for_each(|&member| parts_of[member as usize].push(part));
    }
    for (member, subscription) in parts_of.iter().enumerate() {
        let subscribed = builder.subscription(subscription);
        builder.member(&format!("{member:010}"), subscribed).finish();
    }
    let limited = restrictions.capacity.iter().any(|&most| most < u32::MAX);
    let nobody = limited.then_some(group.members() as u32);
    let mut capacity = Vec::new();
    if let Some(nobody) = nobody {
        let every: Vec<u32> = (0..names.len() as u32).collect();
        let subscribed = builder.subscription(&every);
        builder.member(&format!("{nobody:010}"), subscribed).finish();
        capacity.clone_from(&restrictions.capacity);
        capacity.push(u32::MAX);
    }
    let partition_of: Vec<u32> = numbered().flat_map(|(_, partitions)| partitions).copied().collect();
    let owner = partition_of.iter().map(|&partition| {
        let owner = ownership.owner[partition as usize];
        if owner != NONE && restrictions.allow(owner, partition) { owner } else { NONE }
    });
    let owner = owner.collect();
    Narrowed { group: builder.finish(), owner, partition_of, capacity, nobody }
}
