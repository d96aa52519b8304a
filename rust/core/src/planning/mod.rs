//! From a group to a plan: an owner for each partition.
//!
//! Names become dense ids once, at the edge ([`group`]); behind it there are only ids and flat arrays. [`leader`] leads from
//! the bytes of JoinGroup to those of SyncGroup. [`strategy`] runs any of the strategies by one call. [`replay`] plans a whole
//! history of a group.

pub mod budget;
pub mod cooperative;
pub mod custom;
pub mod group;
pub mod lag;
pub mod leader;
pub mod objective;
pub mod ownerless;
pub mod ownership;
pub mod plan;
pub mod range;
pub mod replay;
pub mod restrictions;
pub mod round_robin;
pub mod score;
pub mod server_side;
pub mod settlement;
pub mod sticky;
pub mod strategy;
pub mod stream_join;
mod subscribers;
pub mod weighted;
pub mod weights;
