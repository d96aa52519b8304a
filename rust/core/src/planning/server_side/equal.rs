//! `uniform` where all members subscribe to the same topics.

use super::java::{HashMap, IntSet};
use super::release::Extras;
use super::spec::{AssignmentDraft, AssignorError, NewTargets, Spec, Target, TopicKey};

/// Plans a group: the members get equal numbers, up to one, and each keeps its partitions up to its number. O(partitions +
/// members).
///
/// # Errors
/// Targets that overlap, or that have partitions which do not exist.
pub(crate) fn assign(spec: &Spec<'_>, rule: Extras) -> Result<NewTargets, AssignorError> {
    let topics = topic_order(spec);
    if topics.is_empty() {
        return Ok(vec![Some(Vec::new()); spec.members.len()]);
    }
    let mut kept = vec![false; spec.topics.len()];
    topics.iter().for_each(|key| kept[key.topic as usize] = true);
    let mut free = free(spec, &topics)?;
    let total = topics.iter().map(|key| spec.topics[key.topic as usize].partitions as usize).sum();
    let mut quotas = Quotas::new(total, spec.members.len(), rule);
    let mut drafts = Vec::with_capacity(spec.members.len());
    let mut hungry = Vec::new();
    for (number, member) in spec.members.iter().enumerate() {
        let has = member.target.topics.iter().filter(|(key, _)| kept[key.topic as usize]).map(|(_, list)| list.len());
        let Quota { keeps, gets } = quotas.next(has.sum());
        let mut draft = None;
        for (key, _) in member.target.topics.iter().filter(|(key, _)| !kept[key.topic as usize]) {
            draft.get_or_insert_with(|| AssignmentDraft::copy_of(member.target)).remove_topic(*key);
        }
        for (key, partition) in leaving(member.target, &kept, keeps) {
            draft.get_or_insert_with(|| AssignmentDraft::copy_of(member.target)).remove(key, partition);
            free.push((key.topic, partition));
        }
        if gets > 0 {
            hungry.push((number, gets));
        }
        drafts.push(draft);
    }
    let mut rest = free.as_slice();
    for (number, gets) in hungry {
        let (taken, left) = rest.split_at(gets.min(rest.len()));
        rest = left;
        let draft = drafts[number].get_or_insert_with(|| AssignmentDraft::copy_of(spec.members[number].target));
        for run in taken.chunk_by(|one, next| one.0 == next.0) {
            draft.add(spec.key(run[0].0), run.iter().map(|&(_, partition)| partition), IntSet::new);
        }
    }
    if rest.is_empty() {
        Ok(drafts.into_iter().map(|draft| draft.map(AssignmentDraft::into_record)).collect())
    } else {
        Err(AssignorError::Targets)
    }
}

/// The subscribed topics in the order in which their free partitions are handed out: the order of the first member's set.
pub(crate) fn topic_order(spec: &Spec<'_>) -> Vec<TopicKey> {
    let subscription = spec.subscription(0);
    let set = HashMap::of_set(subscription.names, subscription.topics.iter().map(|&topic| spec.key(topic)));
    set.keys().collect()
}

/// The partitions that a member gives up if it keeps `keeps` of them: those that come last in its maps.
pub(crate) fn leaving(target: &Target, kept: &[bool], keeps: usize) -> impl Iterator<Item = (TopicKey, u32)> {
    let visited = target.topics.iter().filter(|(key, _)| kept[key.topic as usize]);
    visited.flat_map(|(key, list)| list.iter().map(|&partition| (*key, partition))).skip(keeps)
}

/// How many of its partitions a member keeps, and how many it gets in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) keeps: usize,
    pub(crate) gets: usize,
}

/// How many partitions each member may have, member by member.
pub(crate) struct Quotas {
    /// The number that every member gets.
    least: usize,
    /// How many of the members to come get one more.
    extras: usize,
    /// How many members are to come.
    members: usize,
    rule: Extras,
}

impl Quotas {
    pub(crate) fn new(partitions: usize, members: usize, rule: Extras) -> Self {
        Self { least: partitions / members, extras: partitions % members, members, rule }
    }

    /// The quota of the next member, which has `has` partitions of subscribed topics.
    pub(crate) fn next(&mut self, has: usize) -> Quota {
        let mut extra = self.extras > 0;
        let quota = self.least + usize::from(extra);
        let keeps = has.min(quota);
        let mut gets = quota - keeps;
        if self.rule == Extras::Wanted && gets > 0 && extra && self.members > self.extras {
            // The member has no extra partition so far. More members are left than extras, so the extra goes to a later one, which
            // may have it already.
            gets -= 1;
            extra = false;
        }
        self.extras -= usize::from(extra);
        self.members -= 1;
        Quota { keeps, gets }
    }
}

/// The partitions without an owner, topic after topic.
fn free(spec: &Spec<'_>, topics: &[TopicKey]) -> Result<Vec<(u32, u32)>, AssignorError> {
    let mut owned: Vec<Vec<bool>> = vec![Vec::new(); spec.topics.len()];
    for key in topics {
        owned[key.topic as usize] = vec![false; spec.topics[key.topic as usize].partitions as usize];
    }
    for (key, list) in spec.members.iter().flat_map(|member| &member.target.topics) {
        let owned = &mut owned[key.topic as usize];
        if !owned.is_empty() {
            for &partition in list {
                let seen = owned.get_mut(partition as usize).ok_or(AssignorError::Targets)?;
                if std::mem::replace(seen, true) {
                    return Err(AssignorError::Targets);
                }
            }
        }
    }
    let mut partitions = Vec::new();
    for key in topics {
        let free = (0u32..).zip(&owned[key.topic as usize]).filter(|(_, owned)| !**owned);
        partitions.extend(free.map(|(partition, _)| (key.topic, partition)));
    }
    Ok(partitions)
}
