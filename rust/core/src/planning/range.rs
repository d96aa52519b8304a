//! Kafka's range assignor, with racks (KIP-881).

use std::collections::BTreeMap;

use crate::planning::group::{Group, NONE};
use crate::planning::plan::Plan;
use crate::planning::subscribers::Subscribers;

/// Plans a group. Of each topic, every subscriber gets a contiguous run of partitions; the first runs are one longer where the
/// number does not divide. Static members come first, by instance id, then the others by member id. Previous owners do not
/// count.
///
/// Racks count if some topic has a subscriber on a rack of its replicas, and partitions on different racks (KIP-881). Then,
/// before the runs are laid, partitions go to members on a rack of theirs, within the same counts. Topics with the same
/// subscribers and the same number of partitions are co-partitioned: number `n` of all of them goes to one member, which must
/// be on a rack of each. A member without a rack matches every rack.
///
/// O(partitions and their racks + subscription entries) in any group, so there is no limit.
#[must_use]
pub fn assign(group: &Group) -> Plan {
    let mut plan = Plan::unassigned(group);
    let subscribers = Subscribers::new(group);
    let in_order = subscribers.in_java_order(group);
    let mut matcher = Matcher::new(group);
    // Topics with subscribers, by their set of subscribers and their partition count.
    let mut alike: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for topic in 0..group.topics().len() as u32 {
        let set = subscribers.set_of[topic as usize];
        if set != NONE {
            alike.entry((set, group.topics().count(topic))).or_default().push(topic);
        }
    }
    let informative: Vec<bool> = (0..group.topics().len() as u32)
        .map(|topic| match subscribers.set_of[topic as usize] {
            NONE => false,
            set => matcher.informative(topic, in_order.row(set)),
        })
        .collect();
    let rack_aware = informative.contains(&true);
    for ((set, count), topics) in alike {
        let subscribers = in_order.row(set);
        if rack_aware && topics.len() > 1 {
            let mut counts = TopicCounts::new(group, subscribers, count);
            matcher.match_together(&topics, subscribers, &mut counts, &mut plan.owner);
            for topic in topics {
                counts.clone().lay_runs(subscribers, matcher.owners(topic, &mut plan.owner));
            }
        } else {
            for topic in topics {
                let mut counts = TopicCounts::new(group, subscribers, count);
                if informative[topic as usize] {
                    matcher.match_alone(topic, subscribers, &mut counts, &mut plan.owner);
                }
                counts.lay_runs(subscribers, matcher.owners(topic, &mut plan.owner));
            }
        }
    }
    plan
}

/// How many partitions of one topic each subscriber may still get.
#[derive(Clone)]
struct TopicCounts {
    /// The number of partitions that every subscriber gets.
    each: u32,
    /// The number of subscribers that may get one more.
    extra: u32,
    /// By subscriber, in order, the partitions that members got before the runs are laid; empty as long as no member got any.
    got: Vec<u32>,
}

impl TopicCounts {
    fn new(group: &Group, subscribers: &[u32], count: u32) -> Self {
        debug_assert!(subscribers.len() <= group.members());
        let members = subscribers.len() as u32;
        Self { each: count / members, extra: count % members, got: Vec::new() }
    }

    fn got(&self, place: usize) -> u32 {
        self.got.get(place).copied().unwrap_or(0)
    }

    /// How many more partitions the member may get. The number never grows.
    fn room(&self, place: usize) -> u32 {
        (self.each + u32::from(self.extra > 0)).saturating_sub(self.got(place))
    }

    fn take(&mut self, place: usize, subscribers: &[u32], count: u32) {
        self.got.resize(subscribers.len(), 0);
        self.got[place] += count;
        if count > 0 && self.got[place] > self.each {
            self.extra -= 1;
        }
    }

    /// Gives the free partitions to the members in turn, to each as many as it may still get.
    fn lay_runs(&mut self, subscribers: &[u32], owners: &mut [u32]) {
        let mut free = owners.iter_mut().filter(|owner| **owner == NONE).peekable();
        for (place, &member) in subscribers.iter().enumerate() {
            if free.peek().is_none() {
                break;
            }
            let mut count = 0;
            for owner in free.by_ref().take(self.room(place) as usize) {
                *owner = member;
                count += 1;
            }
            // A member that got one more uses up an extra. No later step depends on which member this was.
            self.extra -= u32::from(count > 0 && self.got(place) + count > self.each);
        }
    }
}

/// Finds partitions on members' racks. Holds scratch space that is indexed by rack.
struct Matcher<'a> {
    group: &'a Group,
    /// By rack, and at the end for members without a rack: places of subscribers, or partitions, in order.
    lists: Vec<Vec<u32>>,
    /// By rack as above, how many entries of the list are done.
    heads: Vec<usize>,
    /// By rack, a counter.
    seen: Vec<u32>,
}

impl<'a> Matcher<'a> {
    fn new(group: &'a Group) -> Self {
        let racks = group.topics().racks().names.names().len();
        Self { group, lists: vec![Vec::new(); racks + 1], heads: vec![0; racks + 1], seen: vec![0; racks] }
    }

    /// The index of a member's rack in the lists.
    fn rack(&self, member: u32) -> usize {
        (self.group.racks()[member as usize] as usize).min(self.seen.len())
    }

    fn owners<'b>(&self, topic: u32, owner: &'b mut [u32]) -> &'b mut [u32] {
        let range = self.group.topics().range(topic);
        &mut owner[range.start as usize..range.end as usize]
    }

    /// The racks of a partition's replicas.
    fn racks_of(&self, partition: u32) -> &'a [u32] {
        let racks = self.group.topics().racks();
        racks.of_partition.get(partition as usize).map_or(&[], |&set| racks.sets.row(set))
    }

    /// Whether racks make a difference for the topic.
    fn informative(&mut self, topic: u32, subscribers: &[u32]) -> bool {
        let partitions = self.group.topics().range(topic);
        if self.group.topics().racks().of_partition.is_empty() {
            return false;
        }
        let mut all = Vec::new();
        for partition in partitions.clone() {
            for &rack in self.racks_of(partition) {
                if self.seen[rack as usize] == 0 {
                    self.seen[rack as usize] = 1;
                    all.push(rack);
                }
            }
        }
        let home = subscribers.iter().any(|&member| self.seen.get(self.rack(member)) == Some(&1));
        let uneven = partitions.into_iter().any(|partition| self.racks_of(partition).len() != all.len());
        for rack in all {
            self.seen[rack as usize] = 0;
        }
        home && uneven
    }

    /// Each member in turn gets the first partitions on its rack.
    fn match_alone(&mut self, topic: u32, subscribers: &[u32], counts: &mut TopicCounts, owner: &mut [u32]) {
        let nowhere = self.seen.len();
        for partition in self.group.topics().range(topic) {
            for &rack in self.racks_of(partition) {
                self.lists[rack as usize].push(partition);
            }
            self.lists[nowhere].push(partition);
        }
        for (place, &member) in subscribers.iter().enumerate() {
            let rack = self.rack(member);
            let room = counts.room(place);
            let mut count = 0;
            // Every partition before the head of a rack has an owner. The head only moves forward, so each list is read once.
            while let Some(&partition) = self.lists[rack].get(self.heads[rack]).filter(|_| count < room) {
                self.heads[rack] += 1;
                if owner[partition as usize] == NONE {
                    owner[partition as usize] = member;
                    count += 1;
                }
            }
            counts.take(place, subscribers, count);
        }
        for partition in self.group.topics().range(topic) {
            for &rack in self.racks_of(partition) {
                self.forget(rack as usize);
            }
        }
        self.forget(nowhere);
    }

    /// Each partition number in turn goes to the first member with room that is on a rack of that number in every topic.
    fn match_together(&mut self, topics: &[u32], subscribers: &[u32], counts: &mut TopicCounts, owner: &mut [u32]) {
        let nowhere = self.seen.len();
        if subscribers.iter().all(|&member| self.rack(member) == nowhere) {
            return;
        }
        for (place, &member) in (0u32..).zip(subscribers) {
            let rack = self.rack(member);
            self.lists[rack].push(place);
        }
        let first = self.group.topics().range(topics[0]);
        let mut common = Vec::new();
        for number in 0..first.len() as u32 {
            common.clear();
            common.push(nowhere);
            for &topic in topics {
                for &rack in self.racks_of(self.group.topics().range(topic).start + number) {
                    self.seen[rack as usize] += 1;
                    if self.seen[rack as usize] as usize == topics.len() {
                        common.push(rack as usize);
                    }
                }
            }
            for &topic in topics {
                for &rack in self.racks_of(self.group.topics().range(topic).start + number) {
                    self.seen[rack as usize] = 0;
                }
            }
            let best = common.iter().filter_map(|&rack| self.first_with_room(rack, counts)).min();
            if let Some(place) = best {
                counts.take(place as usize, subscribers, 1);
                for &topic in topics {
                    owner[(self.group.topics().range(topic).start + number) as usize] = subscribers[place as usize];
                }
            }
        }
        for &member in subscribers {
            let rack = self.rack(member);
            self.forget(rack);
        }
    }

    /// The first place on a rack's list that still has room. Room never grows, so a place without room is skipped for good.
    fn first_with_room(&mut self, rack: usize, counts: &TopicCounts) -> Option<u32> {
        while let Some(&place) = self.lists[rack].get(self.heads[rack]) {
            if counts.room(place as usize) > 0 {
                return Some(place);
            }
            self.heads[rack] += 1;
        }
        None
    }

    fn forget(&mut self, rack: usize) {
        self.lists[rack].clear();
        self.heads[rack] = 0;
    }
}
