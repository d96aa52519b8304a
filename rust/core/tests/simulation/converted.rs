//! Scenarios 41 and 42, for the member: a group in which the broker assigns (KIP-848).

use crate::config;
use crate::script::{Asked, Script, assignment};
use kafka_assignors_core::member::{Action, Converted, NoticeKind, Stage};
use kafka_assignors_core::protocol::join_group::JoinGroupRequest;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

fn conversions(script: &Script) -> usize {
    script.actions.iter().filter(|action| matches!(action, Action::ConvertedByBroker { .. })).count()
}

#[test]
fn scenario_41_a_group_that_was_converted_is_an_error_that_says_what_to_do() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let asked: Asked<JoinGroupRequest> = script.asked();
    let mut joined = script.follows(7);
    joined.leader = String::new();
    script.answer(&asked, &joined);
    assert_eq!(conversions(&script), 1);
    assert_eq!(script.fatal(), [ErrorCode::INCONSISTENT_GROUP_PROTOCOL]);
    let message = script.actions.iter().find_map(|action| match action {
        Action::ConvertedByBroker { message } => Some(message.clone()),
        _ => None,
    });
    assert!(message.unwrap().contains("group.consumer.migration.policy=disabled"));
    assert!(script.asks(ApiKey::LeaveGroup));
}

#[test]
fn scenario_42_a_member_that_carries_on_takes_the_brokers_plan_until_the_group_is_classic_again() {
    let mut settings = config(1, &["sticky"]);
    settings.converted = Converted::CarryOn;
    let mut script = Script::new(settings);
    let mut asked = script.joining();
    for generation in 3..6 {
        let mut joined = script.follows(generation);
        joined.leader = String::new();
        script.answer(&asked, &joined);
        let body = script.sync(assignment(&[("t", &[generation % 4])], generation));
        assert!(body.assignments.is_empty(), "it plans nothing");
        assert_eq!(script.obey().kind, NoticeKind::Assign);
        assert_eq!(conversions(&script), 1, "reported once");
        assert_eq!(script.member.stage(), Stage::Stable);
        script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
        script.obey();
        asked = script.asked();
    }
    // The last consumer with the KIP-848 protocol has left: the group has a leader again.
    let joined = script.leads(6, &["t"]);
    script.answer(&asked, &joined);
    script.discover();
    assert!(script.actions.iter().any(|action| matches!(action, Action::Plan { .. })));
    assert!(script.fatal().is_empty());
}
