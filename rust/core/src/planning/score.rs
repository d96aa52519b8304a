//! The KIP-54 balance score.

/// The sum of the load differences of all pairs of members; 0 is perfect. O(members log members).
///
/// The sum over pairs equals `sum of (2i - M - 1) * load(i)` over the loads in ascending order, `i` from 1: each load is
/// added once for every smaller load and subtracted once for every larger load.
///
/// ```
/// use kafka_assignors_core::planning::score::balance_score;
/// assert_eq!(balance_score(&[1, 2, 3]), 4);
/// assert_eq!(balance_score(&[7, 7]), 0);
/// assert_eq!(balance_score(&[]), 0);
/// ```
#[must_use]
pub fn balance_score(loads: &[u64]) -> u128 {
    let mut sorted = loads.to_vec();
    sorted.sort_unstable();
    of_sorted(sorted.into_iter())
}

/// [`balance_score`] of loads in ascending order. O(members).
pub(crate) fn of_sorted(loads: impl ExactSizeIterator<Item = u64>) -> u128 {
    let members = loads.len() as i128;
    let sum: i128 = (1i128..).zip(loads).map(|(i, load)| (2 * i - members - 1) * i128::from(load)).sum();
    sum.unsigned_abs()
}
