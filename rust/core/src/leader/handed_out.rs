//! What a leader remembers of what it handed out, and the claims that are false by it.
//!
//! A generation is no secret: a member that claims everything with the newest one would be as new as the owners, who would
//! lose all of it with it, rebalance after rebalance, and in a cooperative group nobody would read on. A leader that made the
//! plan of that generation knows better. What it does not know it believes.

use std::collections::BTreeMap;

use super::read::ClaimSource;
use crate::group::{Group, NONE};
use crate::ownership::CONTESTED;
use crate::strategy::Outcome;

/// A plan that the leader made, and what the members' claims of it carry.
#[derive(Debug, Clone, Copy)]
pub struct HandedOut<'a> {
    /// The group's generation that it was made for, where the client told it.
    pub generation: Option<i32>,
    /// What was written into the assignments: see [`super::Performed::generation`].
    pub written: Option<i32>,
    /// The group as it was planned.
    pub group: &'a Group,
    /// What became of it.
    pub outcome: &'a Outcome,
}

/// What a leader remembers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory<'a> {
    /// Its plans, oldest first: the last one that it knows to have reached the group, and those made since. Several may be of
    /// one generation, each for other topics.
    pub plans: &'a [HandedOut<'a>],
    /// Whether the client keeps the members' `group.instance.id` to itself. Then a member that was not there is taken for a
    /// static one that came back under another id, as far as it claims what one that has gone was given.
    pub anonymous: bool,
}

/// Takes the false claims out of a group, and out of `max_generation` the epochs. By member, how many claims were false.
/// O(plans × (claims + members × log members + topics)).
pub(super) fn void_false_claims(
    group: &mut Group,
    source: ClaimSource,
    memory: &Memory<'_>,
    forming: Option<i32>,
    max_generation: &mut i32,
) -> BTreeMap<u32, u32> {
    let mut voided = BTreeMap::new();
    let known = Known::new(group, source, memory, forming);
    if source == ClaimSource::None || known.pasts.is_empty() {
        return voided;
    }
    if let Some(newest) = known.newest_epoch() {
        *max_generation = (*max_generation).min(newest);
    }
    let (mut claims, mut numbers) = (Vec::new(), Vec::new());
    let (mut claim_starts, mut number_starts) = (vec![0], vec![0]);
    for member in 0..group.members() as u32 {
        let verdict = known.verdict(group, member);
        let before = claims.len() + numbers.len();
        let (mut topic, mut range) = (0, 0..0);
        claims.extend(group.claims(member).iter().copied().filter(|&partition| {
            if !range.contains(&partition) {
                topic = group.topics().locate(partition).0;
                range = group.topics().range(topic);
            }
            known.is_true(&verdict, member, topic, partition - range.start)
        }));
        numbers.extend(
            group.numbers(member).iter().copied().filter(|&number| known.is_true_number(&verdict, member, number)),
        );
        claim_starts.push(claims.len() as u32);
        number_starts.push(numbers.len() as u32);
        let told = group.claims(member).len() + group.numbers(member).len();
        let false_ones = told - (claims.len() + numbers.len() - before);
        if false_ones > 0 {
            voided.insert(member, false_ones as u32);
        }
    }
    if !voided.is_empty() {
        group.replace_claims((claim_starts, claims), (number_starts, numbers));
    }
    voided
}

/// What the leader knows of a member's claims, all of which are of one generation.
enum Verdict {
    /// Of a generation that somebody else may have planned.
    Believed,
    /// Of a generation that has not been.
    False,
    /// It must be in one of these plans, those of that generation; or held then, where partitions wait for who holds them.
    Planned(Vec<usize>),
    /// From before the plans, all of which the leader knows: it must be as the leader found it then.
    Older,
}

/// A plan, as seen from the group of now.
struct Past<'a> {
    plan: HandedOut<'a>,
    /// By member of now, who it was; [`NONE`] for one that was not there.
    member_of: Vec<u32>,
    /// By topic of now, which it was; [`NONE`] if it was not planned.
    topic_of: Vec<u32>,
    /// By member of then, whether it is there.
    present: Vec<bool>,
}

impl<'a> Past<'a> {
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

    /// The place of a partition in the plan, if it had one.
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

    /// Whether the leader found it with the member then.
    fn held(&self, member: u32, place: usize) -> bool {
        self.is(member, self.plan.outcome.ownership.held.get(place).copied().unwrap_or(NONE))
    }

    /// Whether the owner of then may be the member of now, as far as an anonymous group tells.
    fn may_be(&self, member: u32, owner: u32, anonymous: bool) -> bool {
        let replaced = || {
            anonymous
                && self.member_of[member as usize] == NONE
                && self.present.get(owner as usize).is_some_and(|&present| !present)
        };
        self.is(member, owner) || replaced()
    }
}

struct Known<'a> {
    pasts: Vec<Past<'a>>,
    joins: bool,
    /// Whether partitions wait for those who hold them, so that an old claim can keep others out.
    holds: bool,
    anonymous: bool,
    /// Whether nobody else made a plan since the oldest of these.
    complete: bool,
}

impl<'a> Known<'a> {
    fn new(group: &Group, source: ClaimSource, memory: &Memory<'a>, forming: Option<i32>) -> Self {
        // A plan for the generation that is being formed has reached nobody.
        let over =
            |plan: &&HandedOut<'a>| plan.generation.is_none_or(|past| forming.is_none_or(|forming| past < forming));
        let pasts: Vec<_> = memory.plans.iter().filter(over).map(|plan| Past::new(group, *plan)).collect();
        let follows = |pair: &[Past<'_>]| match (pair[0].plan.generation, pair[1].plan.generation) {
            (Some(one), Some(next)) => next == one || one.checked_add(1) == Some(next),
            _ => false,
        };
        let last = pasts.last().and_then(|past| past.plan.generation?.checked_add(1));
        let complete = last.is_some() && last == forming && pasts.windows(2).all(follows);
        Self {
            pasts,
            joins: matches!(source, ClaimSource::StreamJoin { .. }),
            holds: matches!(source, ClaimSource::Cooperative | ClaimSource::StreamJoin { cooperative: true }),
            anonymous: memory.anonymous,
            complete,
        }
    }

    /// The newest epoch there has been, where that is certain.
    fn newest_epoch(&self) -> Option<i32> {
        let certain = self.joins && self.complete && self.pasts.iter().all(Past::is_join);
        self.pasts.iter().filter_map(|past| past.plan.written).max().filter(|_| certain)
    }

    fn verdict(&self, group: &Group, member: u32) -> Verdict {
        let generation = group.generations()[member as usize];
        let by_epoch = self.joins && !group.is_stand_in(member);
        let is_of = |past: &Past<'_>| {
            let carried = match by_epoch {
                true => past.plan.written.filter(|_| past.is_join()),
                false => past.plan.generation.or(past.plan.written.filter(|_| !past.is_join())),
            };
            generation >= 0 && carried == Some(generation)
        };
        let planned: Vec<usize> = (0..self.pasts.len()).filter(|&at| is_of(&self.pasts[at])).collect();
        if !planned.is_empty() {
            Verdict::Planned(planned)
        } else if by_epoch && self.newest_epoch().is_some_and(|newest| generation > newest) {
            Verdict::False
        } else if self.complete && self.holds {
            Verdict::Older
        } else {
            Verdict::Believed
        }
    }

    fn is_true(&self, verdict: &Verdict, member: u32, topic: u32, number: u32) -> bool {
        match verdict {
            Verdict::Believed => true,
            Verdict::False => false,
            // Some clients (Java's, when the connection breaks) say the generation that they have joined, though they never heard
            // what they were given in it, and still have what they had.
            Verdict::Planned(at) => at.iter().map(|&at| &self.pasts[at]).any(|past| {
                let place = past.place(topic, number);
                let owner = place.map(|place| past.plan.outcome.plan.owner[place]);
                owner.is_some_and(|owner| past.may_be(member, owner, self.anonymous))
                    || self.holds && place.is_some_and(|place| past.held(member, place))
            }),
            // Who missed the answer to SyncGroup still has what it had, until it is told to give it up. A topic that was not
            // planned is nothing that the leader knows anything of.
            Verdict::Older => {
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

    fn is_true_number(&self, verdict: &Verdict, member: u32, number: u32) -> bool {
        match verdict {
            Verdict::Believed | Verdict::Older => true,
            Verdict::False => false,
            Verdict::Planned(at) => at.iter().map(|&at| &self.pasts[at]).any(|past| {
                let numbers = past.plan.outcome.join.as_ref().map_or(&[][..], |join| &join.owner);
                numbers.get(number as usize).is_some_and(|&owner| past.may_be(member, owner, self.anonymous))
            }),
        }
    }
}
