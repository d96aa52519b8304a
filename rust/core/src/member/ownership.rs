//! The partitions that the member owns, each with the number of its acquisition.
//!
//! ```text
//! owned (1) ── commit asked for ── lost ── another member reads on ── owned (2) ── commit sent?
//! ```
//!
//! The offset belongs to acquisition 1. Committed in acquisition 2, it would move the group back behind the records that the
//! other member has read.

use super::event::Partitions;
use std::collections::BTreeMap;

/// Topic and partition to the number of the acquisition.
type Acquired = BTreeMap<String, BTreeMap<i32, u64>>;

/// The partitions that are owned, and those given up for the running rebalance.
#[derive(Debug, Clone)]
pub(super) struct OwnedPartitions {
    owned: Acquired,
    /// Given up for the running rebalance (eager). If the next generation gives a partition back, no other member has had it.
    released: Acquired,
    /// Given up by the application, while the coordinator still counts them as the member's: it accepts their last commits.
    outgoing: Acquired,
    acquisitions: u64,
    /// The generation whose assignment was taken last; -1 for none.
    pub(super) taken_in: i32,
    /// The newest generation that this member entered with a JoinGroup that names its owned partitions; -1 for none.
    pub(super) claimed_in: i32,
}

impl Default for OwnedPartitions {
    fn default() -> Self {
        Self {
            owned: Acquired::default(),
            released: Acquired::default(),
            outgoing: Acquired::default(),
            acquisitions: 0,
            taken_in: -1,
            claimed_in: -1,
        }
    }
}

fn list(acquired: &Acquired) -> Partitions {
    acquired.iter().map(|(topic, numbers)| (topic.clone(), numbers.keys().copied().collect())).collect()
}

fn since(acquired: &Acquired, topic: &str, partition: i32) -> Option<u64> {
    acquired.get(topic)?.get(&partition).copied()
}

fn take(acquired: &mut Acquired, topic: &str, partition: i32) -> Option<u64> {
    let numbers = acquired.get_mut(topic)?;
    let since = numbers.remove(&partition);
    if numbers.is_empty() {
        acquired.remove(topic);
    }
    since
}

impl OwnedPartitions {
    pub(super) fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    pub(super) fn partitions(&self) -> Partitions {
        list(&self.owned)
    }

    /// The acquisition that an offset of this partition belongs to.
    pub(super) fn since(&self, topic: &str, partition: i32) -> Option<u64> {
        since(&self.owned, topic, partition)
    }

    /// The same acquisition for a commit that the application has asked for, perhaps in the callback in which it gave the
    /// partition up.
    pub(super) fn committed_since(&self, topic: &str, partition: i32) -> Option<u64> {
        self.since(topic, partition).or_else(|| since(&self.outgoing, topic, partition))
    }

    /// The owned partitions of topics that are not wanted.
    pub(super) fn outside(&self, wanted: impl Fn(&str) -> bool) -> Partitions {
        let mut all = self.partitions();
        all.retain(|(topic, _)| !wanted(topic));
        all
    }

    /// The partitions of `assigned` that are new, and the owned ones that are not in `assigned`, which ascends.
    pub(super) fn compare(&self, assigned: &Partitions) -> (Partitions, Partitions) {
        let mut added = Vec::new();
        for (topic, numbers) in assigned {
            let new: Vec<i32> = numbers.iter().copied().filter(|&number| self.since(topic, number).is_none()).collect();
            if !new.is_empty() {
                added.push((topic.clone(), new));
            }
        }
        let mut gone = Vec::new();
        for (topic, numbers) in &self.owned {
            let kept = assigned.binary_search_by(|(other, _)| other.cmp(topic)).ok().map(|at| &assigned[at].1);
            let left: Vec<i32> = numbers
                .keys()
                .copied()
                .filter(|number| kept.is_none_or(|kept| kept.binary_search(number).is_err()))
                .collect();
            if !left.is_empty() {
                gone.push((topic.clone(), left));
            }
        }
        (added, gone)
    }

    pub(super) fn add(&mut self, partitions: &Partitions) {
        self.acquisitions += 1;
        for (topic, numbers) in partitions {
            for &number in numbers {
                let since = take(&mut self.released, topic, number).unwrap_or(self.acquisitions);
                self.owned.entry(topic.clone()).or_default().entry(number).or_insert(since);
            }
        }
    }

    /// The application has given these partitions up because the member lost them: another member may own them already.
    pub(super) fn remove(&mut self, partitions: &Partitions) {
        for (topic, numbers) in partitions {
            for &number in numbers {
                take(&mut self.owned, topic, number);
            }
        }
    }

    /// The application has given these partitions up. Another member may own them once the coordinator knows of it.
    pub(super) fn give_up(&mut self, partitions: &Partitions) {
        for (topic, numbers) in partitions {
            for &number in numbers {
                if let Some(since) = take(&mut self.owned, topic, number) {
                    self.outgoing.entry(topic.clone()).or_default().insert(number, since);
                }
            }
        }
    }

    /// As [`OwnedPartitions::give_up`], but no other member owns these partitions before the next generation.
    pub(super) fn release(&mut self, partitions: &Partitions) {
        self.give_up(partitions);
        for (topic, numbers) in partitions {
            for &number in numbers {
                if let Some(since) = since(&self.outgoing, topic, number) {
                    self.released.entry(topic.clone()).or_default().insert(number, since);
                }
            }
        }
    }

    /// The coordinator does not count the given-up partitions as the member's any more.
    pub(super) fn forget_outgoing(&mut self) {
        self.outgoing.clear();
    }

    /// Another member may own the released partitions by now.
    pub(super) fn forget_released(&mut self) {
        self.released.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(topic: &str, numbers: &[i32]) -> Partitions {
        vec![(topic.to_owned(), numbers.to_vec())]
    }

    #[test]
    fn what_comes_straight_back_was_never_anybody_elses() {
        let mut ownership = OwnedPartitions::default();
        ownership.add(&partitions("t", &[0, 1]));
        let since = ownership.since("t", 0).unwrap();
        ownership.release(&ownership.partitions());
        assert!(ownership.is_empty());
        ownership.add(&partitions("t", &[0]));
        ownership.forget_released();
        assert_eq!(ownership.since("t", 0), Some(since));
        // Partition 1 came back a generation later.
        ownership.add(&partitions("t", &[1]));
        assert_ne!(ownership.since("t", 1), Some(since));
    }

    #[test]
    fn compares_with_an_assignment() {
        let mut ownership = OwnedPartitions::default();
        ownership.add(&partitions("t", &[0, 1]));
        ownership.add(&partitions("u", &[0]));
        let assigned = vec![("s".to_owned(), vec![4]), ("t".to_owned(), vec![1, 2])];
        let (added, gone) = ownership.compare(&assigned);
        assert_eq!(added, vec![("s".to_owned(), vec![4]), ("t".to_owned(), vec![2])]);
        assert_eq!(gone, vec![("t".to_owned(), vec![0]), ("u".to_owned(), vec![0])]);
    }
}
