//! Values: how much partitions weigh, how much members can take, and a lower bound of the load with its proof.
//!
//! Weights and capacities come as numbers of any unit. They become integers, so that sums do not depend on their order and every
//! machine has the same plan.

use std::cmp::Ordering;

use thiserror::Error;

use crate::planning::group::Topics;

/// The heaviest partition weighs at most 2 to this power: the weights of all partitions together fit 64 bits.
const WEIGHT_BITS: i32 = 36;
/// Capacities are counted in thousandths.
const CAPACITY_UNIT: f64 = 1e3;
/// The least and the largest capacity of a member.
pub const CAPACITIES: (f64, f64) = (1e-3, 1e6);
/// Tolerances are counted in ten thousandths.
pub const TOLERANCE_UNIT: u64 = 10_000;
/// The largest tolerance.
pub const MOST_TOLERANCE: f64 = 10.0;

/// Why weights cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WeightsError {
    /// A weight that is negative, infinite or no number.
    #[error("the weight of partition {partition} is {weight}; give a finite number of at least 0")]
    Weight {
        /// The flat partition.
        partition: u32,
        /// The weight.
        weight: f64,
    },
    /// A capacity out of bounds.
    #[error("the capacity of a member is {capacity}; give a number from 0.001 to 1,000,000")]
    Capacity {
        /// The member.
        member: u32,
        /// The capacity.
        capacity: f64,
    },
    /// A tolerance out of bounds.
    #[error("tolerance is {0}; give a number from 0 to {MOST_TOLERANCE}")]
    Tolerance(f64),
}

/// A load relative to the capacity that carries it. Compared exactly, as fractions.
#[derive(Debug, Clone, Copy)]
pub struct RelativeLoad {
    /// The load.
    pub load: u64,
    /// The capacity; not 0.
    pub capacity: u64,
}

impl RelativeLoad {
    /// No load.
    pub const ZERO: Self = Self { load: 0, capacity: 1 };
}

impl Ord for RelativeLoad {
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = |load: u64, capacity: u64| u128::from(load) * u128::from(capacity);
        cross(self.load, other.capacity).cmp(&cross(other.load, self.capacity))
    }
}

impl PartialOrd for RelativeLoad {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RelativeLoad {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RelativeLoad {}

/// The weights of a group's partitions and the capacities of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// By flat partition.
    of_partition: Vec<u64>,
    /// By member; not 0.
    capacity: Vec<u64>,
    tolerance: u64,
    /// A weight is the given one times 2 to this power.
    shift: i32,
}

impl Weights {
    /// Weights by flat partition and capacities by member. Where all weights are 0, every partition weighs 1.
    ///
    /// # Errors
    /// A weight that is negative or not finite, a capacity out of [`CAPACITIES`], a tolerance that is not from 0 to
    /// [`MOST_TOLERANCE`].
    pub fn new(weights: &[f64], capacities: &[f64], tolerance: f64) -> Result<Self, WeightsError> {
        if let Some((partition, &weight)) =
            (0u32..).zip(weights).find(|&(_, &weight)| !weight.is_finite() || weight < 0.0)
        {
            return Err(WeightsError::Weight { partition, weight });
        }
        let (least, most) = CAPACITIES;
        if let Some((member, &capacity)) =
            (0u32..).zip(capacities).find(|(_, capacity)| !(least..=most).contains(*capacity))
        {
            return Err(WeightsError::Capacity { member, capacity });
        }
        if !(0.0..=MOST_TOLERANCE).contains(&tolerance) {
            return Err(WeightsError::Tolerance(tolerance));
        }
        let heaviest = weights.iter().copied().fold(0.0, f64::max);
        let counts = heaviest == 0.0;
        let shift = if counts { 0 } else { WEIGHT_BITS - exponent(heaviest) };
        let weigh = |&weight: &f64| if counts { 1 } else { scaled(weight, shift).round() as u64 };
        Ok(Self {
            of_partition: weights.iter().map(weigh).collect(),
            capacity: capacities.iter().map(|capacity| ((capacity * CAPACITY_UNIT).round() as u64).max(1)).collect(),
            tolerance: (tolerance * TOLERANCE_UNIT as f64).round() as u64,
            shift,
        })
    }

    /// By flat partition.
    #[must_use]
    pub fn of_partitions(&self) -> &[u64] {
        &self.of_partition
    }

    /// The weight of a partition.
    #[must_use]
    pub fn of(&self, partition: u32) -> u64 {
        self.of_partition[partition as usize]
    }

    /// By member.
    #[must_use]
    pub fn capacities(&self) -> &[u64] {
        &self.capacity
    }

    /// The load of a member that has this weight, relative to its capacity.
    #[must_use]
    pub fn relative_load(&self, member: u32, load: u64) -> RelativeLoad {
        RelativeLoad { load, capacity: self.capacity[member as usize] }
    }

    /// The tolerance, in parts of [`TOLERANCE_UNIT`]: the share by which a load may exceed the least possible one.
    #[must_use]
    pub fn tolerance(&self) -> u64 {
        self.tolerance
    }

    /// By member, the weight of the partitions that it has. O(partitions).
    #[must_use]
    pub fn loads(&self, owner: &[u32]) -> Vec<u64> {
        let mut loads = vec![0; self.capacity.len()];
        for (&owner, weight) in owner.iter().zip(&self.of_partition) {
            // `NONE` is beyond the last member: a partition without an owner is no load.
            if let Some(load) = loads.get_mut(owner as usize) {
                *load += weight;
            }
        }
        loads
    }

    /// The largest relative load, of the loads by member.
    #[must_use]
    pub fn worst(&self, loads: &[u64]) -> RelativeLoad {
        (0u32..).zip(loads).map(|(member, &load)| self.relative_load(member, load)).max().unwrap_or(RelativeLoad::ZERO)
    }

    /// A load in the unit of the given weights.
    #[must_use]
    pub fn given_load(&self, load: u64) -> f64 {
        scaled(load as f64, -self.shift)
    }

    /// A relative load in the units of the given weights and capacities.
    #[must_use]
    pub fn given_relative_load(&self, relative: RelativeLoad) -> f64 {
        self.given_load(relative.load) / (relative.capacity as f64 / CAPACITY_UNIT)
    }
}

/// Weights without gaps, by flat partition. An unknown weight becomes the mean of the known weights of its topic; if the topic
/// has none, of all topics; if no weight is known at all, 1. The second value is the number of unknown weights.
#[must_use]
pub fn without_gaps(topics: &Topics, known: &[Option<f64>]) -> (Vec<f64>, usize) {
    let mean = |of: &[Option<f64>]| {
        // Values that are no weights do not enter the mean. [`Weights::new`] refuses them later.
        let usable = || of.iter().flatten().filter(|weight| weight.is_finite() && **weight >= 0.0);
        let count = usable().count() as f64;
        // Each weight is divided before it is added: the sum of large weights may be infinite.
        (count > 0.0).then(|| usable().map(|weight| weight / count).sum::<f64>())
    };
    let (unknown, mut weights) =
        (known.iter().filter(|weight| weight.is_none()).count(), Vec::with_capacity(known.len()));
    let overall = if unknown == 0 { 1.0 } else { mean(known).unwrap_or(1.0) };
    for topic in 0..topics.len() as u32 {
        let range = topics.range(topic);
        let of_topic = known.get(range.start as usize..range.end as usize).unwrap_or(&[]);
        let gaps = of_topic.iter().any(Option::is_none);
        let usual = if gaps { mean(of_topic).unwrap_or(overall) } else { overall };
        weights.extend(of_topic.iter().map(|weight| weight.unwrap_or(usual)));
    }
    (weights, unknown)
}

/// The least power of two that is above a positive number.
fn exponent(number: f64) -> i32 {
    // Subnormal numbers are scaled up first: their bits have no exponent.
    let (number, less) = if number < f64::MIN_POSITIVE { (number * 2f64.powi(64), 64) } else { (number, 0) };
    ((number.to_bits() >> 52) & 0x7ff) as i32 - 1022 - less
}

/// A number times a power of two, in two steps: the power alone may be too large or too small for a number.
fn scaled(number: f64, shift: i32) -> f64 {
    let half = shift / 2;
    number * 2f64.powi(half) * 2f64.powi(shift - half)
}

/// Why no plan has a lower worst relative load. `topics` are those whose partitions count. The members are all that subscribe to
/// any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadProof {
    /// There is no partition to assign.
    Nothing,
    /// The members together carry all the partitions: the sum of weights over the sum of capacities.
    Crowd {
        /// The topics.
        topics: Vec<u32>,
    },
    /// One of `m` members has `layers + 1` of the `layers × m + 1` heaviest partitions. Its load is at least that of the
    /// lightest `layers + 1` of these.
    Layers {
        /// The topics.
        topics: Vec<u32>,
        /// The number of partitions that every member can have before some member has one more.
        layers: u32,
    },
    /// Let each of the `count` heaviest partitions weigh no more than the lightest of them. As long as every relative load is
    /// below the bound, the members have room for fewer than `count` such partitions.
    Slots {
        /// The topics.
        topics: Vec<u32>,
        /// The number of partitions in the proof.
        count: u32,
    },
    /// When `m` members have the `m + pairs` heaviest partitions, one member has three of them, or at least `pairs` members have
    /// two each. In the second case, at most `m - pairs` of these partitions are alone with their member. So one of the first
    /// `m - pairs + 1` shares its member with another one.
    ///
    /// Example: 3 members have the 4 heaviest partitions, and none has three. Then at most two of the four are alone. So one of
    /// the first three is in a pair, and the pair weighs at least as much as the third and the fourth.
    Pairs {
        /// The topics.
        topics: Vec<u32>,
        /// The number of partitions in the proof, less the number of members.
        pairs: u32,
    },
}

/// A lower bound of the worst relative load of all complete plans, with its proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBound {
    /// The bound.
    pub least: RelativeLoad,
    /// Its proof.
    pub proof: LoadProof,
}

/// The weights of a weighted plan, and the bound of its loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    /// Weights and capacities.
    pub weights: Weights,
    /// The bound.
    pub bound: LoadBound,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::group::TopicSpec;

    #[test]
    fn weights_of_any_size_keep_their_ratios() {
        for unit in [1.0, 1e-300, 1e300, f64::MIN_POSITIVE / 8.0, 0.1] {
            let weights = Weights::new(&[unit, 3.0 * unit, 0.0], &[1.0], 0.1).expect("weights");
            let [one, three, zero] = [0, 1, 2].map(|partition| weights.of(partition));
            assert!(zero == 0 && one > 1 << 30, "{one} for {unit}");
            assert!(three.abs_diff(3 * one) <= 3 && three <= 1 << WEIGHT_BITS);
            let back = weights.given_load(one) / unit;
            assert!((back - 1.0).abs() < 1e-9, "{back}");
        }
        let exact = Weights::new(&[7.0, 1e9, 123_456.0], &[1.0, 0.5], 0.0).expect("weights");
        assert_eq!(exact.given_load(exact.loads(&[0, 0, 0])[0]), 1_000_123_463.0);
        assert_eq!(exact.given_relative_load(exact.worst(&exact.loads(&[0, 0, 1]))), 1_000_000_007.0);
        assert_eq!(exact.given_relative_load(exact.worst(&exact.loads(&[0, 1, 0]))), 2e9);
    }

    #[test]
    fn unknown_weights_are_the_mean_of_the_known() {
        let spec = |name, partitions| TopicSpec { name, partitions, racks: None };
        let topics = Topics::new(vec![spec("a", 3), spec("b", 2), spec("c", 0)]).expect("topics");
        let filled = |known: [Option<f64>; 5]| without_gaps(&topics, &known);
        assert_eq!(filled([Some(1.0), None, Some(3.0), None, None]), (vec![1.0, 2.0, 3.0, 2.0, 2.0], 3));
        assert_eq!(filled([None; 5]), (vec![1.0; 5], 5));
        assert_eq!(filled([Some(f64::NAN), Some(4.0), None, Some(-1.0), None]).0[2..], [4.0, -1.0, 4.0]);
        assert_eq!(filled([Some(f64::MAX), Some(f64::MAX), None, Some(0.0), None]).1, 2);
        assert!(filled([Some(f64::MAX), Some(f64::MAX), None, Some(0.0), None]).0.iter().all(|it| it.is_finite()));
        assert_eq!(filled([1.0, 2.0, 3.0, 4.0, 5.0].map(Some)), (vec![1.0, 2.0, 3.0, 4.0, 5.0], 0));
    }

    #[test]
    fn what_is_no_weight_is_refused() {
        for weight in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(
                Weights::new(&[1.0, weight], &[1.0], 0.1),
                Err(WeightsError::Weight { partition: 1, .. })
            ));
        }
        for capacity in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-4, 1e7] {
            assert!(matches!(Weights::new(&[1.0], &[capacity], 0.1), Err(WeightsError::Capacity { member: 0, .. })));
        }
        for tolerance in [-0.1, f64::NAN, 10.5] {
            assert!(matches!(Weights::new(&[1.0], &[1.0], tolerance), Err(WeightsError::Tolerance(_))));
        }
        let counts = Weights::new(&[0.0, 0.0], &[1.0], 0.1).expect("counts");
        assert_eq!(counts.of_partitions(), [1, 1]);
    }
}
