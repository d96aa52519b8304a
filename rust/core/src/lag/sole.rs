//! All partitions of one set of subscribers, who get no others: the same choices as [`super::line`], but what members have
//! is in the entries themselves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Totals;
use super::order::Weighed;

/// Where an entry by lag has what: lag, number, place among the subscribers.
const LAG: u32 = 64;
const COUNT: u32 = 32;
/// An entry by number: number, lag, place.
const COUNT_FIRST: u32 = 96;
const LAG_SECOND: u32 = 32;

/// The subscribers of a set of topics, while its partitions are placed. Memory is reused.
#[derive(Default)]
pub(super) struct Sole {
    heap: BinaryHeap<Reverse<u128>>,
    /// By lag; who has too many.
    parked: Vec<u128>,
    round: Vec<u128>,
    /// By number, who many subscribers have it.
    having: Vec<u32>,
}

impl Sole {
    /// Gives `open`, in decreasing lag, to `lineup`, whose members are in ascending order and have what `totals` says; what they
    /// get is added. `give` learns who gets which partition. No sum of lags that may come up, what members have included, needs
    /// more than 64 bits.
    pub(super) fn place(
        &mut self,
        lineup: &[u32],
        open: &[Weighed],
        totals: &mut Totals,
        max_skew: Option<u32>,
        mut give: impl FnMut(u32, u32),
    ) {
        if open.is_empty() {
            return;
        }
        let fresh = lineup.iter().all(|&member| totals.count[member as usize] == 0);
        if fresh && max_skew == Some(0) {
            self.by_rounds(lineup, open, totals, &mut |partition, place| give(partition, lineup[place as usize]));
            return;
        }
        // From nothing, everybody gets one before anybody gets two.
        let (first, open) = open.split_at(if fresh { lineup.len().min(open.len()) } else { 0 });
        for (&(lag, partition), &member) in first.iter().zip(lineup) {
            give(partition, member);
            totals.add(member, lag);
        }
        if open.is_empty() {
            return;
        }
        let mut hand_out = |partition: u32, place: u32| give(partition, lineup[place as usize]);
        let with_lag = open.partition_point(|&(lag, _)| lag > 0);
        self.heap.clear();
        self.parked.clear();
        let by_lag = (0u128..).zip(lineup).map(|(place, &member)| {
            let (count, lag) = (totals.count[member as usize], totals.lag[member as usize]);
            lag << LAG | u128::from(count) << COUNT | place
        });
        let (heavy, light) = match max_skew {
            Some(0) => (&open[..0], open),
            _ => open.split_at(with_lag),
        };
        self.heap.extend(by_lag.map(Reverse));
        match max_skew {
            Some(skew) if !heavy.is_empty() => self.by_lag_within(skew, heavy, &mut hand_out),
            _ => self.by_lag(heavy, &mut hand_out),
        }
        // Those without lag go by number.
        let entries = self.heap.drain().map(|Reverse(entry)| entry).chain(self.parked.drain(..));
        if light.is_empty() {
            for entry in entries {
                let member = lineup[entry as u32 as usize] as usize;
                (totals.lag[member], totals.count[member]) = (entry >> LAG, (entry >> COUNT) as u32);
            }
            return;
        }
        let by_count = entries.map(|entry| {
            let (lag, count, place) = (entry >> LAG, u128::from((entry >> COUNT) as u32), u128::from(entry as u32));
            Reverse(count << COUNT_FIRST | lag << LAG_SECOND | place)
        });
        self.heap = by_count.collect();
        for &(lag, partition) in light {
            let mut top = self.heap.peek_mut().expect("somebody subscribes");
            hand_out(partition, top.0 as u32);
            top.0 += 1 << COUNT_FIRST | u128::from(lag) << LAG_SECOND;
        }
        for Reverse(entry) in self.heap.drain() {
            let member = lineup[entry as u32 as usize] as usize;
            (totals.count[member], totals.lag[member]) =
                ((entry >> COUNT_FIRST) as u32, u128::from((entry >> LAG_SECOND) as u64));
        }
    }

    /// Numbers first, from nothing: everybody gets one in each round, those with the least lag first.
    fn by_rounds(
        &mut self,
        lineup: &[u32],
        open: &[Weighed],
        totals: &mut Totals,
        hand_out: &mut impl FnMut(u32, u32),
    ) {
        // Lag and place.
        self.round.clear();
        self.round.extend(0..lineup.len().min(open.len()) as u128);
        for (round, chunk) in open.chunks(lineup.len()).enumerate() {
            if round > 0 {
                self.round.sort_unstable();
            }
            for (entry, &(lag, partition)) in self.round.iter_mut().zip(chunk) {
                hand_out(partition, *entry as u32);
                *entry += u128::from(lag) << 32;
            }
        }
        let (rounds, more) = (open.len() / lineup.len(), open.len() % lineup.len());
        for (place, &entry) in self.round.iter().enumerate() {
            let member = lineup[entry as u32 as usize] as usize;
            totals.lag[member] = entry >> 32;
            totals.count[member] = (rounds + usize::from(place < more)) as u32;
        }
    }

    /// Lag only.
    fn by_lag(&mut self, heavy: &[Weighed], hand_out: &mut impl FnMut(u32, u32)) {
        for &(lag, partition) in heavy {
            let mut top = self.heap.peek_mut().expect("somebody subscribes");
            hand_out(partition, top.0 as u32);
            top.0 += u128::from(lag) << LAG | 1 << COUNT;
        }
    }

    /// Lag, among those who have fewer than `skew` more than the least.
    fn by_lag_within(&mut self, skew: u32, heavy: &[Weighed], hand_out: &mut impl FnMut(u32, u32)) {
        let count = |entry: u128| (entry >> COUNT) as u32;
        self.having.clear();
        for Reverse(entry) in &self.heap {
            let count = count(*entry) as usize;
            if self.having.len() <= count {
                self.having.resize(count + 1, 0);
            }
            self.having[count] += 1;
        }
        self.having.push(0);
        let mut least = self.having.iter().position(|&members| members > 0).expect("somebody subscribes") as u32;
        let mut ceiling = least.saturating_add(skew);
        let entries = std::mem::take(&mut self.heap).into_vec();
        let (open, parked): (Vec<_>, Vec<_>) = entries.into_iter().partition(|Reverse(entry)| count(*entry) < ceiling);
        self.heap = open.into();
        self.parked.extend(parked.into_iter().map(|Reverse(entry)| entry));
        for &(lag, partition) in heavy {
            let mut top = self.heap.peek_mut().expect("somebody has the least number");
            hand_out(partition, top.0 as u32);
            let before = count(top.0);
            let entry = top.0 + (u128::from(lag) << LAG | 1 << COUNT);
            if before + 1 < ceiling {
                top.0 = entry;
                drop(top);
            } else {
                std::collections::binary_heap::PeekMut::pop(top);
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
                let heap = &mut self.heap;
                let mut back = Vec::new();
                self.parked.retain(|&entry| {
                    let stays = count(entry) >= ceiling;
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
