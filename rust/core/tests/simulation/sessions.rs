//! Scenarios 19, 20 and 39: the member's own clock for its session, and its identity for transactions.

use crate::script::{Asked, Script, assignment, owned};
use crate::world::World;
use crate::{config, group};
use kafka_assignors_core::member::{Action, Event, NoticeKind, Role, Stage};
use kafka_assignors_core::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use kafka_assignors_core::protocol::join_group::JoinGroupRequest;
use kafka_assignors_core::protocol::sync_group::SyncGroupRequest;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

/// `session.timeout.ms` of `config`.
const SESSION: u64 = 10_000;

/// A member in generation 1 that owns partition 0 of `t`.
#[track_caller]
fn stable(assignor: &str) -> Script {
    let mut script = Script::new(config(1, &[assignor]));
    script.stable(&[("t", &[0])]);
    script
}

/// That member, whose JoinGroup for generation 2 is unanswered.
#[track_caller]
fn rejoining() -> Script {
    let mut script = stable("cooperative-sticky");
    script.pass(500);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    assert!(script.asks(ApiKey::JoinGroup));
    script
}

/// Answers the JoinGroup with this generation, led by another member.
#[track_caller]
fn joined(script: &mut Script, generation: i32) {
    let asked: Asked<JoinGroupRequest> = script.asked();
    let response = script.follows(generation);
    script.answer(&asked, &response);
}

fn polled(script: &mut Script, milliseconds: u64) {
    script.pass(milliseconds);
    script.handle(Event::Poll);
}

#[test]
fn scenario_19_a_session_without_an_answered_heartbeat_is_a_lost_membership() {
    for assignor in ["sticky", "cooperative-sticky"] {
        let mut script = Script::new(config(1, &[assignor]));
        script.stable(&[("t", &[0, 2])]);
        let joined = script.now;
        // A heartbeat is never answered, and the connection stays open.
        script.pass(SESSION - 1);
        assert!(script.asks(ApiKey::Heartbeat));
        assert_eq!(script.member.session_end(), Some(joined + SESSION));
        assert_eq!(script.member.next_deadline(), Some(joined + SESSION));
        assert!(!script.member.is_lost());
        script.pass(1);
        assert!(script.member.is_lost());
        script.commit(1, &[("t", 0, 9)]);
        assert_eq!(script.ended(1), Some(ErrorCode::ILLEGAL_GENERATION));
        assert!(!script.asks(ApiKey::OffsetCommit));
        let notice = script.notice().unwrap();
        assert_eq!((notice.kind, notice.lost), (NoticeKind::Prepare, true));
        assert_eq!(notice.revoked, owned(&[("t", &[0, 2])]));
        assert_eq!(script.notices().len(), 1);
        // Another coordinator may answer, and may still have this member id.
        assert!(script.conns.values().all(|&role| role != Role::Group));
        script.obey();
        assert!(!script.member.is_lost());
        script.pass(1_000);
        script.discover();
        let asked: Asked<JoinGroupRequest> = script.asked();
        assert_eq!(asked.body.member_id, "me");
    }
}

#[test]
fn scenario_19_a_loss_is_reported_without_waiting_for_a_broker() {
    let mut script = Script::new(config(1, &["sticky"]));
    let names = || vec!["t".to_owned()];
    script.handle(Event::Subscribe { topics: names(), all_topics: true });
    script.stable(&[("t", &[0])]);
    // No broker answers, so there are no present topics to match expressions against.
    script.connects = false;
    script.cut(Role::Group);
    script.cut(Role::Bootstrap);
    script.pass(SESSION);
    let notice = script.obey();
    assert!(notice.lost);
    // The metadata from that time is not sent in a JoinGroup, because the expressions may match other topics now.
    script.connects = true;
    for conn in script.conns.keys().copied().collect::<Vec<_>>() {
        let versions = script.versions.clone();
        script.handle(Event::Connected { conn, versions });
    }
    script.pass(2_000);
    assert!(!script.asks(ApiKey::JoinGroup));
    script.discover();
    assert!(!script.notice().unwrap().lost);
    script.obey();
    script.discover();
    assert!(script.asks(ApiKey::JoinGroup));
}

#[test]
fn scenario_19_a_session_counts_from_when_the_answered_request_was_sent() {
    let mut script = stable("sticky");
    script.pass(500);
    let sent = script.now;
    let asked: Asked<HeartbeatRequest> = script.asked();
    // The response is slow. The broker counts the session from the arrival of the request, which may be long ago.
    script.pass(4_000);
    script.answer(&asked, &HeartbeatResponse::default());
    assert_eq!(script.member.session_end(), Some(sent + SESSION));
    // REBALANCE_IN_PROGRESS renews the session, too; errors of a coordinator that does not know the member do not.
    for (code, renews) in [
        (ErrorCode::REBALANCE_IN_PROGRESS, true),
        (ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, false),
        (ErrorCode::UNKNOWN_SERVER_ERROR, false),
    ] {
        let mut script = stable("sticky");
        let before = script.member.session_end();
        script.pass(500);
        script.heartbeat(code);
        let end = if renews { Some(script.now + SESSION) } else { before };
        assert_eq!(script.member.session_end(), end, "{code}");
    }
    // An accepted commit renews the session as a heartbeat does, a refused one does not.
    let mut script = stable("sticky");
    let before = script.member.session_end();
    script.pass(5_000);
    script.commit(1, &[("t", 0, 9)]);
    script.committed(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    assert_eq!(script.member.session_end(), before);
    script.pass(1_000);
    script.committed(ErrorCode::NONE);
    assert!(script.member.session_end() > before);
}

#[test]
fn scenario_19_an_answer_that_was_read_late_but_sent_in_time_counts() {
    let mut script = stable("sticky");
    script.pass(500);
    let asked: Asked<HeartbeatRequest> = script.asked();
    // The process pauses until just before the end of the renewed session, and so beyond the end of the old one.
    script.now += SESSION - 1;
    script.answer(&asked, &HeartbeatResponse::default());
    assert!(!script.member.is_lost());
    script.handle(Event::Tick);
    assert_eq!(script.member.stage(), Stage::Stable);
    // Another process pauses until the end of the renewed session.
    let mut script = stable("sticky");
    script.pass(500);
    let asked: Asked<HeartbeatRequest> = script.asked();
    script.now += SESSION;
    script.answer(&asked, &HeartbeatResponse::default());
    assert!(script.member.is_lost());
}

#[test]
fn scenario_19_the_clock_stands_while_the_coordinator_holds_a_join_or_a_sync() {
    let mut script = rejoining();
    // The other members take longer than a session.
    polled(&mut script, 25_000);
    assert_eq!(script.member.session_end(), None);
    assert!(!script.member.is_lost());
    joined(&mut script, 2);
    polled(&mut script, 25_000);
    assert!(script.asks(ApiKey::SyncGroup));
    assert!(!script.member.is_lost());
    script.sync(assignment(&[("t", &[0])], 2));
    assert_eq!(script.member.session_end(), Some(script.now + SESSION));
    script.obey();
    assert_eq!(script.member.owned(), owned(&[("t", &[0])]));
}

#[test]
fn scenario_19_the_clock_goes_on_where_it_stood_when_a_join_or_a_sync_breaks() {
    for api in [ApiKey::JoinGroup, ApiKey::SyncGroup] {
        let mut script = rejoining();
        if api == ApiKey::SyncGroup {
            joined(&mut script, 2);
        }
        assert!(script.asks(api));
        let asked_at = script.now;
        polled(&mut script, 25_000);
        script.connects = false;
        script.cut(Role::Group);
        assert_eq!(script.member.session_end(), Some(asked_at + 25_000 + SESSION), "{api:?}");
        script.pass(SESSION - 1);
        assert!(!script.member.is_lost());
        script.pass(1);
        assert!(script.member.is_lost());
    }
}

#[test]
fn scenario_19_a_join_that_nobody_answers_at_all_is_no_proof_of_life() {
    let mut script = rejoining();
    // There is no response for the longest rebalance plus the broker's delay, and the connection stays open.
    for _ in 0..34 {
        polled(&mut script, 1_000);
        assert!(!script.member.is_lost());
    }
    polled(&mut script, 1_000);
    assert!(script.member.is_lost(), "nothing was heard from the coordinator all that time");
}

#[test]
fn scenario_19_a_throttle_ends_before_the_session_does() {
    for throttle_time_ms in [i32::MAX, SESSION as i32, -1] {
        let mut script = stable("sticky");
        script.pass(500);
        for _ in 0..20 {
            let asked: Asked<HeartbeatRequest> = script.asked();
            script.answer(&asked, &HeartbeatResponse { throttle_time_ms, ..Default::default() });
            let sent = script.now;
            while !script.asks(ApiKey::Heartbeat) {
                assert!(script.now <= sent + SESSION / 2, "{throttle_time_ms}: no heartbeat for {}", script.now - sent);
                polled(&mut script, 100);
            }
        }
        assert_eq!(script.member.stage(), Stage::Stable);
        assert!(script.notices().is_empty());
    }
}

fn lost(world: &World) -> u32 {
    world.hosts.iter().map(|host| host.counts.lost).sum()
}

#[test]
fn scenario_19_brokers_that_go_for_longer_than_a_session_cost_it_and_for_less_do_not() {
    let mut world = group(119, 3, &["cooperative-sticky"], &[("t", 6)]);
    (1..=3).for_each(|node| world.node_down(node));
    world.run(5_000);
    (1..=3).for_each(|node| world.node_up(node));
    world.run(20_000);
    assert_eq!((lost(&world), world.settled()), (0, true));
    (1..=3).for_each(|node| world.node_down(node));
    world.run(SESSION + 1_000);
    // Every member gives up its partitions while no broker is reachable.
    assert_eq!(lost(&world), 3);
    assert!(world.hosts.iter().all(|host| host.held.is_empty()));
    (1..=3).for_each(|node| world.node_up(node));
    world.run_until_so(60_000, "settled again", World::settled);
    assert_eq!(lost(&world), 3);
    world.check();
}

#[test]
fn scenario_20_partitions_of_an_application_that_does_not_poll_are_lost_until_it_has_the_notice() {
    let mut script = stable("sticky");
    for _ in 0..9 {
        script.heartbeat(ErrorCode::NONE);
    }
    script.pass(5_000);
    let has_exceeded =
        |script: &Script| script.actions.iter().any(|action| matches!(action, Action::MaxPollExceeded { .. }));
    assert!(has_exceeded(&script));
    assert!(script.member.is_lost());
    assert!(script.notices().is_empty());
    script.handle(Event::Poll);
    assert!(script.member.is_lost());
    assert!(script.obey().lost);
    assert!(!script.member.is_lost());
}

#[test]
fn scenario_39_a_transaction_names_the_last_generation_until_there_is_a_new_one() {
    for assignor in ["sticky", "cooperative-sticky"] {
        for code in [ErrorCode::ILLEGAL_GENERATION, ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::FENCED_INSTANCE_ID] {
            let mut script = Script::new(config(1, &[assignor]));
            assert_eq!(script.member.fencing(), None);
            assert!(script.member.is_subscribed());
            script.stable(&[("t", &[0])]);
            assert_eq!(script.member.fencing(), Some(("me", 1)));
            script.heartbeat(code);
            assert_eq!(script.member.identity().1, -1);
            assert_eq!(script.member.fencing(), Some(("me", 1)), "{code}");
            script.obey();
            assert_eq!(script.member.fencing(), Some(("me", 1)), "{code}");
            if code == ErrorCode::FENCED_INSTANCE_ID {
                continue;
            }
            joined(&mut script, 7);
            assert!(script.asks(ApiKey::SyncGroup));
            assert_eq!(script.member.fencing(), Some(("me", 7)));
        }
    }
    type Step = (&'static str, (&'static str, i32), fn(&mut Script));
    let steps: [Step; 4] = [
        ("its session ends", ("me", -1), |script| script.pass(SESSION)),
        ("it does not poll", ("", -1), |script| (0..12).for_each(|_| script.pass(3_000))),
        ("it unsubscribes", ("", -1), |script| script.handle(Event::Unsubscribe)),
        ("it closes", ("", -1), |script| script.handle(Event::Close { timeout_ms: 100 })),
    ];
    for (what, identity, step) in steps {
        let mut script = stable("sticky");
        step(&mut script);
        script.handle(Event::Poll);
        script.obey();
        script.pass(100);
        assert_eq!(script.member.fencing(), Some(("me", 1)), "{what}");
        assert_eq!(script.member.identity(), identity, "{what}");
        if what == "it unsubscribes" {
            assert!(!script.member.is_subscribed());
            script.subscribe(&["t"]);
            assert_eq!(script.member.fencing(), Some(("me", 1)), "it subscribes again");
        }
    }
}

#[test]
fn scenario_39_a_rebalance_does_not_take_the_generation_away() {
    let mut script = stable("sticky");
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(script.member.fencing(), Some(("me", 1)));
    script.obey();
    assert!(script.asks(ApiKey::JoinGroup));
    assert_eq!(script.member.fencing(), Some(("me", 1)));
    joined(&mut script, 2);
    assert_eq!(script.member.fencing(), Some(("me", 2)));
    let asked: Asked<SyncGroupRequest> = script.asked();
    assert_eq!(asked.body.generation_id, 2);
}
