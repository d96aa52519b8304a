//! Partitions in decreasing lag.

/// A partition's lag and id.
pub(super) type LagOfPartition = (u64, u32);

/// With fewer partitions than this, a sort by comparison is faster than a radix sort.
const RADIX_FROM: usize = 128;

/// Sorts by decreasing lag; equal lags stay in their order. `spare` is memory to work in. O(n) for lags of bounded size.
pub(super) fn sort(partitions: &mut Vec<LagOfPartition>, spare: &mut Vec<LagOfPartition>) {
    if partitions.len() < RADIX_FROM {
        partitions.sort_by_key(|&(lag, _)| std::cmp::Reverse(lag));
        return;
    }
    let (least, most) =
        partitions.iter().fold((u64::MAX, 0), |(least, most), &(lag, _)| (least.min(lag), most.max(lag)));
    // A stable sort digit by digit, from the lowest, of the difference to the largest lag.
    let width = if partitions.len() < 1 << 16 { 8 } else { 11 };
    let mask = (1u64 << width) - 1;
    let mut counts = vec![0u32; 1 << width];
    let mut shift = 0;
    while shift < u64::BITS && (most - least) >> shift > 0 {
        let digit = |&(lag, _): &LagOfPartition| ((most - lag) >> shift & mask) as usize;
        counts.fill(0);
        partitions.iter().for_each(|entry| counts[digit(entry)] += 1);
        if counts[digit(&partitions[0])] as usize != partitions.len() {
            let mut start = 0;
            for count in &mut counts {
                start += std::mem::replace(count, start);
            }
            spare.clear();
            spare.resize(partitions.len(), (0, 0));
            for entry in partitions.iter() {
                let at = &mut counts[digit(entry)];
                spare[*at as usize] = *entry;
                *at += 1;
            }
            std::mem::swap(partitions, spare);
        }
        shift += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_stable_sort_by_comparing() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        for (count, modulus) in [(0, 1), (5, 3), (127, 9), (128, 9), (3_000, 1), (3_000, 1 << 40), (70_000, 50_000)] {
            for top in [0, u64::MAX - (1 << 44)] {
                let given: Vec<LagOfPartition> =
                    (0..count).map(|partition| (top + random() % modulus, partition)).collect();
                let mut expected = given.clone();
                expected.sort_by_key(|&(lag, _)| std::cmp::Reverse(lag));
                let mut sorted = given;
                sort(&mut sorted, &mut Vec::new());
                assert_eq!(sorted, expected, "{count} below {modulus} above {top}");
            }
        }
        let mut wide = vec![(0, 0), (u64::MAX, 1), (1 << 63, 2)];
        wide.extend((3..200).map(|partition| (7, partition)));
        sort(&mut wide, &mut Vec::new());
        assert_eq!((wide[..4].to_vec(), wide[199]), (vec![(u64::MAX, 1), (1 << 63, 2), (7, 3), (7, 4)], (0, 0)));
    }
}
