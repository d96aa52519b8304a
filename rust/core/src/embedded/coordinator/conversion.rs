//! A group changes its protocol while it has members, where the migration policy allows it. The first member of the new protocol
//! converts a classic group. When the last member of the new protocol has gone, the group is classic again, and rebalances.

use super::consumer::{ConsumerGroup, Refusal};
use super::group::{ClassicGroupState, Context};
use super::groups::{AnyGroup, Groups};
use super::topics::ClusterTopics;

/// Makes a classic group with members into a group of KIP-848, in which the members keep their partitions.
///
/// # Errors
/// The policy, the size, or the bytes of a member do not allow it; then nothing has changed.
pub(super) fn upgrade(
    groups: &mut Groups,
    context: &mut Context<'_>,
    id: &str,
    topics: &ClusterTopics,
) -> Result<(), Refusal> {
    let Some(classic) = groups.classic(id).filter(|group| group.state != ClassicGroupState::Empty) else {
        return Ok(());
    };
    let mut group = ConsumerGroup::of_classic(classic, context.config, topics)?;
    if let Some(AnyGroup::Classic(classic)) = groups.remove(id) {
        group.replace_classic(*classic, context);
    }
    groups.insert(id, AnyGroup::Consumer(Box::new(group)));
    Ok(())
}

/// Makes a group of KIP-848 with only classic members left into a classic group, if the policy and the size allow it.
pub(super) fn downgrade(groups: &mut Groups, context: &mut Context<'_>, id: &str) {
    if !groups.consumer_mut(id).is_some_and(|group| group.may_become_classic(context.config)) {
        return;
    }
    let Some(AnyGroup::Consumer(group)) = groups.remove(id) else { return };
    let mut classic = group.into_classic(context);
    classic.prepare_rebalance(context);
    groups.insert(id, AnyGroup::Classic(Box::new(classic)));
}
