//! A group at a glance: one plan for members and the partitions that they own, without a history.

use crate::planning::group::{Group, NONE};
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;

use super::equal::{Quota, Quotas, leaving, topic_order};
use super::java::{HashMap, TimelineHashMap, Uuid, string_hash};
use super::release::Release;
use super::spec::{Spec, SpecMember, SpecSubscription, SpecTopic, Target, TopicKey};
use super::{Assignor, range, unequal};

/// Plans a group of dense ids. O(partitions + subscription entries), but for the levelling of unequal subscriptions.
#[must_use]
pub fn assign(group: &Group, ownership: &Ownership, assignor: Assignor, release: Release) -> Plan {
    let topics: Vec<SpecTopic> = (0..group.topics().len() as u32)
        .map(|topic| SpecTopic {
            id: Uuid::of_name(group.topics().names().get(topic), 0),
            partitions: group.topics().count(topic),
        })
        .collect();
    let subscriptions: Vec<SpecSubscription> =
        group.subscriptions().rows().map(|row| in_name_order(group, row)).collect();
    let order = in_map_order(group);
    let equal = order.windows(2).all(|pair| {
        let [one, other] = [pair[0], pair[1]].map(|member| group.subscription_of()[member as usize]);
        one == other || group.subscription(pair[0]) == group.subscription(pair[1])
    });
    // The orders of all targets count only where subscriptions differ.
    let levelled = assignor == Assignor::Uniform && !equal;
    let wanted = vec![levelled; group.members()];
    let targets = targets(group, ownership, &topics, &wanted);
    let member = |&member: &u32| SpecMember {
        id: group.member_ids().get(member),
        instance: group.instance_id(member),
        subscription: group.subscription_of()[member as usize],
        target: &targets[member as usize],
    };
    let members: Vec<SpecMember<'_>> = order.iter().map(member).collect();
    let spec = Spec { topics: &topics, subscriptions: &subscriptions, members: &members, equal };
    let mut plan = Plan::unassigned(group);
    if members.is_empty() {
        return plan;
    }
    if assignor == Assignor::Range {
        range::each_run(&spec, |member, topic, run| {
            let first = group.topics().range(topic).start;
            plan.owner[(first + run.start) as usize..(first + run.end) as usize].fill(order[member]);
        });
    } else if levelled {
        // `targets` lists only partitions below the count of their topic.
        let records = unequal::assign(&spec).expect("targets of partitions that exist");
        for (&member, record) in order.iter().zip(records) {
            for (key, list) in record.as_ref().unwrap_or(&targets[member as usize].topics) {
                let first = group.topics().range(key.topic).start;
                list.iter().for_each(|&partition| plan.owner[(first + partition) as usize] = member);
            }
        }
    } else {
        plan.owner.clone_from(&ownership.owner);
        plan.owner.resize(group.topics().partitions(), NONE);
        hand_out_evenly(group, &spec, &order, release, &mut plan);
    }
    plan
}

/// `uniform` with equal subscriptions, from the owners in the plan. The order of a member's maps decides only which partitions
/// it gives up. So the maps are made only for members that give up partitions.
fn hand_out_evenly(group: &Group, spec: &Spec<'_>, order: &[u32], release: Release, plan: &mut Plan) {
    let topics = topic_order(spec);
    let loads = plan.loads(group.members());
    let total = topics.iter().map(|key| group.topics().count(key.topic) as usize).sum();
    let mut quotas = Quotas::new(total, order.len(), release.extras());
    let quotas_of: Vec<Quota> = order.iter().map(|&member| quotas.next(loads[member as usize] as usize)).collect();
    let mut free = Vec::new();
    for key in &topics {
        free.extend(group.topics().range(key.topic).filter(|&partition| plan.owner[partition as usize] == NONE));
    }
    let mut gives = vec![false; group.members()];
    for (&member, quota) in order.iter().zip(&quotas_of) {
        gives[member as usize] = (loads[member as usize] as usize) > quota.keeps;
    }
    if gives.contains(&true) {
        let ownership = Ownership { owner: std::mem::take(&mut plan.owner), held: Vec::new() };
        let targets = targets(group, &ownership, spec.topics, &gives);
        plan.owner = ownership.owner;
        let kept = vec![true; spec.topics.len()];
        for (&member, quota) in order.iter().zip(&quotas_of) {
            for (key, partition) in leaving(&targets[member as usize], &kept, quota.keeps) {
                free.push(group.topics().range(key.topic).start + partition);
            }
        }
    }
    let mut free = free.into_iter();
    for (&member, quota) in order.iter().zip(&quotas_of) {
        for partition in free.by_ref().take(quota.gets) {
            plan.owner[partition as usize] = member;
        }
    }
}

/// The members in the order in which the assignor sees them, if they joined in the order of their ids.
fn in_map_order(group: &Group) -> Vec<u32> {
    let mut timeline = TimelineHashMap::new();
    let mut map = HashMap::<&str>::new();
    let mut numbers = hashbrown::HashMap::new();
    for member in 0..group.members() as u32 {
        let id = group.member_ids().get(member);
        numbers.insert(id, member);
        for _ in 0..2 {
            timeline.put(member, string_hash(id));
        }
    }
    for member in timeline.iter() {
        map.put(group.member_ids().get(member));
    }
    map.keys().map(|id| numbers[id]).collect()
}

/// A subscription in the order of the set of its names.
fn in_name_order(group: &Group, row: &[u32]) -> SpecSubscription {
    let names = group.topics().names();
    let number: hashbrown::HashMap<&str, u32> = row.iter().map(|&topic| (names.get(topic), topic)).collect();
    let set = HashMap::of_set(row.len(), row.iter().map(|&topic| names.get(topic)));
    SpecSubscription { topics: set.keys().map(|name| number[name]).collect(), names: row.len() }
}

/// The partitions that the wanted members own, as targets that are read from their records. The targets of the others are empty.
fn targets(group: &Group, ownership: &Ownership, topics: &[SpecTopic], wanted: &[bool]) -> Vec<Target> {
    let mut records: Vec<Vec<(TopicKey, Vec<u32>)>> = vec![Vec::new(); group.members()];
    if !wanted.contains(&true) {
        return vec![Target::default(); group.members()];
    }
    for topic in 0..group.topics().len() as u32 {
        let range = group.topics().range(topic);
        let owners = ownership.owner.get(range.start as usize..range.end as usize).unwrap_or(&[]);
        for (partition, &owner) in (0u32..).zip(owners) {
            if owner == NONE || !wanted[owner as usize] {
                continue;
            }
            let record = &mut records[owner as usize];
            match record.last_mut() {
                Some((key, list)) if key.topic == topic => list.push(partition),
                _ => record.push((TopicKey { topic, id: topics[topic as usize].id }, vec![partition])),
            }
        }
    }
    records.into_iter().map(Target::read_back).collect()
}
