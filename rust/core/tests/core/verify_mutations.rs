//! The verification must notice mistakes that are made on purpose: in the settlement of claims, in a solver's plan, in
//! restrictions, and in the plan that a cooperative rebalance assigns. Each mistake is a row of a table and is made in many
//! random groups.

use std::cmp::Reverse;
use std::ops::Range;

use crate::oracle::brute::{Shape, random_group};
use crate::oracle::{Random, more_seeds, seeds};
use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{Csr, Group, NONE};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::ownership::{CONTESTED, NEVER, Ownership};
use kafka_assignors_core::planning::plan::{LeavesOut, Outcome, Plan};
use kafka_assignors_core::planning::restrictions::Restrictions;
use kafka_assignors_core::planning::strategy::{Strategy, assign, plan, plan_restricted, settle};
use kafka_assignors_core::verify::{Certificate, PlanFault, verify_outcome, verify_outcome_from, verify_restricted};

const SHAPE: Shape = Shape { topics: 5, partitions: 8, members: 7 };
const STICKY: Strategy = Strategy::Sticky(Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness });
const COOPERATIVE: Strategy =
    Strategy::CooperativeSticky(Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness });
const JOIN: Strategy = Strategy::StreamJoin { cooperative: false };
const COOPERATIVE_JOIN: Strategy = Strategy::StreamJoin { cooperative: true };
/// The newest generation of `random_group`. If the rebalance forms this generation, claims of it are false.
const FORMING: Option<i32> = Some(5);

/// A random group with additional claims, so that some contested partitions have an older claim too.
fn claimed(random: &mut Random) -> Group {
    let mut def = random_group(random, SHAPE);
    let partitions: Vec<(String, u32)> =
        def.topics.iter().map(|(name, topic)| (name.clone(), topic.partitions)).collect();
    for (name, partitions) in partitions {
        for number in 0..partitions as i32 {
            if !def.members.is_empty() && random.chance(40) {
                let claimant = random.below(def.members.len());
                def.members[claimant].owned.push((name.clone(), number));
            }
        }
    }
    def.build()
}

// ---- the settlement ---------------------------------------------------------------------------------------------------

/// The winner of several claims with the newest generation.
#[derive(Clone, Copy, PartialEq)]
enum Tie {
    Contested,
    First,
    Last,
}

/// A third implementation of the settlement: a simple one, with a switch for each mistake.
#[derive(Clone, Copy)]
struct Settlement {
    newest_wins: bool,
    tie: Tie,
    /// Whether a contested partition stays contested when there is an older claim.
    contested_stays: bool,
    /// Whether a claim of the generation that is being formed is false.
    forming_counts: bool,
    /// Whether a member holds its claimed partitions of topics to which it no longer subscribes.
    left_is_held: bool,
    contested_is_held: bool,
    /// Whether one claim is ignored.
    drops_a_claim: bool,
    /// Whether one claim is credited to the next member.
    to_the_next: bool,
    /// Whether the first subscriber of a partition without claims becomes its owner.
    invents: bool,
}

const RIGHT: Settlement = Settlement {
    newest_wins: true,
    tie: Tie::Contested,
    contested_stays: true,
    forming_counts: true,
    left_is_held: true,
    contested_is_held: true,
    drops_a_claim: false,
    to_the_next: false,
    invents: false,
};

const WRONG_SETTLEMENTS: [(&str, Settlement); 10] = [
    ("a stale generation wins", Settlement { newest_wins: false, ..RIGHT }),
    ("of equal claims the first wins", Settlement { tie: Tie::First, ..RIGHT }),
    ("of equal claims the last wins", Settlement { tie: Tie::Last, ..RIGHT }),
    ("an older claim settles a contest", Settlement { contested_stays: false, ..RIGHT }),
    ("a claim of the generation that is being formed counts", Settlement { forming_counts: false, ..RIGHT }),
    ("what a member has left is free", Settlement { left_is_held: false, ..RIGHT }),
    ("what is contested is free", Settlement { contested_is_held: false, ..RIGHT }),
    ("a claim is lost", Settlement { drops_a_claim: true, ..RIGHT }),
    ("a claim is settled to the wrong member", Settlement { to_the_next: true, ..RIGHT }),
    ("a claim is invented", Settlement { invents: true, ..RIGHT }),
];

/// A claim: its age, the member, the partition.
type Claim = (i32, u32, u32);

impl Settlement {
    fn claims(self, group: &Group) -> Vec<Claim> {
        let end = FORMING.filter(|_| self.forming_counts).unwrap_or(NEVER);
        let members = (0..group.members() as u32).filter(|&member| group.generations()[member as usize] < end);
        let claims = members.flat_map(|member| {
            group.claims(member).iter().map(move |&partition| (group.generations()[member as usize], member, partition))
        });
        let mut claims: Vec<Claim> = claims.collect();
        claims.sort_unstable();
        claims.dedup();
        if self.drops_a_claim {
            claims.pop();
        }
        if self.to_the_next
            && let Some(last) = claims.last_mut()
        {
            last.1 = (last.1 + 1) % group.members() as u32;
        }
        claims
    }

    fn winner(self, mut claims: Vec<Claim>) -> u32 {
        claims.sort_by_key(|&(age, member, _)| (Reverse(age), member));
        if !self.newest_wins {
            claims.reverse();
        }
        let mut ages = claims.chunk_by(|a, b| a.0 == b.0);
        let mut winner = NONE;
        while winner == NONE || winner == CONTESTED && !self.contested_stays {
            let Some(of_age) = ages.next() else { break };
            winner = match (of_age, self.tie) {
                ([one], _) | ([one, ..], Tie::First) | ([.., one], Tie::Last) => one.1,
                _ => CONTESTED,
            };
        }
        winner
    }

    fn settle(self, group: &Group, held: bool) -> Ownership {
        let claims = self.claims(group);
        let topic_of = group.topics().of_partitions();
        let mut owner = vec![NONE; topic_of.len()];
        let mut holders = vec![NONE; if held { topic_of.len() } else { 0 }];
        for (partition, &topic) in (0u32..).zip(&topic_of) {
            let all: Vec<Claim> = claims.iter().copied().filter(|claim| claim.2 == partition).collect();
            let subscribed: Vec<Claim> = all.iter().copied().filter(|claim| group.subscribes(claim.1, topic)).collect();
            let first = (0..group.members() as u32).find(|&member| group.subscribes(member, topic));
            if self.invents
                && all.is_empty()
                && let Some(first) = first
            {
                owner[partition as usize] = first;
            }
            if held {
                let winner = self.winner(if self.left_is_held { all } else { subscribed.clone() });
                holders[partition as usize] =
                    if winner == CONTESTED && !self.contested_is_held { NONE } else { winner };
            }
            match self.winner(subscribed) {
                NONE | CONTESTED => {}
                winner => owner[partition as usize] = winner,
            }
        }
        Ownership { owner, held: holders }
    }
}

#[test]
fn the_plain_settlement_is_the_core_s() {
    for seed in seeds(2_000) {
        let group = claimed(&mut Random::new(seed));
        for strategy in [STICKY, COOPERATIVE] {
            let ownership = settle(&group, strategy, FORMING);
            assert_eq!(RIGHT.settle(&group, strategy == COOPERATIVE), ownership, "seed {seed}");
        }
    }
}

/// The plan of a wrong settlement is correct otherwise: it is optimal for the settled claims.
#[test]
fn every_wrong_settlement_is_noticed() {
    settle_wrongly(seeds(800));
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn every_wrong_settlement_is_noticed_more() {
    settle_wrongly(more_seeds(800..3_000));
}

fn settle_wrongly(seeds: Range<u64>) {
    for (mistake, wrong) in WRONG_SETTLEMENTS {
        let mut made: u64 = 0;
        for seed in seeds.clone() {
            let group = claimed(&mut Random::new(seed));
            for strategy in [STICKY, COOPERATIVE] {
                let ownership = wrong.settle(&group, strategy == COOPERATIVE);
                if ownership == settle(&group, strategy, FORMING) {
                    continue;
                }
                let outcome = plan(&group, strategy, ownership, &Limit::default());
                // The claims in two forms: as a list, and as a leader keeps them, as the difference to the settled owners.
                let mut packed = group.clone();
                packed.pack_claims(&outcome.ownership.owner, 0);
                for group in [&group, &packed] {
                    let verdict = verify_outcome(group, strategy.rules(), FORMING, &outcome);
                    let noticed = matches!(verdict, Err(PlanFault::Settlement { .. } | PlanFault::Ownership { .. }));
                    assert!(noticed, "seed {seed}: {mistake}: {verdict:?}");
                }
                made += 1;
            }
        }
        assert!(60 * made > seeds.end - seeds.start, "{mistake}: made {made} times");
    }
}

type Change = fn(&Group, &mut Ownership, &mut Random) -> bool;

/// Changes a random partition; false if the group has none that can be changed.
const CHANGES: [(&str, Change); 6] = [
    ("an owner becomes nobody", |_, ownership, random| change(&mut ownership.owner, random, |_| NONE)),
    ("an owner becomes another member", |group, ownership, random| {
        let members = group.members() as u32;
        change(&mut ownership.owner, random, |owner| if owner == NONE { 0 } else { (owner + 1) % members })
    }),
    ("a holder becomes nobody", |_, ownership, random| change(&mut ownership.held, random, |_| NONE)),
    ("a holder becomes another member", |group, ownership, random| {
        let members = group.members() as u32;
        change(&mut ownership.held, random, |held| if held >= CONTESTED { 0 } else { (held + 1) % members })
    }),
    ("a holder becomes contested", |_, ownership, random| change(&mut ownership.held, random, |_| CONTESTED)),
    ("the holders are missing", |_, ownership, _| {
        let had = !ownership.held.is_empty();
        ownership.held.clear();
        had
    }),
];

fn change(slots: &mut [u32], random: &mut Random, to: impl Fn(u32) -> u32) -> bool {
    if slots.is_empty() {
        return false;
    }
    let slot = &mut slots[random.below(slots.len())];
    let before = std::mem::replace(slot, to(*slot));
    *slot != before
}

/// The same for a stream join, which settles by number.
#[test]
fn every_change_of_a_settlement_is_noticed() {
    change_each_settlement(seeds(400));
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn every_change_of_a_settlement_is_noticed_more() {
    change_each_settlement(more_seeds(400..1_500));
}

fn change_each_settlement(seeds: Range<u64>) {
    for (mistake, wrong) in CHANGES {
        let mut made = 0;
        for seed in seeds.clone() {
            let random = &mut Random::new(seed);
            let group = claimed(random);
            for strategy in [STICKY, COOPERATIVE, JOIN, COOPERATIVE_JOIN] {
                let mut ownership = settle(&group, strategy, FORMING);
                let right = plan(&group, strategy, ownership.clone(), &Limit::default());
                assert!(verify_outcome(&group, strategy.rules(), FORMING, &right).is_ok(), "seed {seed}");
                // The claims in the form in which a leader keeps them.
                let mut packed = group.clone();
                packed.pack_claims(&ownership.owner, 0);
                assert!(verify_outcome(&packed, strategy.rules(), FORMING, &right).is_ok(), "seed {seed}");
                if wrong(&group, &mut ownership, random) {
                    let outcome = Outcome { ownership, ..right };
                    assert!(verify_outcome(&group, strategy.rules(), FORMING, &outcome).is_err(), "{mistake}: {seed}");
                    assert!(verify_outcome(&packed, strategy.rules(), FORMING, &outcome).is_err(), "{mistake}: {seed}");
                    made += 1;
                }
            }
        }
        assert!(made > 50, "{mistake}: made {made} times");
    }
}

/// The verification notices claims that were settled for another generation than the one that the rebalance forms.
#[test]
fn the_generation_that_is_being_formed_is_part_of_the_settlement() {
    let mut made = 0;
    for seed in seeds(500) {
        let group = claimed(&mut Random::new(seed));
        for strategy in [STICKY, COOPERATIVE, JOIN, COOPERATIVE_JOIN] {
            for other in [None, Some(3)] {
                let outcome = assign(&group, strategy, FORMING);
                if assign(&group, strategy, other).ownership != outcome.ownership {
                    assert!(verify_outcome(&group, strategy.rules(), other, &outcome).is_err(), "seed {seed}");
                    made += 1;
                }
            }
        }
    }
    assert!(made > 100, "made {made} times");
}

// ---- the solvers' answers ---------------------------------------------------------------------------------------------

/// Makes a plan worse or invalid; false if the group has no partition for that.
type Worsening = fn(&Group, &Ownership, &mut Plan, &mut Random) -> bool;

const WORSENINGS: [(&str, Worsening); 7] = [
    ("a partition goes to nobody", |_, _, plan, random| pick(plan, random, |_, owner| owner != NONE, |_| NONE)),
    ("a partition goes to a member that does not subscribe", |group, _, plan, random| {
        let stranger = |topic| (0..group.members() as u32).find(|&member| !group.subscribes(member, topic));
        let topic_of = group.topics().of_partitions();
        pick(plan, random, |p, _| stranger(topic_of[p]).is_some(), |p| stranger(topic_of[p]).unwrap_or(NONE))
    }),
    ("a partition goes to no member", |group, _, plan, random| {
        pick(plan, random, |_, owner| owner != NONE, |_| group.members() as u32)
    }),
    ("a partition nobody subscribes to is assigned", |_, _, plan, random| {
        pick(plan, random, |_, owner| owner == NONE, |_| 0)
    }),
    ("a partition goes to a member that has as many or more", |group, _, plan, random| {
        let loads = plan.loads(group.members());
        let topic_of = group.topics().of_partitions();
        let owner = plan.owner.clone();
        let fuller = |p: usize| {
            (0..group.members() as u32).find(|&member| {
                owner[p] != NONE
                    && member != owner[p]
                    && group.subscribes(member, topic_of[p])
                    && loads[member as usize] >= loads[owner[p] as usize]
            })
        };
        pick(plan, random, |p, _| fuller(p).is_some(), |p| fuller(p).unwrap_or(NONE))
    }),
    ("two partitions that stay where they were change places", |group, ownership, plan, _| {
        let topic_of = group.topics().of_partitions();
        let stays = |p: usize| plan.owner[p] != NONE && plan.owner[p] == ownership.owner[p];
        let pairs = (0..topic_of.len()).flat_map(|p| (0..p).map(move |q| (p, q)));
        let pair = pairs.into_iter().find(|&(p, q)| {
            stays(p) && stays(q) && plan.owner[p] != plan.owner[q] && {
                group.subscribes(plan.owner[p], topic_of[q]) && group.subscribes(plan.owner[q], topic_of[p])
            }
        });
        pair.inspect(|&(p, q)| plan.owner.swap(p, q)).is_some()
    }),
    ("a partition is missing", |_, _, plan, _| plan.owner.pop().is_some()),
];

/// Gives a random partition that `fits` to another owner.
fn pick(plan: &mut Plan, random: &mut Random, fits: impl Fn(usize, u32) -> bool, to: impl Fn(usize) -> u32) -> bool {
    let fitting: Vec<usize> = (0..plan.owner.len()).filter(|&p| fits(p, plan.owner[p])).collect();
    let Some(&partition) = (!fitting.is_empty()).then(|| &fitting[random.below(fitting.len())]) else { return false };
    let before = std::mem::replace(&mut plan.owner[partition], to(partition));
    plan.owner[partition] != before
}

/// Whether the verification refuses the plan, or proves that there is a better one.
fn is_noticed(verdict: &Result<Certificate, PlanFault>) -> bool {
    verdict.as_ref().is_ok_and(|certificate| certificate.limited.is_none() && !certificate.is_optimal())
        || verdict.is_err()
}

#[test]
fn every_worse_answer_of_a_solver_is_noticed() {
    for (mistake, worsen) in WORSENINGS {
        let mut made = 0;
        for seed in seeds(1_500) {
            let random = &mut Random::new(seed);
            let group = claimed(random);
            let right = assign(&group, STICKY, FORMING);
            let mut wrong = right.clone();
            if worsen(&group, &right.ownership, &mut wrong.plan, random) {
                let verdict = verify_outcome(&group, STICKY.rules(), FORMING, &wrong);
                assert!(is_noticed(&verdict), "seed {seed}: {mistake}: {verdict:?}");
                // For every start of the search.
                let start = right.plan.clone();
                let limit = Limit::default();
                let verdict = verify_outcome_from(&group, STICKY.rules(), FORMING, &wrong, &start, &limit);
                assert!(is_noticed(&verdict), "seed {seed}: {mistake}: {verdict:?}");
                made += 1;
            }
        }
        assert!(made > 50, "{mistake}: made {made} times");
    }
}

/// A certificate is optimal only if every bound is met. A missing bound proves nothing.
#[test]
fn a_certificate_is_optimal_only_with_every_bound_met() {
    let group = claimed(&mut Random::new(1));
    let outcome = assign(&group, STICKY, FORMING);
    let right = verify_outcome(&group, STICKY.rules(), FORMING, &outcome).unwrap();
    assert!(right.is_optimal());
    let worse: [fn(&mut Certificate); 6] = [
        |certificate| certificate.score += 1,
        |certificate| certificate.moved += 1,
        |certificate| certificate.rack_misses += 1,
        |certificate| certificate.score_bound = None,
        |certificate| certificate.moved_bound = None,
        |certificate| certificate.rack_misses_bound = None,
    ];
    for change in worse {
        let mut certificate = right;
        change(&mut certificate);
        assert!(!certificate.is_optimal(), "{certificate:?}");
    }
}

// ---- what a cooperative rebalance hands out -----------------------------------------------------------------------------

type Handing = fn(&mut Outcome, &mut Random) -> bool;

const HANDINGS: [(&str, Handing); 5] = [
    ("a partition is handed out while another member holds it", |outcome, random| {
        let target = outcome.target().owner.clone();
        pick(&mut outcome.plan, random, |p, now| now == NONE && target[p] != NONE, |p| target[p])
    }),
    ("a partition is held back without need", |outcome, random| {
        pick(&mut outcome.plan, random, |_, now| now != NONE, |_| NONE)
    }),
    ("a partition is handed to another member than the target's", |outcome, random| {
        let plan = outcome.plan.clone();
        pick(&mut outcome.plan, random, |_, now| now != NONE, |p| u32::from(plan.owner[p] == 0))
    }),
    ("nothing is withheld", |outcome, _| {
        outcome.withholding.take().is_some_and(|target| std::mem::replace(&mut outcome.plan, target.clone()) != target)
    }),
    ("what is withheld is on its way to nobody", |outcome, random| {
        let plan = outcome.plan.clone();
        let Some(target) = outcome.withholding.as_mut() else { return false };
        pick(target, random, |p, then| then != NONE && plan.owner[p] == NONE, |_| NONE)
    }),
];

#[test]
fn every_wrong_handing_out_is_noticed() {
    for (mistake, wrong) in HANDINGS {
        for strategy in [COOPERATIVE, COOPERATIVE_JOIN] {
            let mut made = 0;
            for seed in seeds(1_500) {
                let random = &mut Random::new(seed);
                let group = claimed(random);
                let mut outcome = assign(&group, strategy, FORMING);
                if wrong(&mut outcome, random) {
                    let verdict = verify_outcome(&group, strategy.rules(), FORMING, &outcome);
                    assert!(verdict.is_err(), "seed {seed}: {mistake}: {verdict:?}");
                    made += 1;
                }
            }
            assert!(made > 50, "{mistake}, {strategy:?}: made {made} times");
        }
    }
}

#[test]
fn an_eager_plan_that_withholds_is_refused() {
    for (eager, cooperative) in [(STICKY, COOPERATIVE), (JOIN, COOPERATIVE_JOIN)] {
        for seed in seeds(100) {
            let group = claimed(&mut Random::new(seed));
            let outcome = assign(&group, cooperative, FORMING);
            assert!(verify_outcome(&group, eager.rules(), FORMING, &outcome).is_err(), "seed {seed}");
        }
    }
}

// ---- restrictions ------------------------------------------------------------------------------------------------------

/// Random sets of members for some partitions, and limits for some members.
fn restricted(group: &Group, random: &mut Random) -> Restrictions {
    let members = group.members() as u32;
    let mut sets = Csr::new();
    for _ in 0..3 {
        sets.push_row(&(0..members).filter(|_| random.chance(60)).collect::<Vec<u32>>());
    }
    let mut set = |_| if random.chance(40) { NONE } else { random.below(3) as u32 };
    let set_of = (0..group.topics().partitions()).map(&mut set).collect();
    let mut most = |_| if random.chance(50) { u32::MAX } else { random.below(4) as u32 };
    let capacity = (0..members).map(&mut most).collect();
    Restrictions { sets, set_of, capacity }
}

/// Forgets or invents a restriction; false if there is none of the kind.
type Misreading = fn(&mut Restrictions, &mut Random) -> bool;

const MISREADINGS: [(&str, Misreading); 6] = [
    ("a set has lost a member", |restrictions, random| {
        let at = random.below(3);
        let mut sets = Csr::new();
        for (set, row) in restrictions.sets.rows().enumerate() {
            sets.push_row(&row[usize::from(set == at && !row.is_empty())..]);
        }
        std::mem::replace(&mut restrictions.sets, sets) != restrictions.sets
    }),
    ("a partition has the set of another", |restrictions, random| {
        change(&mut restrictions.set_of, random, |set| if set == NONE { 0 } else { (set + 1) % 3 })
    }),
    ("a restricted partition is for everybody", |restrictions, random| {
        change(&mut restrictions.set_of, random, |_| NONE)
    }),
    ("a limit is too small", |restrictions, random| {
        change(&mut restrictions.capacity, random, |most| if most == u32::MAX { most } else { most.saturating_sub(1) })
    }),
    ("a limit is too large", |restrictions, random| {
        change(&mut restrictions.capacity, random, |most| most.saturating_add(1))
    }),
    ("a member without a limit has one", |restrictions, random| {
        change(&mut restrictions.capacity, random, |most| if most == u32::MAX { 1 } else { most })
    }),
];

/// The solver makes a group out of the restrictions, and the verification another one. A plan for other restrictions is refused,
/// or proven to be worse, unless it is as good as the right one.
#[test]
fn every_misread_restriction_is_noticed() {
    let measures = |of: &Certificate| (of.left_out, of.score, of.moved);
    for (mistake, misread) in MISREADINGS {
        let (mut made, mut refused, mut worse) = (0, 0, 0);
        for seed in seeds(1_500) {
            let random = &mut Random::new(seed);
            let group = claimed(random);
            let restrictions = restricted(&group, random);
            let mut wrong = restrictions.clone();
            if !misread(&mut wrong, random) {
                continue;
            }
            made += 1;
            let ownership = settle(&group, STICKY, FORMING);
            let planned = |restrictions: Restrictions| {
                plan_restricted(&group, ownership.clone(), restrictions, &Limit::default())
            };
            let verify =
                |outcome: &Outcome| verify_restricted(&group, &restrictions, FORMING, outcome, &Limit::default());
            let right = verify(&planned(restrictions.clone())).expect("a valid plan");
            assert!(right.is_optimal(), "seed {seed}: {right:?}");
            // The plan is the wrong one, the reasons for partitions without an owner are those of the right restrictions.
            let leaves_out = LeavesOut::Restricted(Box::new(restrictions.clone()));
            match verify(&Outcome { leaves_out, ..planned(wrong) }) {
                Err(_) => refused += 1,
                Ok(found) if measures(&found) == measures(&right) => {
                    assert!(found.is_optimal(), "seed {seed}: {mistake}")
                }
                Ok(found) => {
                    worse += 1;
                    assert!(!found.is_optimal(), "seed {seed}: {mistake}: {found:?}");
                }
            }
        }
        assert!(made > 200 && refused + worse > 50, "{mistake}: made {made}, refused {refused}, worse {worse}");
    }
}
