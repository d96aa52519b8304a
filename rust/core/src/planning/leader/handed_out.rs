//! The plans that a leader remembers, and the claims that they prove false.
//!
//! Every member knows the generation. A member that claims all partitions with the newest generation ties with the owners, and
//! contested partitions have no owner: the owners would lose all of them in each rebalance, and in a cooperative group no
//! member would read them. A leader that made the plan of that generation knows which claims are true. It believes the claims
//! of other generations.

use std::collections::BTreeMap;

use super::read::ClaimSource;
use crate::planning::group::{Group, NONE};
use crate::planning::ownership::CONTESTED;
use crate::planning::plan::Outcome;

/// A plan that the leader made, and the generations that claims of its partitions carry.
#[derive(Debug, Clone, Copy)]
pub struct HandedOut<'a> {
    /// The group's generation that the plan was made for, where the client knows it.
    pub generation: Option<i32>,
    /// The generation, or epoch, written into the assignments: see [`super::Performed::generation`].
    pub written: Option<i32>,
    /// The group that was planned.
    pub group: &'a Group,
    /// The plan.
    pub outcome: &'a Outcome,
}

/// The plans that a leader remembers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory<'a> {
    /// The plans, oldest first: the last plan that is known to have reached the group, and the plans made since. Several may be
    /// of one generation, each for other topics.
    pub plans: &'a [HandedOut<'a>],
    /// Whether the client hides the members' `group.instance.id`. Then a new member may be a static member that came back with
    /// another id, so its claims of an absent member's partitions count.
    pub anonymous: bool,
}

/// Removes the false claims from a group, and lowers `max_generation` to the newest epoch of the group, if that is certain.
/// Returns the number of false claims by member. O(plans × (claims + members × log members + topics)).
pub(super) fn void_false_claims(
    group: &mut Group,
    source: ClaimSource,
    memory: &Memory<'_>,
    forming: Option<i32>,
    max_generation: &mut i32,
) -> BTreeMap<u32, u32> {
    let mut voided = BTreeMap::new();
    let remembered = RememberedPlans::new(group, source, memory, forming);
    if source == ClaimSource::None || remembered.pasts.is_empty() {
        return voided;
    }
    if let Some(newest) = remembered.newest_epoch() {
        *max_generation = (*max_generation).min(newest);
    }
    let (mut claims, mut numbers) = (Vec::new(), Vec::new());
    let (mut claim_starts, mut number_starts) = (vec![0], vec![0]);
    for member in 0..group.members() as u32 {
        let verdict = remembered.verdict(group, member);
        let before = claims.len() + numbers.len();
        let (mut topic, mut range) = (0, 0..0);
        claims.extend(group.claims(member).iter().copied().filter(|&partition| {
            if !range.contains(&partition) {
                topic = group.topics().locate(partition).0;
                range = group.topics().range(topic);
            }
            remembered.is_true(&verdict, member, topic, partition - range.start)
        }));
        numbers.extend(
            group.numbers(member).iter().copied().filter(|&number| remembered.is_true_number(&verdict, member, number)),
        );
        claim_starts.push(claims.len() as u32);
        number_starts.push(numbers.len() as u32);
        let claimed = group.claims(member).len() + group.numbers(member).len();
        let false_ones = claimed - (claims.len() + numbers.len() - before);
        if false_ones > 0 {
            voided.insert(member, false_ones as u32);
        }
    }
    if !voided.is_empty() {
        group.replace_claims((claim_starts, claims), (number_starts, numbers));
    }
    voided
}

/// How a member's claims are judged. All claims of a member have one generation.
enum ClaimsVerdict {
    /// Another leader may have planned the generation, or it is too old to withhold anything: all claims count.
    Believed,
    /// The group has not reached the generation, or epoch, yet: no claim counts.
    False,
    /// These plans are of the generation. A claim counts if one of the plans gave the partition to the member or, in a group in
    /// which partitions wait for their holder, if the member held the partition when one of them was made.
    Planned(Vec<usize>),
    /// The generation is older than the plans, and no other plan was made since the oldest of them. A claim counts if one of the
    /// plans gave the partition to the member, or if the member held the partition when one of them was made.
    Older,
}

/// A remembered plan, with its ids for the present group's members and topics.
struct RememberedPlan<'a> {
    plan: HandedOut<'a>,
    /// By present member, its id in the plan; [`NONE`] for a new member.
    member_of: Vec<u32>,
    /// By present topic, its id in the plan; [`NONE`] if it was not planned.
    topic_of: Vec<u32>,
    /// By member of the plan, whether it is in the present group.
    present: Vec<bool>,
}

impl<'a> RememberedPlan<'a> {
    fn new(group: &Group, plan: HandedOut<'a>) -> Self {
        let old = plan.group;
        let instances: BTreeMap<&str, u32> =
            (0..old.members() as u32).filter_map(|member| Some((old.instance_id(member)?, member))).collect();
        let mut present = vec![false; old.members()];
        let member_of = (0..group.members() as u32).map(|member| {
            let by_instance = || instances.get(group.instance_id(member)?).copied();
            let was = old.member_ids().find_sorted(group.member_ids().get(member)).or_else(by_instance);
            if let Some(was) = was {
                present[was as usize] = true;
            }
            was.unwrap_or(NONE)
        });
        let member_of = member_of.collect();
        let topic_of = group.topics().names().iter().map(|name| old.topics().find(name.as_bytes()).unwrap_or(NONE));
        Self { topic_of: topic_of.collect(), plan, member_of, present }
    }

    fn is_join(&self) -> bool {
        self.plan.outcome.join.is_some()
    }

    /// The flat id of the partition in the plan, if the plan had the partition.
    fn place(&self, topic: u32, number: u32) -> Option<usize> {
        let topic = self.topic_of[topic as usize];
        if topic == NONE {
            return None;
        }
        let range = self.plan.group.topics().range(topic);
        (number < range.len() as u32).then(|| (range.start + number) as usize)
    }

    fn knows_topic(&self, topic: u32) -> bool {
        self.topic_of[topic as usize] != NONE
    }

    fn is(&self, member: u32, owner: u32) -> bool {
        owner != NONE && owner != CONTESTED && self.member_of[member as usize] == owner
    }

    /// Whether the member held the partition when the plan was made.
    fn held(&self, member: u32, place: usize) -> bool {
        self.is(member, self.plan.outcome.ownership.held.get(place).copied().unwrap_or(NONE))
    }

    /// Whether this member of the plan may be the present member. In an anonymous group a new member may be any absent member.
    fn may_be(&self, member: u32, owner: u32, anonymous: bool) -> bool {
        let replaced = || {
            anonymous
                && self.member_of[member as usize] == NONE
                && self.present.get(owner as usize).is_some_and(|&present| !present)
        };
        self.is(member, owner) || replaced()
    }
}

/// The remembered plans that may have reached the group.
struct RememberedPlans<'a> {
    pasts: Vec<RememberedPlan<'a>>,
    joins: bool,
    /// Whether partitions wait for their holder (KIP-429): then an old claim withholds a partition from its new owner.
    holds: bool,
    anonymous: bool,
    /// Whether no other leader made a plan since the oldest of these plans.
    complete: bool,
}

impl<'a> RememberedPlans<'a> {
    fn new(group: &Group, source: ClaimSource, memory: &Memory<'a>, forming: Option<i32>) -> Self {
        // A plan for the generation that is being formed has reached no member.
        let is_past =
            |plan: &&HandedOut<'a>| plan.generation.is_none_or(|past| forming.is_none_or(|forming| past < forming));
        let pasts: Vec<_> = memory.plans.iter().filter(is_past).map(|plan| RememberedPlan::new(group, *plan)).collect();
        let follows = |pair: &[RememberedPlan<'_>]| match (pair[0].plan.generation, pair[1].plan.generation) {
            (Some(one), Some(next)) => next == one || one.checked_add(1) == Some(next),
            _ => false,
        };
        let last = pasts.last().and_then(|past| past.plan.generation?.checked_add(1));
        let complete = last.is_some() && last == forming && pasts.windows(2).all(follows);
        Self {
            pasts,
            joins: matches!(source, ClaimSource::StreamJoin { .. }),
            holds: matches!(
                source,
                ClaimSource::Cooperative
                    | ClaimSource::StreamJoin { cooperative: true }
                    | ClaimSource::Custom { cooperative: true }
            ),
            anonymous: memory.anonymous,
            complete,
        }
    }

    /// The newest epoch of the group, where that is certain.
    fn newest_epoch(&self) -> Option<i32> {
        let certain = self.joins && self.complete && self.pasts.iter().all(RememberedPlan::is_join);
        self.pasts.iter().filter_map(|past| past.plan.written).max().filter(|_| certain)
    }

    fn verdict(&self, group: &Group, member: u32) -> ClaimsVerdict {
        let generation = group.generations()[member as usize];
        let by_epoch = self.joins && !group.is_stand_in(member);
        let is_of = |past: &RememberedPlan<'_>| {
            let carried = match by_epoch {
                true => past.plan.written.filter(|_| past.is_join()),
                false => past.plan.generation.or(past.plan.written.filter(|_| !past.is_join())),
            };
            generation >= 0 && carried == Some(generation)
        };
        let planned: Vec<usize> = (0..self.pasts.len()).filter(|&at| is_of(&self.pasts[at])).collect();
        if !planned.is_empty() {
            ClaimsVerdict::Planned(planned)
        } else if by_epoch && self.newest_epoch().is_some_and(|newest| generation > newest) {
            ClaimsVerdict::False
        } else if self.complete && self.holds {
            ClaimsVerdict::Older
        } else {
            ClaimsVerdict::Believed
        }
    }

    fn is_true(&self, verdict: &ClaimsVerdict, member: u32, topic: u32, number: u32) -> bool {
        match verdict {
            ClaimsVerdict::Believed => true,
            ClaimsVerdict::False => false,
            // A client whose connection broke after JoinGroup may claim the new generation with its old partitions, without
            // having received that generation's assignment. Java's does.
            ClaimsVerdict::Planned(at) => at.iter().map(|&at| &self.pasts[at]).any(|past| {
                let place = past.place(topic, number);
                let owner = place.map(|place| past.plan.outcome.plan.owner[place]);
                owner.is_some_and(|owner| past.may_be(member, owner, self.anonymous))
                    || self.holds && place.is_some_and(|place| past.held(member, place))
            }),
            // A member that missed the answer to SyncGroup keeps its partitions until an assignment lacks them. If no plan has
            // the topic, the leader cannot judge the claim and believes it.
            ClaimsVerdict::Older => {
                let mut pasts = self.pasts.iter().filter(|past| past.knows_topic(topic)).peekable();
                pasts.peek().is_none()
                    || pasts.any(|past| {
                        past.place(topic, number).is_some_and(|place| {
                            past.is(member, past.plan.outcome.plan.owner[place]) || past.held(member, place)
                        })
                    })
            }
        }
    }

    fn is_true_number(&self, verdict: &ClaimsVerdict, member: u32, number: u32) -> bool {
        match verdict {
            ClaimsVerdict::Believed | ClaimsVerdict::Older => true,
            ClaimsVerdict::False => false,
            ClaimsVerdict::Planned(at) => at.iter().map(|&at| &self.pasts[at]).any(|past| {
                let numbers = past.plan.outcome.join.as_ref().map_or(&[][..], |join| &join.owner);
                numbers.get(number as usize).is_some_and(|&owner| past.may_be(member, owner, self.anonymous))
            }),
        }
    }
}
