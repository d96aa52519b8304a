//! The objectives of a plan, in order. Solvers seek the best plan in this order, and the verification compares by it.

/// The balance of a sticky plan against its stickiness (KIP-54 and the two alternatives that it names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The least balance score, and among those plans the most partitions kept.
    #[default]
    FairYetSticky,
    /// No owned partition moves. The rest goes where the balance score is least.
    StickyYetFair,
    /// The least balance score. Previous owners do not count.
    Fair,
}

/// The place of rack matches among the objectives (KIP-881). Balance comes first in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RackOrder {
    /// Balance, racks, stickiness: Java's order.
    #[default]
    BeforeStickiness,
    /// Balance, stickiness, racks.
    AfterStickiness,
}

/// The objectives of a sticky plan, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Objective {
    /// Balance against stickiness.
    pub mode: Mode,
    /// Racks against stickiness.
    pub racks: RackOrder,
}

/// The rules for the verification of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// A partition that has subscribers goes to one of them.
    Partitions {
        /// The order in which one plan is better than another.
        objective: Objective,
        /// Whether a partition waits until its holder has revoked it (KIP-429).
        cooperative: bool,
    },
    /// The user's own assignor: it may leave out partitions that have subscribers. The best plan is a sticky one.
    Custom {
        /// Whether a partition waits until its holder has revoked it (KIP-429).
        cooperative: bool,
    },
    /// KIP-315: partitions of equal number go to one member. The best plan is fair in numbers and keeps the most of them.
    StreamJoin {
        /// Whether a partition waits until its holder has revoked it (KIP-429).
        cooperative: bool,
    },
}

impl Rules {
    /// Whether a partition waits until its holder has revoked it (KIP-429).
    #[must_use]
    pub fn cooperative(self) -> bool {
        match self {
            Self::Partitions { cooperative, .. } | Self::Custom { cooperative } | Self::StreamJoin { cooperative } => {
                cooperative
            }
        }
    }
}
