//! The partitions of a group in order of their keys, so that any of them are sorted without comparisons of keys.

use super::order;

/// If so few partitions are sorted, a sort by their keys costs less than the ranks.
pub(super) const FEW: usize = 32;
/// If there are more words of bits than this for each partition, a sort of the ranks is quicker than a walk over the words.
const WORDS_PER_PARTITION: usize = 8;

/// By partition, its rank in the order of the keys, and the partitions by rank.
pub(super) struct Ranks {
    of: Vec<u32>,
    partitions: Vec<u32>,
}

impl Ranks {
    /// Of all partitions of a group, by increasing lag and, among equal lags, decreasing number. O(n) for lags of bounded size.
    pub(super) fn new(lags: &[u64]) -> Self {
        let mut ordered = lags.iter().copied().zip(0..).collect();
        order::sort(&mut ordered, &mut Vec::new());
        let partitions: Vec<u32> = ordered.into_iter().rev().map(|(_, partition)| partition).collect();
        let mut of = vec![0; partitions.len()];
        (0u32..).zip(&partitions).for_each(|(rank, &partition)| of[partition as usize] = rank);
        Self { of, partitions }
    }

    /// Sorts partitions, each of which is there once. O(k + r / 64) for k partitions whose ranks are within r of each other, but at
    /// most O(k log k).
    pub(super) fn sort(&self, partitions: &mut [u32]) {
        let ranks = || partitions.iter().map(|&partition| self.of[partition as usize]);
        let (Some(least), Some(most)) = (ranks().min(), ranks().max()) else { return };
        let words = (most - least) as usize / 64 + 1;
        if words > partitions.len() * WORDS_PER_PARTITION {
            partitions.sort_unstable_by_key(|&partition| self.of[partition as usize]);
            return;
        }
        // A bit for each rank between the least and the greatest.
        let mut marked = vec![0u64; words];
        for rank in ranks() {
            let at = (rank - least) as usize;
            marked[at / 64] |= 1 << (at % 64);
        }
        let mut sorted = partitions.iter_mut();
        for (word, mut bits) in marked.into_iter().enumerate() {
            while bits != 0 {
                let rank = least as usize + word * 64 + bits.trailing_zeros() as usize;
                *sorted.next().expect("as many bits as partitions") = self.partitions[rank];
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_sort_by_lag_and_number() {
        let mut random = fastrand::Rng::with_seed(1);
        for (count, modulus) in [(1, 1), (90, 4), (5_000, 1), (5_000, 50), (5_000, 1 << 40)] {
            let lags: Vec<u64> = (0..count).map(|_| random.u64(..modulus)).collect();
            let ranks = Ranks::new(&lags);
            for one_in in [1, 2, 40, 3_000] {
                let mut given: Vec<u32> = (0..count).filter(|_| random.u32(..one_in) == 0).collect();
                let mut expected = given.clone();
                expected.sort_by_key(|&partition| (lags[partition as usize], std::cmp::Reverse(partition)));
                ranks.sort(&mut given);
                assert_eq!(given, expected, "{count} below {modulus}, one in {one_in}");
            }
        }
    }
}
