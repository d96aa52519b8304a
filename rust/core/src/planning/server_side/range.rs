//! The broker's `range`.

use std::cmp::Ordering;

use super::java::{HashMap, compare_strings, room_for};
use super::spec::{NewTargets, Spec, SpecMember};

/// Plans a group: of each topic, each subscriber gets a run. Earlier targets do not count. O(partitions + subscription entries).
pub(crate) fn assign(spec: &Spec<'_>) -> NewTargets {
    let mut targets = vec![None; spec.members.len()];
    let order = turns(spec);
    let first = order[0];
    let mut runs = runs(spec);
    for member in order {
        // In a homogeneous group, every member's topics are in the order of the first member's set of names: the requests may
        // list the names in different orders. For the capacity of the map, Java counts the topics that exist in such a group,
        // and the names in any other group.
        let subscription = spec.subscription(if spec.equal { first } else { member });
        let room = room_for(if spec.equal { subscription.topics.len() } else { subscription.names });
        let mut map = HashMap::with_capacity(room);
        for &topic in &subscription.topics {
            if !runs[topic as usize].give().is_empty() {
                map.put(spec.key(topic));
            }
        }
        let record = map.keys().map(|key| (key, runs[key.topic as usize].last.clone().collect()));
        targets[member] = Some(record.collect());
    }
    targets
}

/// The same plan without the orders of maps: for each run a member's number, a topic and partitions.
pub(crate) fn each_run(spec: &Spec<'_>, mut found: impl FnMut(usize, u32, std::ops::Range<u32>)) {
    let mut runs = runs(spec);
    for member in turns(spec) {
        for &topic in &spec.subscription(member).topics {
            found(member, topic, runs[topic as usize].give());
        }
    }
}

/// The members, ordered by [`compare`]: of each topic, an earlier member gets an earlier run.
fn turns(spec: &Spec<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..spec.members.len()).collect();
    order.sort_by(|&one, &other| compare(&spec.members[one], &spec.members[other]));
    order
}

fn runs(spec: &Spec<'_>) -> Vec<Run> {
    let mut runs: Vec<Run> = spec.topics.iter().map(|topic| Run::new(topic.partitions)).collect();
    for member in 0..spec.members.len() {
        for &topic in &spec.subscription(member).topics {
            runs[topic as usize].subscribers += 1;
        }
    }
    runs
}

/// Static members by instance id, then the others by member id.
fn compare(one: &SpecMember<'_>, other: &SpecMember<'_>) -> Ordering {
    match (one.instance, other.instance) {
        (Some(one), Some(other)) => compare_strings(one, other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => compare_strings(one.id, other.id),
    }
}

/// A topic whose partitions are being handed out.
#[derive(Clone)]
struct Run {
    partitions: u32,
    subscribers: u32,
    /// How many members had their turn.
    turns: u32,
    /// The run of the last of these members.
    last: std::ops::Range<u32>,
}

impl Run {
    fn new(partitions: u32) -> Self {
        Self { partitions, subscribers: 0, turns: 0, last: 0..0 }
    }

    /// The run of the next member.
    fn give(&mut self) -> std::ops::Range<u32> {
        let more = self.turns < self.partitions % self.subscribers;
        let end = self.last.end + self.partitions / self.subscribers + u32::from(more);
        self.last = self.last.end..end;
        self.turns += 1;
        self.last.clone()
    }
}
