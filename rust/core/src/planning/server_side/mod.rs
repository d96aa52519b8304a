//! The plans of a broker: the assignors `uniform` and `range` of the new protocol (KIP-848), as brokers from 4.0.0 to 4.4
//! compute them.
//!
//! The plans depend on the orders of Java's hash maps (`java`) and on the group's history. [`ServerSideGroup`] follows a group
//! through its events, exactly. [`assign`] plans a group at a glance: its members join in the order of their ids, and then one
//! plan is made, with the partitions that they own as the targets so far. Racks do not count, as in the broker.

mod coordinator_error;
mod equal;
mod event;
mod glance;
mod group;
mod java;
mod range;
mod release;
mod spec;
#[cfg(test)]
mod tests;
mod unequal;

pub use coordinator_error::CoordinatorError;
pub use event::{Described, Subscribing, When};
pub use glance::assign;
pub use group::ServerSideGroup;
pub use java::Uuid;
pub use release::{Release, ReleaseError};
pub use spec::AssignorError;
use spec::{NewTargets, Spec};

/// An assignor of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignor {
    /// As equal numbers as possible, with few moves.
    Uniform,
    /// A run of each topic for each subscriber.
    Range,
}

impl Assignor {
    /// Kafka's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Assignor::Uniform => "uniform",
            Assignor::Range => "range",
        }
    }
}

fn assign_spec(spec: &Spec<'_>, assignor: Assignor, release: Release) -> Result<NewTargets, AssignorError> {
    match assignor {
        _ if spec.members.is_empty() => Ok(Vec::new()),
        Assignor::Range => Ok(range::assign(spec)),
        Assignor::Uniform if spec.equal => equal::assign(spec, release.extras()),
        Assignor::Uniform => unequal::assign(spec),
    }
}
