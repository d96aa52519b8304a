//! The coordinator with untrusted clients: no bytes on any connection make it panic or break the invariants of its
//! groups.

use std::collections::BTreeSet;

use kafka_assignors_core::embedded::coordinator::{Config, Coordinator, Topic};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn topic(number: u8) -> Topic {
    Topic { id: [number + 1; 16], partitions: 3 }
}

/// Frames of several connections, each after two bytes. Their upper four bits are the connection, the others the
/// length. The time advances by 200 ms with each frame.
pub(crate) fn check(bytes: &[u8]) {
    let mut coordinator = Coordinator::new(Config::default());
    coordinator.set_topics((0u8..).zip(NAMES).map(|(number, name)| (name.to_owned(), topic(number))).collect());
    let (mut rest, mut now) = (bytes, 0);
    while let Some((head, tail)) = rest.split_at_checked(2) {
        let head = u16::from_be_bytes([head[0], head[1]]);
        let (connection, length) = (u64::from(head >> 12), usize::from(head & 0xfff).min(tail.len()));
        let frame = &tail[..length];
        rest = &tail[length..];
        now += 200;
        let mut replies = coordinator.tick(now);
        // One request at a time for each connection, as a broker serves them.
        if !coordinator.is_waiting(connection) {
            match coordinator.handle(now, connection, frame) {
                Ok(more) => replies.extend(more),
                Err(_) => replies.extend(coordinator.disconnect(now, connection)),
            }
        }
        assert!(replies.len() <= 16 + 1, "more replies than connections");
        for view in coordinator.groups() {
            let ids: BTreeSet<&str> = view.members.iter().map(|member| member.member_id.as_str()).collect();
            assert_eq!(ids.len(), view.members.len(), "a member id twice in {}", view.group_id);
        }
        for view in coordinator.consumer_groups() {
            let mut held = BTreeSet::new();
            for member in &view.members {
                for (topic, list) in member.assigned.iter().chain(&member.pending) {
                    for &partition in list {
                        assert!(held.insert((*topic, partition)), "two members of {} hold {partition}", view.group_id);
                    }
                }
            }
        }
    }
}
