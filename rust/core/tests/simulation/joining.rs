//! Scenarios 6 to 16: joining a generation, and every failure of that.

use crate::script::{Asked, Script, assignment, owned};
use crate::world::World;
use crate::{config, group, world};
use kafka_assignors_core::member::{Action, Event, NoticeKind, Role, Stage};
use kafka_assignors_core::protocol::join_group::{JoinGroupRequest, JoinGroupResponse};
use kafka_assignors_core::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

fn refuse_join(script: &mut Script, asked: &Asked<JoinGroupRequest>, error_code: ErrorCode) {
    let body = JoinGroupResponse { error_code, protocol_name: Some(String::new()), ..Default::default() };
    script.answer(asked, &body);
}

fn refuse_sync(script: &mut Script, error_code: ErrorCode) {
    let asked: Asked<SyncGroupRequest> = script.asked();
    script.answer(&asked, &SyncGroupResponse { error_code, ..Default::default() });
}

/// A heartbeat of a stable member is answered with REBALANCE_IN_PROGRESS. Returns the JoinGroup request that follows.
fn rejoining(script: &mut Script) -> Asked<JoinGroupRequest> {
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    script.asked()
}

#[test]
fn scenario_06_a_member_id_is_asked_for_and_used_at_once() {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    assert_eq!(asked.body.member_id, "");
    let body = JoinGroupResponse {
        error_code: ErrorCode::MEMBER_ID_REQUIRED,
        member_id: "given".to_owned(),
        protocol_name: Some(String::new()),
        ..Default::default()
    };
    script.answer(&asked, &body);
    let again: Asked<JoinGroupRequest> = script.asked();
    assert_eq!(again.body.member_id, "given");
    assert_eq!(script.notices().len(), 1, "prepared once");
}

#[test]
fn scenario_06_a_process_that_dies_between_the_steps_holds_nobody_up() {
    let mut world = world(6);
    world.topic("t", 4);
    let first = world.start(config(0, &["sticky"]), &["t"]);
    world.run_until_so(5_000, "it has an id and no answer yet", |world| !world.hosts[0].member.identity().0.is_empty());
    world.kill(first);
    world.start(config(1, &["sticky"]), &["t"]);
    world.run_until_so(25_000, "the other has everything", |world| world.hosts[1].held.len() == 4);
    world.check();
}

#[test]
fn scenario_07_a_join_may_take_longer_than_a_request() {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    // Requests may take 10 s, the rebalance 30 s.
    for _ in 0..29 {
        script.handle(Event::Poll);
        script.pass(1_000);
    }
    let joined = script.follows(1);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[0])], 1));
    assert_eq!(script.obey().kind, NoticeKind::Assign);
}

#[test]
fn scenario_07_a_join_that_is_never_answered_is_given_up() {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    for _ in 0..36 {
        script.handle(Event::Poll);
        script.pass(1_000);
    }
    script.discover();
    assert!(!script.conns.contains_key(&asked.conn));
    assert!(script.asks(ApiKey::JoinGroup), "asked again");
}

#[test]
fn scenario_08_a_cut_while_joining_or_syncing_keeps_the_member_id() {
    for syncing in [false, true] {
        let mut script = Script::new(config(1, &["sticky"]));
        script.stable(&[("t", &[0])]);
        let asked = rejoining(&mut script);
        if syncing {
            let joined = script.follows(2);
            script.answer(&asked, &joined);
        }
        script.cut(Role::Group);
        script.pass(300);
        script.discover();
        script.pass(300);
        let again: Asked<JoinGroupRequest> = script.asked();
        assert_eq!(again.body.member_id, "me", "syncing {syncing}");
        assert_eq!(script.notices().len(), 1, "prepared once");
    }
    // No process is in the group twice.
    let mut world = group(8, 3, &["sticky"], &[("t", 6)]);
    world.subscribe(0, &[]);
    world.run_until_so(10_000, "a join is parked", |world| {
        world.hosts.iter().any(|h| h.member.stage() == Stage::Joining)
    });
    world.cut(|_, _| true);
    world.run_until_so(60_000, "stable again", |world| world.hosts.iter().all(|h| h.member.stage() == Stage::Stable));
    world.subscribe(0, &["t"]);
    world.run_until_so(60_000, "settled", World::settled);
    assert_eq!(world.cluster.broker.groups()[0].members.len(), 3);
    world.check();
}

#[test]
fn scenario_09_an_unknown_member_begins_anew_and_an_illegal_generation_keeps_its_id() {
    for (code, id) in [(ErrorCode::UNKNOWN_MEMBER_ID, ""), (ErrorCode::ILLEGAL_GENERATION, "me")] {
        let mut script = Script::new(config(1, &["cooperative-sticky"]));
        script.stable(&[("t", &[0, 1])]);
        let asked = rejoining(&mut script);
        let joined = script.follows(2);
        script.answer(&asked, &joined);
        refuse_sync(&mut script, code);
        // The partitions that it kept through a cooperative rebalance may belong to other members now.
        let notice = script.obey();
        assert!(notice.lost);
        assert_eq!(notice.revoked, owned(&[("t", &[0, 1])]));
        let again: Asked<JoinGroupRequest> = script.asked();
        assert_eq!(again.body.member_id, id, "{code}");
    }
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    let asked = rejoining(&mut script);
    refuse_join(&mut script, &asked, ErrorCode::UNKNOWN_MEMBER_ID);
    let again: Asked<JoinGroupRequest> = script.asked();
    assert_eq!(again.body.member_id, "", "at once, without an id");
    // The second time in a row the member waits for a back-off.
    refuse_join(&mut script, &again, ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(!script.asks(ApiKey::JoinGroup));
    script.pass(300);
    assert!(script.asks(ApiKey::JoinGroup));
}

#[test]
fn scenario_09_an_answer_to_an_old_generation_changes_nothing() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.pass(3_000);
    let heartbeat: Asked<kafka_assignors_core::protocol::heartbeat::HeartbeatRequest> = script.asked();
    script.commit(1, &[("t", 0, 3)]);
    script.committed(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    // The heartbeat of generation 1 is answered late, when the JoinGroup for generation 2 already waits behind it on the same
    // connection.
    let body = kafka_assignors_core::protocol::heartbeat::HeartbeatResponse {
        error_code: ErrorCode::NONE,
        ..Default::default()
    };
    script.answer(&heartbeat, &body);
    for _ in 0..10 {
        script.pass(100);
    }
    assert_eq!(script.notices().len(), 1);
    assert_eq!(script.member.identity(), ("me", 1));
}

#[test]
fn scenario_10_a_rebalance_that_begins_again_is_joined_without_another_revocation() {
    for in_sync in [false, true] {
        let mut script = Script::new(config(1, &["sticky"]));
        script.stable(&[("t", &[0])]);
        let asked = rejoining(&mut script);
        if in_sync {
            let joined = script.follows(2);
            script.answer(&asked, &joined);
            refuse_sync(&mut script, ErrorCode::REBALANCE_IN_PROGRESS);
        } else {
            refuse_join(&mut script, &asked, ErrorCode::REBALANCE_IN_PROGRESS);
        }
        assert!(script.asks(ApiKey::JoinGroup), "at once");
        assert_eq!(script.notices().len(), 1, "revoked once");
    }
}

#[test]
fn scenario_11_an_assignment_of_a_generation_that_is_over_is_not_applied() {
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.stable(&[("t", &[0])]);
    let asked = rejoining(&mut script);
    let joined = script.follows(2);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[0, 1])], 2));
    let stale = script.notice().unwrap();
    assert_eq!(stale.kind, NoticeKind::Assign);
    script.heartbeat(ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(!script.member.begin(stale.ticket), "overtaken");
    let lost = script.obey();
    assert!(lost.lost);
    assert_eq!(lost.revoked, owned(&[("t", &[0])]), "what it had, not what it was given");
}

#[test]
fn scenario_12_a_group_of_another_kind_or_an_assignor_that_was_not_offered_is_fatal() {
    for (kind, protocol) in [("connect", "sticky"), ("consumer", "range")] {
        let mut script = Script::new(config(1, &["sticky"]));
        let asked = script.joining();
        let mut joined = script.follows(1);
        joined.protocol_type = Some(kind.to_owned());
        joined.protocol_name = Some(protocol.to_owned());
        script.answer(&asked, &joined);
        assert_eq!(script.fatal(), [ErrorCode::INCONSISTENT_GROUP_PROTOCOL]);
        assert!(script.asks(ApiKey::LeaveGroup), "it does not stay in the others' way");
    }
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    let joined = script.follows(1);
    script.answer(&asked, &joined);
    let asked: Asked<SyncGroupRequest> = script.asked();
    let body = SyncGroupResponse {
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        assignment: assignment(&[], 1),
        ..Default::default()
    };
    script.answer(&asked, &body);
    assert_eq!(script.fatal(), [ErrorCode::INCONSISTENT_GROUP_PROTOCOL]);
}

#[test]
fn scenario_13_no_assignment_or_one_that_cannot_be_read_is_asked_for_again_with_other_metadata() {
    for bytes in [vec![], vec![0], vec![0, 0, 0x7f, 0xff, 0xff, 0xff], vec![0xff, 0xff, 0, 0, 0, 0]] {
        let mut script = Script::new(config(1, &["sticky"]));
        let asked = script.joining();
        let before = asked.body.protocols[0].metadata.clone();
        let joined = script.follows(1);
        script.answer(&asked, &joined);
        script.sync(bytes);
        assert!(!script.asks(ApiKey::JoinGroup), "after a pause");
        script.pass(300);
        let again: Asked<JoinGroupRequest> = script.asked();
        assert_ne!(again.body.protocols[0].metadata, before, "the broker would answer the same");
        assert!(again.body.protocols[0].metadata.starts_with(&before));
    }
}

#[test]
fn scenario_13_topics_that_are_not_subscribed_to_are_not_taken() {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    let joined = script.follows(1);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[0, 0, 1]), ("foreign", &[0])], 1));
    let notice = script.obey();
    assert_eq!(notice.owned, owned(&[("t", &[0, 1])]));
    script.pass(500);
    script.obey();
    assert!(script.asks(ApiKey::JoinGroup), "and the group is asked for another plan");
}

#[test]
fn scenario_14_what_no_repetition_can_change_is_fatal_once_and_closes_cleanly() {
    let codes = [
        ErrorCode::GROUP_MAX_SIZE_REACHED,
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode::INVALID_SESSION_TIMEOUT,
        ErrorCode::INVALID_GROUP_ID,
        ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ErrorCode::FENCED_INSTANCE_ID,
        ErrorCode::UNSUPPORTED_VERSION,
        ErrorCode(1234),
    ];
    for code in codes {
        let mut script = Script::new(config(1, &["sticky"]));
        let asked = script.joining();
        refuse_join(&mut script, &asked, code);
        script.pass(60_000);
        assert_eq!(script.fatal(), [code]);
        assert_eq!(script.member.stage(), Stage::Failed);
        script.handle(Event::Close { timeout_ms: 1_000 });
        assert_eq!(script.actions.last(), Some(&Action::Closed));
        assert!(script.conns.is_empty());
        assert_eq!(script.member.next_deadline(), None);
    }
}

#[test]
fn scenario_15_an_assignor_that_raises_is_reported_and_asked_again() {
    let mut world = world(15);
    world.topic("t", 4);
    world.start(config(0, &["sticky"]), &["t"]);
    world.hosts[0].plan_fails = true;
    world.run(20_000);
    let failures = world.hosts[0].errors.len();
    assert!((5..40).contains(&failures), "{failures} failures");
    assert!(world.hosts[0].errors[0].1.contains("assignor 'sticky' made no plan for group 'g': it was told to"));
    world.hosts[0].plan_fails = false;
    world.run_until_so(5_000, "it plans", World::settled);
    world.check();
}

#[test]
fn scenario_15_an_assignor_that_takes_longer_than_the_session_costs_nobody_its_membership() {
    let mut world = group(16, 3, &["sticky"], &[("t", 6)]);
    for host in &mut world.hosts {
        host.plan_ms = 25_000;
    }
    world.start(config(9, &["sticky"]), &["t"]);
    world.run_until_so(60_000, "settled", World::settled);
    assert!(world.hosts.iter().all(|host| host.counts.lost == 0));
    world.check();
}

#[test]
fn scenario_16_a_leader_that_dies_or_leaves_while_it_plans_is_replaced() {
    for dies in [true, false] {
        let mut world = group(17, 3, &["cooperative-sticky"], &[("t", 6)]);
        for host in &mut world.hosts {
            host.plan_ms = 60_000;
        }
        world.start(config(9, &["cooperative-sticky"]), &["t"]);
        let planning = |world: &World| world.hosts.iter().position(|host| host.member.stage() == Stage::Planning);
        world.run_until_so(20_000, "somebody plans", |world| planning(world).is_some());
        let leader = planning(&world).unwrap();
        for host in &mut world.hosts {
            host.plan_ms = 1;
        }
        if dies {
            world.kill(leader);
        } else {
            world.close(leader, 5_000);
        }
        world.run_until_so(60_000, "the others go on", World::settled);
        world.check();
    }
}
