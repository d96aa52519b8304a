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
pub(super) fn assign(group: &Group, subscription: u32, plan: &mut Plan) {
    let held = plan.loads(group.members());
    match group.subscriptions().row(subscription) {
        &[topic] => {
            let range = group.topics().range(topic);
            let owners = &mut plan.owner[range.start as usize..range.end as usize];
            Shares::new(group, subscription, held).deal_one_topic(owners);
        }
        topics => Shares::new(group, subscription, held.clone()).deal(topics, &held, plan),
    }
}

/// The numbers of partitions that the members of a group keep and get.
///
/// With `q, r = divmod(partitions, subscribers)`, a subscriber with at most `q` partitions keeps all of them. Of the members with more,
/// the first `r` keep `q + 1` and the others `q`. No balanced plan keeps more.
struct Shares<'a> {
    group: &'a Group,
    /// The common subscription of the subscribers.
    subscription: u32,
    /// By member, the number of partitions that it keeps.
    keeps: Vec<u32>,
    q: u32,
    /// The number of members that get `q + 1` and keep fewer.
    spare: u32,
}

impl<'a> Shares<'a> {
    /// `held` has the number of partitions that each member has.
    fn new(group: &'a Group, subscription: u32, held: Vec<u32>) -> Self {
        let topics = group.topics();
        let all: u32 = group.subscriptions().row(subscription).iter().map(|&topic| topics.count(topic)).sum();
        let mut shares = Self { group, subscription, keeps: held, q: 0, spare: 0 };
        let subscribers = shares.subscribers().count() as u32;
        (shares.q, shares.spare) = (all / subscribers, all % subscribers);
        for (keeps, &of) in shares.keeps.iter_mut().zip(group.subscription_of()) {
            let extra = u32::from(of == subscription && *keeps > shares.q && shares.spare > 0);
            shares.spare -= extra;
            *keeps = if of == subscription { (*keeps).min(shares.q + extra) } else { 0 };
        }
        shares
    }

    /// The members with the subscription, ascending.
    fn subscribers(&self) -> impl Iterator<Item = u32> + Clone + use<'a> {
        let subscription = self.subscription;
        let of_members = (0u32..).zip(self.group.subscription_of());
        of_members.filter(move |&(_, &of)| of == subscription).map(|(member, _)| member)
    }

    /// Deals the partitions of the only topic. O(partitions + members).
    ///
    /// Members keep the first of their partitions. The others go, in ascending order, to the members below `q`, which get one each
    /// in every round, by ascending id; then the spare ones to the first members with `q`. A member that the topic would pass over
    /// in [`Shares::deal`] wants no more partitions here.
    fn deal_one_topic(mut self, owners: &mut [u32]) {
        let kept: u32 = self.keeps.iter().sum();
        let mut getting = Vec::with_capacity(owners.len() - kept as usize + 1);
        getting.extend(self.subscribers().filter(|&member| self.keeps[member as usize] < self.q));
        // The members of the last round that want another one get one in the next.
        let (mut start, mut round) = (0, 1);
        while start < getting.len() {
            let end = getting.len();
            for place in start..end {
                let member: u32 = getting[place];
                if self.keeps[member as usize] + round < self.q {
                    getting.push(member);
                }
            }
            (start, round) = (end, round + 1);
        }
        let at_q = self.subscribers().filter(|&member| self.keeps[member as usize] <= self.q);
        getting.extend(at_q.take(self.spare as usize));
        let mut next = 0;
        if getting.len() * FEW < owners.len() {
            // The branch nearly always goes the same way.
            for owner in owners {
                match self.keeps.get_mut(*owner as usize) {
                    Some(left) if *left > 0 => *left -= 1,
                    _ => {
                        *owner = getting[next];
                        next += 1;
                    }
                }
            }
            return;
        }
        // The processor could not predict which partitions are dealt, so no branch depends on it. The last places of the two lists are
        // for partitions without an owner, and for those that are kept behind the last dealt one.
        let members = self.keeps.len();
        self.keeps.push(0);
        getting.push(NONE);
        for owner in owners {
            let left = &mut self.keeps[(*owner as usize).min(members)];
            let free = *left == 0;
            *left -= u32::from(!free);
            let member = getting[next];
            *owner = if free { member } else { *owner };
            next += usize::from(free);
        }
    }

    /// Deals the partitions of several topics, in a ring. If possible, no member gets more than its part of each topic.
    /// `held` has the number of partitions that each member has.
    fn deal(self, subscribed: &[u32], held: &[u32], plan: &mut Plan) {
        let Self { group, ref keeps, q, .. } = self;
        let topics = group.topics();
        release(group, plan, held, keeps);
        let subscribers = self.subscribers();
        let count = subscribers.clone().count() as u32;
        let below = subscribers.clone().filter(|&m| keeps[m as usize] < q);
        let mut ring = Ring::new(below.map(|m| (m, q - keeps[m as usize])), group.members());
        let at_q = subscribers.clone().filter(|&m| keeps[m as usize] <= q);
        let mut extras: Option<Ring> = None;
        let mut of_topic = vec![0u32; group.members()];
        for &topic in subscribed {
            let range = topics.range(topic).start as usize..topics.range(topic).end as usize;
            let owners = &mut plan.owner[range];
            if !owners.contains(&NONE) {
                continue;
            }
            let cap = (owners.len() as u32).div_ceil(count);
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
                        for member in subscribers.clone().filter(|&m| of_topic[m as usize] >= cap) {
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
}

/// Few partitions are dealt if they are less than one in this many.
const FEW: usize = 16;

/// Takes from each member the partitions beyond those that it keeps.
fn release(group: &Group, plan: &mut Plan, held: &[u32], keeps: &[u32]) {
    // By member, the place of its next key; NONE for a member that loses nothing, and, in the last place, for no member.
    let mut next = vec![NONE; held.len() + 1];
    let mut losing = 0;
    for (member, (&held, _)) in held.iter().zip(keeps).enumerate().filter(|(_, (held, keeps))| held > keeps) {
        next[member] = losing;
        losing += held;
    }
    if losing == 0 {
        return;
    }
    let mut keys = vec![0u64; losing as usize];
    for topic in 0..group.topics().len() as u32 {
        let range = group.topics().range(topic);
        let owners = &plan.owner[range.start as usize..range.end as usize];
        for (partition, &owner) in range.clone().zip(owners) {
            debug_assert!(owner == NONE || (owner as usize) < held.len(), "{owner} is none of {} members", held.len());
            let next = &mut next[(owner as usize).min(held.len())];
            if let Some(slot) = keys.get_mut(*next as usize) {
                *slot = key(partition, range.start);
                *next += 1;
            }
        }
    }
    let mut rest = keys.as_mut_slice();
    for (&held, &keeps) in held.iter().zip(keeps).filter(|(held, keeps)| held > keeps) {
        let (keys, others) = rest.split_at_mut(held as usize);
        cut(&mut plan.owner, keys, keeps as usize);
        rest = others;
    }
}

/// Members that still want partitions, in a ring by ascending id with a pointer.
///
/// Path compression skips members that want no more partitions and members that the topic passes over. Without path compression,
/// many such members would make dealing quadratic.
struct Ring {
    places: Vec<RingPlace>,
    /// The members that want partitions.
    left: usize,
    pointer: usize,
    /// By member, its place in the ring; [`NONE`] for a member that is not in it.
    place_of: Vec<u32>,
}

/// The place of a member in a ring.
struct RingPlace {
    member: u32,
    /// The partitions that the member wants.
    wants: u32,
    /// A later place or the same: no member from this place up to, but not including, that one wants a partition.
    alive: u32,
    /// A topic and a later place: the topic passes over all members from this place up to, but not including, that one.
    passed: (u32, u32),
}

impl Ring {
    fn new(wants: impl Iterator<Item = (u32, u32)>, members: usize) -> Self {
        let mut place_of = vec![NONE; members];
        let mut places = Vec::with_capacity(members);
        for (at, (member, wants)) in (0u32..).zip(wants) {
            place_of[member as usize] = at;
            places.push(RingPlace { member, wants, alive: at, passed: (NONE, 0) });
        }
        Self { left: places.len(), pointer: 0, place_of, places }
    }

    fn is_empty(&self) -> bool {
        self.left == 0
    }

    fn rewind(&mut self) {
        self.pointer = 0;
    }

    /// Skips the member for the rest of the topic, as long as another one is left.
    fn pass_over(&mut self, member: u32, topic: u32) {
        let at = self.place_of[member as usize];
        if let Some(place) = self.places.get_mut(at as usize).filter(|place| place.passed.0 != topic) {
            place.passed = (topic, at + 1);
        }
    }

    /// The first place from `from` on whose member wants a partition, or the number of places.
    fn find_alive(&mut self, from: usize) -> usize {
        let next = |places: &[RingPlace], at: usize| places.get(at).map_or(at, |place| place.alive as usize);
        let mut end = from;
        while next(&self.places, end) != end {
            end = next(&self.places, end);
        }
        let mut at = from;
        while at != end {
            at = std::mem::replace(&mut self.places[at].alive, end as u32) as usize;
        }
        end
    }

    /// As [`Ring::find_alive`], without the members that the topic passes over.
    fn find_allowed(&mut self, from: usize, topic: u32) -> usize {
        let start = self.find_alive(from);
        let mut end = start;
        while let Some(place) = self.places.get(end).filter(|place| place.passed.0 == topic) {
            end = self.find_alive(place.passed.1 as usize);
        }
        let mut at = start;
        while at < end {
            let next = std::mem::replace(&mut self.places[at].passed.1, end as u32) as usize;
            at = self.find_alive(next);
        }
        end
    }

    /// The member that gets the next partition of the topic. The ring must not be empty.
    fn take(&mut self, topic: u32) -> u32 {
        let places = self.places.len();
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
        self.pointer = if at + 1 == places { 0 } else { at + 1 };
        let place = &mut self.places[at];
        place.wants -= 1;
        if place.wants == 0 {
            self.left -= 1;
            place.alive = at as u32 + 1;
        }
        place.member
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planning::group::{GroupBuilder, TopicSpec, Topics};

    /// Checks it for a group of which some members subscribe to the only topic, with these owners of its partitions.
    fn one_topic_is_dealt_as_several(owner: &[Option<u32>], subscribes: &[bool]) {
        let spec = TopicSpec { name: "t", partitions: owner.len() as i64, racks: None };
        let mut builder = GroupBuilder::new(Topics::new(vec![spec]).unwrap());
        for (member, &subscribes) in subscribes.iter().enumerate() {
            let subscription = builder.subscription(if subscribes { &[0] } else { &[] });
            builder.member(&format!("m{member:02}"), subscription).finish();
        }
        let group = builder.finish();
        // Only subscribers own partitions. If there are none, nothing is dealt.
        let able = |&member: &u32| subscribes.get(member as usize) == Some(&true);
        let owner: Vec<u32> = owner.iter().map(|owner| owner.filter(able).unwrap_or(NONE)).collect();
        if let Some(subscription) = only_subscription(&group) {
            let before = Plan { owner };
            let (mut one, mut several) = (before.clone(), before.clone());
            assign(&group, subscription, &mut one);
            let held = before.loads(group.members());
            Shares::new(&group, subscription, held.clone()).deal(&[0], &held, &mut several);
            assert_eq!(one.owner, several.owner);
        }
    }

    proptest! {
        #[test]
        fn one_topic_of_any_owners(
            owner in prop::collection::vec(prop::option::weighted(0.8, 0u32..12), 1..60),
            subscribes in prop::collection::vec(any::<bool>(), 1..12),
        ) {
            one_topic_is_dealt_as_several(&owner, &subscribes);
        }

        /// Nearly all partitions stay with their owner.
        #[test]
        fn one_topic_of_balanced_owners(
            partitions in 1usize..200,
            members in 1u32..20,
            changed in prop::collection::vec((0usize..200, prop::option::of(0u32..20)), 0..8),
        ) {
            let mut owner: Vec<Option<u32>> = (0..partitions).map(|at| Some(at as u32 % members)).collect();
            for (at, other) in changed {
                owner[at % partitions] = other;
            }
            one_topic_is_dealt_as_several(&owner, &vec![true; members as usize]);
        }
    }
}
