//! Equal subscriptions: a closed form gives how many partitions each member keeps, and the rest is dealt in a ring.

use super::release::{cut, key};
use crate::planning::group::{Group, NONE};
use crate::planning::plan::Plan;

/// The common subscription of all members with topics; `None` if they have different ones, or no member has topics.
pub(super) fn only_subscription(group: &Group) -> Option<u32> {
    let mut subscribed = group
        .subscription_of()
        .iter()
        .copied()
        .filter(|&subscription| !group.subscriptions().row(subscription).is_empty());
    let first = subscribed.next();
    first.filter(|&first| subscribed.all(|subscription| subscription == first))
}

/// Turns the previous owners into the plan of a group whose subscribers all have this subscription. O(partitions + members),
/// plus, for each member that loses partitions, the number that it held.
///
/// With `q, r = divmod(partitions, members)`, a member with at most `q` partitions keeps all of them. Of the members with more,
/// the first `r` keep `q + 1` and the others `q`. No balanced plan keeps more.
pub(super) fn assign(group: &Group, subscription: u32, plan: &mut Plan) {
    let topics = group.topics();
    let subscribers: Vec<u32> =
        (0..group.members() as u32).filter(|&m| group.subscription_of()[m as usize] == subscription).collect();
    let all: u32 = group.subscriptions().row(subscription).iter().map(|&topic| topics.count(topic)).sum();
    let q = all / subscribers.len() as u32;
    let mut spare = all % subscribers.len() as u32;

    let held = plan.loads(group.members());
    let mut keeps = vec![0; group.members()];
    for &member in &subscribers {
        let held = held[member as usize];
        let extra = u32::from(held > q && spare > 0);
        spare -= extra;
        keeps[member as usize] = held.min(q + extra);
    }
    release(group, plan, &held, &keeps);

    let below = subscribers.iter().copied().filter(|&m| keeps[m as usize] < q);
    let mut ring = Ring::new(below.map(|m| (m, q - keeps[m as usize])), group.members());
    let at_q = subscribers.iter().copied().filter(|&m| keeps[m as usize] <= q);
    let mut extras: Option<Ring> = None;
    let mut of_topic = vec![0u32; group.members()];
    for &topic in group.subscriptions().row(subscription) {
        let range = topics.range(topic).start as usize..topics.range(topic).end as usize;
        let owners = &mut plan.owner[range];
        if !owners.contains(&NONE) {
            continue;
        }
        let cap = (owners.len() as u32).div_ceil(subscribers.len() as u32);
        for &owner in owners.iter().filter(|&&owner| owner != NONE) {
            of_topic[owner as usize] += 1;
            if of_topic[owner as usize] >= cap {
                ring.pass_over(owner, topic);
                if let Some(extras) = &mut extras {
                    extras.pass_over(owner, topic);
                }
            }
        }
        for slot in owners.iter_mut().filter(|owner| **owner == NONE) {
            let member = if ring.is_empty() {
                let extras = extras.get_or_insert_with(|| {
                    let mut extras = Ring::new(at_q.clone().map(|m| (m, 1)), group.members());
                    for &member in subscribers.iter().filter(|&&m| of_topic[m as usize] >= cap) {
                        extras.pass_over(member, topic);
                    }
                    extras
                });
                extras.rewind();
                extras.take(topic)
            } else {
                ring.take(topic)
            };
            *slot = member;
            of_topic[member as usize] += 1;
            if of_topic[member as usize] >= cap {
                ring.pass_over(member, topic);
                if let Some(extras) = &mut extras {
                    extras.pass_over(member, topic);
                }
            }
        }
        for &owner in owners.iter() {
            of_topic[owner as usize] = 0;
        }
    }
}

/// Takes from each member the partitions beyond those that it keeps.
fn release(group: &Group, plan: &mut Plan, held: &[u32], keeps: &[u32]) {
    let losing = |member: u32| member != NONE && held[member as usize] > keeps[member as usize];
    let mut starts = vec![0usize; held.len() + 1];
    for member in 0..held.len() {
        starts[member + 1] = starts[member] + if losing(member as u32) { held[member] as usize } else { 0 };
    }
    if starts[held.len()] == 0 {
        return;
    }
    let mut keys = vec![0u64; starts[held.len()]];
    let mut next = starts.clone();
    for topic in 0..group.topics().len() as u32 {
        let range = group.topics().range(topic);
        for partition in range.clone() {
            let owner = plan.owner[partition as usize];
            if losing(owner) {
                keys[next[owner as usize]] = key(partition, range.start);
                next[owner as usize] += 1;
            }
        }
    }
    for member in (0..held.len() as u32).filter(|&member| losing(member)) {
        let keys = &mut keys[starts[member as usize]..starts[member as usize + 1]];
        cut(&mut plan.owner, keys, keeps[member as usize] as usize);
    }
}

/// Members that still want partitions, in a ring by ascending id with a pointer.
///
/// Path compression skips members that want no more partitions and members that the topic passes over. Without path compression,
/// many such members would make dealing quadratic.
struct Ring {
    member: Vec<u32>,
    wants: Vec<u32>,
    left: usize,
    pointer: usize,
    /// By member, its place in the ring; [`NONE`] for a member that is not in it.
    place: Vec<u32>,
    /// By place, a later place or the same: no member from the place up to, but not including, that one wants a partition.
    alive: Vec<u32>,
    /// By place, a topic and a later place: the topic passes over all members from the place up to, but not including, that one.
    passed: Vec<(u32, u32)>,
}

impl Ring {
    fn new(wants: impl Iterator<Item = (u32, u32)>, members: usize) -> Self {
        let (member, wants): (Vec<u32>, Vec<u32>) = wants.unzip();
        let places = member.len();
        let mut place = vec![NONE; members];
        for (at, &member) in member.iter().enumerate() {
            place[member as usize] = at as u32;
        }
        let alive = (0..=places as u32).collect();
        Self { member, wants, left: places, pointer: 0, place, alive, passed: vec![(NONE, 0); places] }
    }

    fn is_empty(&self) -> bool {
        self.left == 0
    }

    fn rewind(&mut self) {
        self.pointer = 0;
    }

    /// Skips the member for the rest of the topic, as long as another one is left.
    fn pass_over(&mut self, member: u32, topic: u32) {
        let place = self.place[member as usize];
        if place != NONE && self.passed[place as usize].0 != topic {
            self.passed[place as usize] = (topic, place + 1);
        }
    }

    /// The first place from `from` on whose member wants a partition, or the number of places.
    fn find_alive(&mut self, from: usize) -> usize {
        let mut end = from;
        while self.alive[end] as usize != end {
            end = self.alive[end] as usize;
        }
        let mut at = from;
        while at != end {
            at = std::mem::replace(&mut self.alive[at], end as u32) as usize;
        }
        end
    }

    /// As [`Ring::find_alive`], without the members that the topic passes over.
    fn find_allowed(&mut self, from: usize, topic: u32) -> usize {
        let start = self.find_alive(from);
        let mut end = start;
        while end < self.member.len() && self.passed[end].0 == topic {
            end = self.find_alive(self.passed[end].1 as usize);
        }
        let mut at = start;
        while at < end {
            let next = std::mem::replace(&mut self.passed[at].1, end as u32) as usize;
            at = self.find_alive(next);
        }
        end
    }

    /// The member that gets the next partition of the topic. The ring must not be empty.
    fn take(&mut self, topic: u32) -> u32 {
        let places = self.member.len();
        let pointer = self.pointer;
        let mut at = self.find_allowed(pointer, topic);
        if at == places {
            at = self.find_allowed(0, topic);
        }
        if at == places {
            at = self.find_alive(pointer);
        }
        if at == places {
            at = self.find_alive(0);
        }
        self.wants[at] -= 1;
        if self.wants[at] == 0 {
            self.left -= 1;
            self.alive[at] = at as u32 + 1;
        }
        self.pointer = if at + 1 == places { 0 } else { at + 1 };
        self.member[at]
    }
}
