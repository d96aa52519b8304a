//! The claims, settled a second time.
//!
//! `planning::settlement` and `planning::stream_join` sort the members by age and let the first claim of a partition win. Here
//! the members come in any order, and the newest claim so far is kept for each partition. The two share no code, so a mistake in
//! one of them shows as a difference between their results.

use super::{PlanFault, member_name, name, subscribed_topics};
use crate::planning::group::{Group, NONE};
use crate::planning::objective::Rules;
use crate::planning::ownership::{CONTESTED, NEVER, Ownership};

/// The newest claim of each partition, or of each number of a stream join.
struct Newest {
    /// By partition, the age of the newest claim: the greater, the newer.
    age: Vec<i64>,
    /// By partition, the member that made it; [`CONTESTED`] if several did.
    claimant: Vec<u32>,
}

impl Newest {
    fn new(count: usize) -> Self {
        Self { age: vec![i64::MIN; count], claimant: vec![NONE; count] }
    }

    /// Enters a claim. A claim of a number that is not eligible does not count.
    fn enter(&mut self, at: u32, age: i64, member: u32) {
        let (Some(newest), Some(claimant)) = (self.age.get_mut(at as usize), self.claimant.get_mut(at as usize)) else {
            return;
        };
        if age > *newest {
            (*newest, *claimant) = (age, member);
        } else if age == *newest && *claimant != member {
            *claimant = CONTESTED;
        }
    }
}

/// The topic and the number of a partition. Claims come topic by topic, so the next claim is mostly of the same topic as the
/// last.
struct Place<'a> {
    group: &'a Group,
    topic: u32,
}

impl Place<'_> {
    fn of(&mut self, partition: u32) -> (u32, u32) {
        let topics = self.group.topics();
        if !topics.range(self.topic).contains(&partition) {
            self.topic = topics.locate(partition).0;
        }
        (self.topic, partition - topics.range(self.topic).start)
    }
}

/// By member, the age of its claims; `None` where they are false. No member has been in `forming`, the generation that is being
/// formed, nor in [`NEVER`].
fn ages(group: &Group, rules: Rules, forming: Option<i32>) -> Vec<Option<i64>> {
    let age = |member: u32| {
        let generation = group.generations()[member as usize];
        let has_epoch = matches!(rules, Rules::StreamJoin { .. }) && generation >= 0 && !group.is_stand_in(member);
        if has_epoch {
            // An epoch counts assignments and a generation counts rebalances: every epoch beats every generation.
            (generation != NEVER).then(|| i64::from(generation) + (1 << 32))
        } else {
            (generation < forming.unwrap_or(NEVER)).then(|| i64::from(generation))
        }
    };
    (0..group.members() as u32).map(age).collect()
}

/// The ownership that the members' claims make; `None` if the group keeps the claims as a difference to other owners.
fn settled(group: &Group, rules: Rules, forming: Option<i32>, owner: &[u32]) -> Option<Ownership> {
    let partitions = group.topics().partitions();
    let ages = ages(group, rules, forming);
    let mut holders = Newest::new(if rules.cooperative() { partitions } else { 0 });
    let mut place = Place { group, topic: 0 };
    let owner = match rules {
        Rules::Partitions { .. } | Rules::Custom { .. } => {
            let mut owners = Newest::new(partitions);
            let complete = group.each_claim(owner, |member, partition| {
                let Some(age) = ages[member as usize] else { return };
                if group.subscribes(member, place.of(partition).0) {
                    owners.enter(partition, age, member);
                }
                holders.enter(partition, age, member);
            });
            let owned = |claimant| if claimant == CONTESTED { NONE } else { claimant };
            complete.then(|| owners.claimant.into_iter().map(owned).collect())
        }
        Rules::StreamJoin { .. } => {
            let eligible = subscribed_topics(group).map(|topic| group.topics().count(topic)).min().unwrap_or(0);
            let mut numbers = Newest::new(eligible as usize);
            let complete = group.each_claim(owner, |member, partition| {
                let Some(age) = ages[member as usize] else { return };
                if group.numbers(member).is_empty() && !group.subscription(member).is_empty() {
                    numbers.enter(place.of(partition).1, age, member);
                }
                holders.enter(partition, age, member);
            });
            for (member, age) in (0u32..).zip(&ages) {
                if let &Some(age) = age
                    && !group.subscription(member).is_empty()
                {
                    group.numbers(member).iter().for_each(|&number| numbers.enter(number, age, member));
                }
            }
            complete.then(|| owners_of(group, &numbers.claimant))
        }
    };
    owner.map(|owner| Ownership { owner, held: holders.claimant })
}

/// By partition, the owner of its number, if that member subscribes to the topic.
fn owners_of(group: &Group, numbers: &[u32]) -> Vec<u32> {
    let mut owner = vec![NONE; group.topics().partitions()];
    for topic in subscribed_topics(group) {
        for (partition, &claimant) in group.topics().range(topic).zip(numbers) {
            if claimant != NONE && claimant != CONTESTED && group.subscribes(claimant, topic) {
                owner[partition as usize] = claimant;
            }
        }
    }
    owner
}

/// Checks that the ownership is the one that the members' claims make.
pub(super) fn check(group: &Group, rules: Rules, forming: Option<i32>, ownership: &Ownership) -> Result<(), PlanFault> {
    let Some(settled) = settled(group, rules, forming, &ownership.owner) else {
        return Err(PlanFault::Ownership { partition: "the list of owners".to_owned() });
    };
    if ownership.held.len() != settled.held.len() {
        return Err(PlanFault::Ownership { partition: "the list of holders".to_owned() });
    }
    let differs =
        |given: &[u32], settled: &[u32]| given.iter().zip(settled).position(|(given, settled)| given != settled);
    let found = differs(&ownership.owner, &settled.owner)
        .map(|at| ("owner", at, ownership.owner[at], settled.owner[at]))
        .or_else(|| {
            differs(&ownership.held, &settled.held).map(|at| ("holder", at, ownership.held[at], settled.held[at]))
        });
    let Some((role, at, given, settled)) = found else { return Ok(()) };
    let described = |member: u32| match member {
        NONE => format!("no {role}"),
        CONTESTED => format!("several members as {role}"),
        member => format!("member {:?} as {role}", member_name(group, member)),
    };
    let (given, settled) = (described(given), described(settled));
    Err(PlanFault::Settlement { partition: name(group, at as u32), given, settled })
}
