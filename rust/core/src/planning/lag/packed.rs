//! Places the partitions of one set of subscribers, where these members get no partitions of other sets. The choices are those
//! of [`super::line`], but an entry of a heap is one integer that contains the member's lag and number of partitions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::Totals;
use super::order::LagOfPartition;

/// A subscriber's load, compared by lag, then number of partitions, then place among the subscribers:
///
/// ```text
/// 127            64            32             0
///  │     lag      │   number    │    place    │
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ByLag(u128);

impl ByLag {
    fn new(lag: u128, count: u32, place: u32) -> Self {
        Self(lag << 64 | u128::from(count) << 32 | u128::from(place))
    }

    fn lag(self) -> u128 {
        self.0 >> 64
    }

    fn count(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn place(self) -> u32 {
        self.0 as u32
    }

    /// The load with one more partition of this lag.
    fn plus(self, lag: u64) -> Self {
        Self(self.0 + (u128::from(lag) << 64 | 1 << 32))
    }
}

/// A subscriber's load, compared by number of partitions, then lag, then place among the subscribers:
///
/// ```text
/// 127            96            32             0
///  │    number    │     lag     │    place    │
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ByCount(u128);

impl ByCount {
    fn of(entry: ByLag) -> Self {
        Self(u128::from(entry.count()) << 96 | entry.lag() << 32 | u128::from(entry.place()))
    }

    fn count(self) -> u32 {
        (self.0 >> 96) as u32
    }

    fn lag(self) -> u128 {
        u128::from((self.0 >> 32) as u64)
    }

    fn place(self) -> u32 {
        self.0 as u32
    }

    /// The load with one more partition of this lag.
    fn plus(self, lag: u64) -> Self {
        Self(self.0 + (1 << 96 | u128::from(lag) << 32))
    }
}

/// A subscriber's load where all have the same number of partitions, compared by lag, then place among the subscribers:
///
/// ```text
/// 127                          32             0
///  │            lag             │    place    │
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ByRound(u128);

impl ByRound {
    fn lag(self) -> u128 {
        self.0 >> 32
    }

    fn place(self) -> u32 {
        self.0 as u32
    }

    fn plus(self, lag: u64) -> Self {
        Self(self.0 + (u128::from(lag) << 32))
    }
}

/// The subscribers of a set of topics, while its partitions are placed. Memory is reused.
#[derive(Default)]
pub(super) struct PackedHeap {
    by_lag: BinaryHeap<Reverse<ByLag>>,
    by_count: BinaryHeap<Reverse<ByCount>>,
    /// The subscribers that are not in `by_lag`, since they have too many partitions.
    parked: Vec<ByLag>,
    round: Vec<ByRound>,
    /// By number of partitions, how many subscribers have it.
    having: Vec<u32>,
}

impl PackedHeap {
    /// Gives `open`, in decreasing lag, to `subscribers`, which ascend and have the partitions and the lag in `totals`. New
    /// partitions are added to `totals`. `give` is called with each partition and its member. Every sum of lags, those in
    /// `totals` included, must fit 64 bits: a larger sum would run into the next field of an entry.
    pub(super) fn place(
        &mut self,
        subscribers: &[u32],
        open: &[LagOfPartition],
        totals: &mut Totals,
        max_skew: Option<u32>,
        mut give: impl FnMut(u32, u32),
    ) {
        if open.is_empty() {
            return;
        }
        let fresh = subscribers.iter().all(|&member| totals.count[member as usize] == 0);
        if fresh && max_skew == Some(0) {
            self.by_rounds(subscribers, open, totals, &mut |partition, place| {
                give(partition, subscribers[place as usize])
            });
            return;
        }
        // If no member has a partition, every member gets one before any member gets two.
        let (first, open) = open.split_at(if fresh { subscribers.len().min(open.len()) } else { 0 });
        for (&(lag, partition), &member) in first.iter().zip(subscribers) {
            give(partition, member);
            totals.add(member, lag);
        }
        if open.is_empty() {
            return;
        }
        let mut hand_out = |partition: u32, place: u32| give(partition, subscribers[place as usize]);
        let with_lag = open.partition_point(|&(lag, _)| lag > 0);
        self.by_lag.clear();
        self.parked.clear();
        let entries = (0u32..)
            .zip(subscribers)
            .map(|(place, &member)| ByLag::new(totals.lag[member as usize], totals.count[member as usize], place));
        self.by_lag.extend(entries.map(Reverse));
        let (heavy, light) = match max_skew {
            Some(0) => (&open[..0], open),
            _ => open.split_at(with_lag),
        };
        match max_skew {
            Some(skew) if !heavy.is_empty() => self.place_within(skew, heavy, &mut hand_out),
            _ => self.place_by_lag(heavy, &mut hand_out),
        }
        // Partitions without lag go by number.
        let entries = self.by_lag.drain().map(|Reverse(entry)| entry).chain(self.parked.drain(..));
        if light.is_empty() {
            for entry in entries {
                let member = subscribers[entry.place() as usize] as usize;
                (totals.lag[member], totals.count[member]) = (entry.lag(), entry.count());
            }
            return;
        }
        self.by_count.clear();
        self.by_count.extend(entries.map(|entry| Reverse(ByCount::of(entry))));
        for &(lag, partition) in light {
            let mut top = self.by_count.peek_mut().expect("the set has subscribers");
            hand_out(partition, top.0.place());
            top.0 = top.0.plus(lag);
        }
        for Reverse(entry) in self.by_count.drain() {
            let member = subscribers[entry.place() as usize] as usize;
            (totals.count[member], totals.lag[member]) = (entry.count(), entry.lag());
        }
    }

    /// By number first, if no member has a partition: every member gets one in each round, the members with the least lag first.
    fn by_rounds(
        &mut self,
        subscribers: &[u32],
        open: &[LagOfPartition],
        totals: &mut Totals,
        hand_out: &mut impl FnMut(u32, u32),
    ) {
        self.round.clear();
        self.round.extend((0..subscribers.len().min(open.len()) as u128).map(ByRound));
        for (round, chunk) in open.chunks(subscribers.len()).enumerate() {
            if round > 0 {
                self.round.sort_unstable();
            }
            for (entry, &(lag, partition)) in self.round.iter_mut().zip(chunk) {
                hand_out(partition, entry.place());
                *entry = entry.plus(lag);
            }
        }
        let (rounds, more) = (open.len() / subscribers.len(), open.len() % subscribers.len());
        for (at, &entry) in self.round.iter().enumerate() {
            let member = subscribers[entry.place() as usize] as usize;
            totals.lag[member] = entry.lag();
            totals.count[member] = (rounds + usize::from(at < more)) as u32;
        }
    }

    /// Each partition goes to the member with the least lag.
    fn place_by_lag(&mut self, heavy: &[LagOfPartition], hand_out: &mut impl FnMut(u32, u32)) {
        for &(lag, partition) in heavy {
            let mut top = self.by_lag.peek_mut().expect("the set has subscribers");
            hand_out(partition, top.0.place());
            top.0 = top.0.plus(lag);
        }
    }

    /// Each partition goes to the member with the least lag of those that have fewer than `skew` partitions more than the member
    /// with the fewest.
    fn place_within(&mut self, skew: u32, heavy: &[LagOfPartition], hand_out: &mut impl FnMut(u32, u32)) {
        self.having.clear();
        for Reverse(entry) in &self.by_lag {
            let count = entry.count() as usize;
            if self.having.len() <= count {
                self.having.resize(count + 1, 0);
            }
            self.having[count] += 1;
        }
        self.having.push(0);
        let mut least = self.having.iter().position(|&members| members > 0).expect("the set has subscribers") as u32;
        let mut ceiling = least.saturating_add(skew);
        let entries = std::mem::take(&mut self.by_lag).into_vec();
        let (open, parked): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.0.count() < ceiling);
        self.by_lag = open.into();
        self.parked.extend(parked.into_iter().map(|Reverse(entry)| entry));
        for &(lag, partition) in heavy {
            let mut top = self.by_lag.peek_mut().expect("a subscriber has the least number");
            hand_out(partition, top.0.place());
            let before = top.0.count();
            let entry = top.0.plus(lag);
            if before + 1 < ceiling {
                top.0 = entry;
                drop(top);
            } else {
                PeekMut::pop(top);
                self.parked.push(entry);
            }
            self.having[before as usize] -= 1;
            if self.having.len() as u32 == before + 1 {
                self.having.push(0);
            }
            self.having[before as usize + 1] += 1;
            if self.having[least as usize] == 0 {
                while self.having[least as usize] == 0 {
                    least += 1;
                }
                ceiling = least.saturating_add(skew);
                let heap = &mut self.by_lag;
                let mut back = Vec::new();
                self.parked.retain(|&entry| {
                    let stays = entry.count() >= ceiling;
                    if !stays {
                        back.push(Reverse(entry));
                    }
                    stays
                });
                heap.append(&mut back.into());
            }
        }
    }
}
