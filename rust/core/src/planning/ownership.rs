//! The owners before a plan. `settlement` makes them from the members' claims; the verification makes them again, on its own.

/// Several members claim the partition with the same, newest generation. It has no owner.
pub const CONTESTED: u32 = u32::MAX - 1;

/// The generation, and the epoch of a stream join, that no group reaches: a claim with this generation is false. If such a claim
/// counted, no later generation could exceed it: all later claims would tie with it, and no member would keep any partition.
pub const NEVER: i32 = i32::MAX;

/// The settled claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// By flat partition, the member that owned it and still subscribes to it; else [`NONE`](crate::planning::group::NONE).
    pub owner: Vec<u32>,
    /// By flat partition, the present member that holds it, subscribed or not; [`CONTESTED`] if several claim it with the newest
    /// generation; else [`NONE`](crate::planning::group::NONE). Only for cooperative rebalancing, where a member that left a
    /// topic holds its partitions until it has revoked them; empty otherwise.
    pub held: Vec<u32>,
}
