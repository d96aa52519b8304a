//! Scripted scenarios and a simulation, over the bytes of the protocol.

mod admin;
mod consumer;
mod consumer_leaving;
mod consumer_simulation;
mod conversion;
mod harness;
mod joining;
mod leaving;
mod offsets;
mod sessions;
mod simulation;
mod statics;
mod syncing;

use super::*;

#[test]
fn frames_that_cannot_be_read_change_nothing() {
    let mut coordinator = Coordinator::new(Config::default());
    for frame in [&[][..], &[0, 11], &[0, 11, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0], &[0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xff]] {
        assert!(coordinator.handle(0, 1, frame).is_err(), "{frame:?}");
    }
    assert!(coordinator.groups().is_empty());
    assert!(!coordinator.is_waiting(1));
}
