//! The subscribers of topics, once for all topics with the same subscribers.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::planning::group::{Csr, Group, NONE};

/// The sets of subscribers of topics. Each member has one subscription, so a set of subscribers is a set of subscriptions that
/// some member has. The sets are numbered in order of their first topic.
pub(crate) struct Subscribers {
    /// By subscription, its members, ascending.
    pub(crate) members: Csr,
    /// Whether each subscription is that of exactly one member.
    alone: bool,
    /// By topic, its set; [`NONE`] for a topic without partitions or subscribers.
    pub(crate) set_of: Vec<u32>,
    /// Topic to the subscriptions that have it, ascending.
    by_topic: Csr,
    /// By set, the first topic that has it.
    first_topic: Vec<u32>,
    /// By set, the number of its members.
    pub(crate) sizes: Vec<u32>,
}

impl Subscribers {
    /// O(subscription entries of the distinct subscriptions).
    pub(crate) fn new(group: &Group) -> Self {
        let topics = group.topics();
        let members = Csr::group_by(group.subscription_of(), group.subscriptions().len());
        let unused = members.rows().any(<[u32]>::is_empty);
        let alone = !unused && group.members() == group.subscriptions().len();
        let by_topic = if unused {
            // A subscription that no member has adds no subscribers.
            let mut used = Csr::new();
            for (row, members) in group.subscriptions().rows().zip(members.rows()) {
                used.push_row(if members.is_empty() { &[] } else { row });
            }
            used.transpose(topics.len())
        } else {
            group.subscriptions().transpose(topics.len())
        };
        let mut known: HashTable<u32> = HashTable::with_capacity(topics.len());
        let mut first_topic: Vec<u32> = Vec::new();
        let hash = |row: &[u32]| FxBuildHasher.hash_one(row);
        let mut set_of = vec![NONE; topics.len()];
        for (topic, row) in (0u32..).zip(by_topic.rows()) {
            if row.is_empty() || topics.range(topic).is_empty() {
                continue;
            }
            let of_set = |set: u32| by_topic.row(first_topic[set as usize]);
            let hashed = hash(row);
            if let Some(&set) = known.find(hashed, |&set| of_set(set) == row) {
                set_of[topic as usize] = set;
            } else {
                let set = first_topic.len() as u32;
                known.insert_unique(hashed, set, |&set| hash(of_set(set)));
                first_topic.push(topic);
                set_of[topic as usize] = set;
            }
        }
        let size = |row: &[u32]| row.iter().map(|&subscription| members.row(subscription).len() as u32).sum();
        let rows = first_topic.iter().map(|&topic| by_topic.row(topic));
        let sizes = if alone { rows.map(|row| row.len() as u32).collect() } else { rows.map(size).collect() };
        Self { members, alone, set_of, by_topic, first_topic, sizes }
    }

    /// The number of sets.
    pub(crate) fn len(&self) -> usize {
        self.first_topic.len()
    }

    /// A set as its subscriptions, ascending.
    pub(crate) fn subscriptions(&self, set: u32) -> &[u32] {
        self.by_topic.row(self.first_topic[set as usize])
    }

    /// Takes the members of all sets, ascending, without a copy; afterwards no set has members. `None`, and nothing is taken, unless
    /// each topic has a set of its own and each member a subscription of its own, whose number is that of the member.
    pub(crate) fn take_members(&mut self) -> Option<Csr> {
        let as_numbered =
            |members: &Csr| (0u32..).zip(members.items()).all(|(subscription, &member)| subscription == member);
        let apart = self.alone && self.len() == self.set_of.len() && as_numbered(&self.members);
        apart.then(|| std::mem::take(&mut self.by_topic))
    }

    /// All sets as subscriptions. O(subscription entries of the distinct subscriptions).
    pub(crate) fn sets(&self) -> Csr {
        let mut sets = Csr::new();
        (0..self.len() as u32).for_each(|set| sets.push_row(self.subscriptions(set)));
        sets
    }

    /// Puts the members of a set into `into`, ascending.
    pub(crate) fn put_members(&self, set: u32, into: &mut Vec<u32>) {
        into.clear();
        let subscriptions = self.subscriptions(set);
        if self.alone {
            let member_of = self.members.items();
            into.extend(subscriptions.iter().map(|&subscription| member_of[subscription as usize]));
        } else {
            for &subscription in subscriptions {
                into.extend_from_slice(self.members.row(subscription));
            }
        }
        if !into.is_sorted() {
            into.sort_unstable();
        }
    }

    /// By set, its members in ascending order. O(subscription entries of all members), times a logarithm for sorting.
    pub(crate) fn by_id(&self) -> Csr {
        self.each_sorted(|_| {})
    }

    /// By set, its members in the order in which Kafka's range and round-robin assignors go through them; see
    /// [`java_order`]. O(subscription entries of all members), times a logarithm for sorting.
    pub(crate) fn in_java_order(&self, group: &Group) -> Csr {
        let order = java_order(group);
        let mut rank = vec![0u32; order.len()];
        for (place, &member) in (0u32..).zip(&order) {
            rank[member as usize] = place;
        }
        self.each_sorted(|members| members.sort_unstable_by_key(|&member| rank[member as usize]))
    }

    fn each_sorted(&self, sort: impl Fn(&mut [u32])) -> Csr {
        let (mut sorted, mut members) = (Csr::new(), Vec::new());
        for set in 0..self.len() as u32 {
            self.put_members(set, &mut members);
            sort(&mut members);
            sorted.push_row(&members);
        }
        sorted
    }
}

/// All members in the order of Kafka's range and round-robin assignors: static members first, by instance id, then the others
/// by member id. Two members with one instance id, which no broker allows, are in order of member id.
pub(crate) fn java_order(group: &Group) -> Vec<u32> {
    let mut order: Vec<u32> = (0..group.members() as u32).collect();
    order.sort_by_key(|&member| {
        let instance = group.instance_id(member);
        (instance.is_none(), instance)
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::group::{GroupBuilder, TopicSpec, Topics};

    /// A group of the topics 0 and 1, of one partition each, and of members with these subscriptions. The subscriptions are
    /// numbered in the order of `numbered`.
    fn group(numbered: &[&[u32]], members: &[&[u32]]) -> Group {
        let topic = |name| TopicSpec { name, partitions: 1, racks: None };
        let mut builder = GroupBuilder::new(Topics::new(vec![topic("a"), topic("b")]).unwrap());
        for topics in numbered {
            builder.subscription(topics);
        }
        for (id, topics) in ["m0", "m1", "m2"].into_iter().zip(members) {
            let subscription = builder.subscription(topics);
            builder.member(id, subscription).finish();
        }
        builder.finish()
    }

    #[test]
    fn members_are_taken_only_where_the_group_lists_them_by_topic() {
        let taken = |numbered: &[&[u32]], members: &[&[u32]]| {
            let mut subscribers = Subscribers::new(&group(numbered, members));
            let sets: Vec<Vec<u32>> = subscribers.by_id().rows().map(<[u32]>::to_vec).collect();
            subscribers.take_members().map(|members| {
                assert_eq!(members.rows().collect::<Vec<_>>(), sets);
                sets
            })
        };
        assert_eq!(taken(&[], &[&[0, 1], &[1]]), Some(vec![vec![0], vec![0, 1]]));
        // Two members have one subscription; both topics have one set; a topic has no subscriber; members and subscriptions
        // have different numbers.
        assert_eq!(taken(&[], &[&[0, 1], &[1], &[1]]), None);
        assert_eq!(taken(&[], &[&[0, 1]]), None);
        assert_eq!(taken(&[], &[&[1]]), None);
        assert_eq!(taken(&[&[1], &[0, 1]], &[&[0, 1], &[1]]), None);
    }
}
