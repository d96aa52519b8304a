//! The subscribers of topics, once for all topics with the same subscribers.

use std::collections::BTreeMap;

use crate::planning::group::{Csr, Group};

/// Topics by their set of subscribers. Each member has one subscription, so a set of subscribers is a set of subscriptions that
/// some member has.
pub(crate) struct Subscribers {
    /// By topic, the row of `sets`.
    pub(crate) set_of: Vec<u32>,
    /// The distinct sets: rows of subscription ids, ascending. A topic without subscribers has the empty row.
    pub(crate) sets: Csr,
    /// By subscription, its members, ascending.
    pub(crate) members: Csr,
}

impl Subscribers {
    /// O(subscription entries of the distinct subscriptions), times the logarithm of the number of sets.
    pub(crate) fn new(group: &Group) -> Self {
        let members = Csr::group_by(group.subscription_of(), group.subscriptions().len());
        let by_topic = group.subscriptions().transpose(group.topics().len());
        let mut used = Csr::new();
        let mut row = Vec::new();
        for subscriptions in by_topic.rows() {
            row.clear();
            row.extend(subscriptions.iter().copied().filter(|&subscription| !members.row(subscription).is_empty()));
            used.push_row(&row);
        }
        let mut sets = Csr::new();
        let mut known = BTreeMap::new();
        let mut set_of = Vec::with_capacity(group.topics().len());
        for subscriptions in used.rows() {
            let id = *known.entry(subscriptions).or_insert_with(|| {
                sets.push_row(subscriptions);
                sets.len() as u32 - 1
            });
            set_of.push(id);
        }
        Self { set_of, sets, members }
    }

    /// By set, its members in ascending order. O(subscription entries of all members), times a logarithm for sorting.
    pub(crate) fn by_id(&self) -> Csr {
        let mut lineups = Csr::new();
        let mut lineup: Vec<u32> = Vec::new();
        for subscriptions in self.sets.rows() {
            lineup.clear();
            lineup.extend(subscriptions.iter().flat_map(|&subscription| self.members.row(subscription)));
            lineup.sort_unstable();
            lineups.push_row(&lineup);
        }
        lineups
    }

    /// By set, its members in the order in which Kafka's range and round-robin assignors go through them; see
    /// [`java_order`]. O(subscription entries of all members), times a logarithm for sorting.
    pub(crate) fn in_java_order(&self, group: &Group) -> Csr {
        let order = java_order(group);
        let mut rank = vec![0u32; order.len()];
        for (place, &member) in (0u32..).zip(&order) {
            rank[member as usize] = place;
        }
        let mut lineups = Csr::new();
        let mut lineup: Vec<u32> = Vec::new();
        for subscriptions in self.sets.rows() {
            lineup.clear();
            lineup.extend(subscriptions.iter().flat_map(|&subscription| self.members.row(subscription)));
            lineup.sort_unstable_by_key(|&member| rank[member as usize]);
            lineups.push_row(&lineup);
        }
        lineups
    }
}

/// All members in the order of Kafka's range and round-robin assignors: static members first, by instance id, then the others
/// by member id. Two members with one instance id, which no broker allows, are in order of member id.
pub(crate) fn java_order(group: &Group) -> Vec<u32> {
    let mut order: Vec<u32> = (0..group.members() as u32).collect();
    order.sort_by_key(|&member| {
        let instance = group.instance_id(member);
        (instance.is_none(), instance)
    });
    order
}
