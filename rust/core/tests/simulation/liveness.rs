//! Scenarios 17 to 22: heartbeats, sessions, applications that do not poll, and closing.

use crate::script::{Asked, Script, assignment, owned};
use crate::world::World;
use crate::{config, group};
use kafka_assignors_core::member::{Action, Config, Converted, Event, NoticeKind, Role, Stage};
use kafka_assignors_core::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use kafka_assignors_core::protocol::join_group::{JoinGroupRequest, JoinGroupResponse};
use kafka_assignors_core::protocol::leave_group::{LeaveGroupRequest, LeaveGroupResponse};
use kafka_assignors_core::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

#[test]
fn scenario_17_a_rebalance_is_joined_when_stable_and_is_no_news_while_preparing() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    let notice = script.notice().unwrap();
    assert_eq!(notice.kind, NoticeKind::Prepare);
    assert!(script.member.begin(notice.ticket));
    // The callback takes long. Heartbeats continue, with the same response.
    for _ in 0..3 {
        script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(script.notices().len(), 1);
    script.done(&notice);
    assert!(script.asks(ApiKey::JoinGroup));
}

#[test]
fn scenario_17_a_heartbeats_answer_to_a_generation_that_is_over_is_ignored() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.pass(3_000);
    let stale: Asked<HeartbeatRequest> = script.asked();
    script.handle(Event::Rejoin { reason: "lags".to_owned() });
    script.obey();
    let joining: Asked<JoinGroupRequest> = script.asked();
    assert_eq!(joining.body.reason.as_deref(), Some("lags"));
    // A connection has the responses in the order of the requests, so the stale one comes first.
    let stamp = script.member.identity().1;
    script.answer(&stale, &HeartbeatResponse { error_code: ErrorCode::REBALANCE_IN_PROGRESS, ..Default::default() });
    assert_eq!(script.member.identity().1, stamp);
    let joined = script.follows(2);
    script.answer(&joining, &joined);
    script.sync(assignment(&[("t", &[0])], 2));
    script.obey();
    assert_eq!(script.member.stage(), Stage::Stable);
    assert!(script.asks(ApiKey::JoinGroup).eq(&false), "no second rebalance");
}

/// The times of the heartbeats of a member, in milliseconds after its assignment. `wake` returns the next time at which
/// its thread runs.
fn beats(script: &mut Script, number: usize, wake: impl Fn(&Script) -> u64) -> Vec<u64> {
    script.stable(&[("t", &[0])]);
    let began = script.now;
    let mut asked = Vec::new();
    while asked.len() < number {
        script.now = wake(script);
        script.handle(Event::Tick);
        script.handle(Event::Poll);
        if script.asks(ApiKey::Heartbeat) {
            asked.push(script.now - began);
            let request: Asked<HeartbeatRequest> = script.asked();
            script.answer(&request, &HeartbeatResponse::default());
        }
    }
    asked
}

#[test]
fn heartbeats_of_a_member_that_wakes_late_stay_in_step_with_those_of_the_others() {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = beats(&mut script, 20, |script| script.now + 70);
    for (beat, at) in (0..).zip(asked) {
        let due = 500 + 3_000 * beat;
        assert!((due..due + 70).contains(&at), "{beat}: {at}, due {due}");
    }
}

/// The first three heartbeats of a member with this index in its process.
fn beats_of(place: u32, count: u32, heartbeat_interval_ms: u64) -> Vec<u64> {
    let mut script = Script::new(Config { heartbeat_interval_ms, ..config(1, &["sticky"]) });
    script.handle(Event::Neighbours { place, count });
    beats(&mut script, 3, |script| script.member.next_deadline().unwrap())
}

#[test]
fn neighbours_spread_their_heartbeats_over_the_interval() {
    // The last member sends heartbeats at the times of a member that is alone in its process; the others in between.
    //            0    500      1,500     2,500     3,500
    // place 0    |166            1,500               4,500
    // place 1    |  333                    2,500
    // place 2    |    500                            3,500
    assert_eq!(beats_of(0, 3, 3_000), [166, 1_500, 4_500]);
    assert_eq!(beats_of(1, 3, 3_000), [333, 2_500, 5_500]);
    assert_eq!(beats_of(2, 3, 3_000), [500, 3_500, 6_500]);
    assert_eq!(beats_of(0, 1, 3_000), [500, 3_500, 6_500]);
    // At least 100 ms apart, for any number of members.
    assert_eq!(beats_of(0, 1_000, 500), beats_of(5, 1_000, 500));
    assert_eq!(beats_of(0, 1_000, 500), [100, 600, 1_100]);
    assert_eq!(beats_of(7, 0, 50), [50, 100, 150]);
}

#[test]
fn what_one_member_hears_its_neighbours_ask_about_at_once() {
    let mut first = Script::new(config(1, &["sticky"]));
    first.stable(&[("t", &[0])]);
    first.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    first.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    let rebalances: Vec<_> =
        first.actions.iter().filter(|action| matches!(action, Action::GroupRebalances { .. })).collect();
    assert_eq!(rebalances, [&Action::GroupRebalances { generation: 1 }], "once a generation");

    let mut second = Script::new(config(2, &["sticky"]));
    second.stable(&[("t", &[1])]);
    second.pass(100);
    let due = second.member.next_deadline();
    second.handle(Event::GroupRebalances { generation: 1 });
    // Only the coordinator's response starts a rebalance, and the time of the next heartbeat is unchanged.
    assert!(second.notice().is_none());
    let asked: Asked<HeartbeatRequest> = second.asked();
    second.answer(&asked, &HeartbeatResponse::default());
    assert_eq!(second.member.stage(), Stage::Stable);
    assert_eq!(second.member.next_deadline(), due);
    // While a heartbeat is unanswered, another one is due after it: the first may have been sent too early.
    second.pass(400);
    second.handle(Event::GroupRebalances { generation: 1 });
    let regular: Asked<HeartbeatRequest> = second.asked();
    assert!(!second.asks(ApiKey::Heartbeat), "two at a time");
    second.answer(&regular, &HeartbeatResponse::default());
    let asked: Asked<HeartbeatRequest> = second.asked();
    let rebalances = HeartbeatResponse { error_code: ErrorCode::REBALANCE_IN_PROGRESS, ..Default::default() };
    second.answer(&asked, &rebalances);
    second.obey();
    assert!(second.asks(ApiKey::JoinGroup));
}

#[test]
fn what_neighbours_say_of_another_generation_or_of_what_is_known_is_ignored() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.handle(Event::GroupRebalances { generation: -1 });
    script.stable(&[("t", &[0])]);
    for generation in [-1, 0, 2, i32::MAX] {
        script.handle(Event::GroupRebalances { generation });
        assert!(!script.asks(ApiKey::Heartbeat));
    }
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.handle(Event::GroupRebalances { generation: 1 });
    assert!(!script.asks(ApiKey::Heartbeat));
    // The response to a commit reports the rebalance as well as that to a heartbeat.
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.stable(&[("t", &[0])]);
    script.commit(1, &[("t", 0, 9)]);
    script.committed(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(script.actions.contains(&Action::GroupRebalances { generation: 1 }));
}

#[test]
fn scenario_18_an_expelled_member_loses_once_without_a_commit_and_joins_again() {
    for (code, id) in [(ErrorCode::ILLEGAL_GENERATION, "me"), (ErrorCode::UNKNOWN_MEMBER_ID, "")] {
        for assignor in ["sticky", "cooperative-sticky"] {
            let mut script = Script::new(config(1, &[assignor]));
            script.stable(&[("t", &[0, 2])]);
            script.heartbeat(code);
            script.commit(1, &[("t", 0, 9)]);
            assert!(!script.asks(ApiKey::OffsetCommit));
            assert!(matches!(script.ended(1), Some(ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION)));
            let notice = script.obey();
            assert!(notice.lost);
            assert_eq!(notice.revoked, owned(&[("t", &[0, 2])]));
            let asked: Asked<JoinGroupRequest> = script.asked();
            assert_eq!(asked.body.member_id, id);
            assert_eq!(script.notices().len(), 1);
        }
    }
}

#[test]
fn scenario_19_a_session_that_ends_while_the_brokers_are_away() {
    let mut world = group(19, 3, &["cooperative-sticky"], &[("t", 6)]);
    world.unreachable.insert(0);
    world.cut(|host, _| host == 0);
    world.run(20_000);
    world.unreachable.clear();
    world.run_until_so(60_000, "settled again", World::settled);
    assert_eq!(world.hosts[0].counts.lost, 1);
    world.check();
    // An interruption shorter than the session: no partition is lost.
    let lost: u32 = world.hosts.iter().map(|host| host.counts.lost).sum();
    world.unreachable.insert(1);
    world.cut(|host, _| host == 1);
    world.run(5_000);
    world.unreachable.clear();
    world.run(30_000);
    assert!(world.settled());
    assert_eq!(world.hosts.iter().map(|host| host.counts.lost).sum::<u32>(), lost);
    world.check();
}

#[test]
fn scenario_20_an_application_that_does_not_poll_leaves_and_comes_back_with_the_next_poll() {
    let mut world = group(20, 3, &["sticky"], &[("t", 6)]);
    world.hosts[0].polls = false;
    world.run(31_000);
    assert_eq!(world.hosts[0].counts.poll_exceeded, 1);
    world.run(15_000);
    assert_eq!(world.cluster.broker.groups()[0].members.len(), 2, "it has left");
    let others: usize = world.hosts[1..].iter().map(|host| host.held.len()).sum();
    assert_eq!(others, 6);
    world.hosts[0].polls = true;
    world.run_until_so(30_000, "it is back", World::settled);
    assert_eq!(world.hosts[0].counts.lost, 1);
    assert_eq!(world.hosts[0].counts.poll_exceeded, 1);
    world.check();
}

#[test]
fn scenario_20_the_poll_interval_and_the_rebalance_timeout_are_two_values() {
    let mut settings = config(1, &["sticky"]);
    settings.rebalance_timeout_ms = Some(4_000);
    let mut script = Script::new(settings);
    assert_eq!(script.joining().body.rebalance_timeout_ms, 4_000);
    let mut script = Script::new(config(1, &["sticky"]));
    assert_eq!(script.joining().body.rebalance_timeout_ms, 30_000, "max.poll.interval.ms, as in Java");

    let mut settings = config(1, &["sticky"]);
    settings.rebalance_timeout_ms = Some(4_000);
    let mut script = Script::new(settings);
    script.stable(&[("t", &[0])]);
    script.handle(Event::Poll);
    let exceeded = |script: &Script| script.actions.iter().any(|each| matches!(each, Action::MaxPollExceeded { .. }));
    for _ in 0..9 {
        script.heartbeat(ErrorCode::NONE);
    }
    assert!(!exceeded(&script), "the rebalance timeout expels nobody who is stable");
    script.pass(6_000);
    assert!(exceeded(&script));
}

#[test]
fn scenario_20_a_static_member_that_does_not_poll_only_falls_silent() {
    let mut settings = config(1, &["sticky"]);
    settings.group_instance_id = Some("i".to_owned());
    let mut script = Script::new(settings);
    let asked = script.joining();
    let joined = script.follows(1);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[0])], 1));
    script.obey();
    for _ in 0..9 {
        script.heartbeat(ErrorCode::NONE);
    }
    script.pass(60_000);
    assert!(!script.asks(ApiKey::LeaveGroup));
    let asked = script.asks(ApiKey::Heartbeat).then(|| script.asked::<HeartbeatRequest>());
    script.pass(30_000);
    assert!(!script.asks(ApiKey::Heartbeat), "silent, but for {asked:?}");
    script.handle(Event::Poll);
    assert!(script.obey().lost);
}

#[test]
fn scenario_21_a_process_that_stands_still_is_a_member_again_afterwards() {
    // A pause shorter than the session has no effect. After a longer one the member was removed, and learns of it.
    let mut world = group(21, 3, &["cooperative-sticky"], &[("t", 6)]);
    for (still, lost) in [(8_000, 0), (25_000, 1)] {
        world.freeze(0);
        world.run(still);
        world.thaw(0);
        world.run_until_so(60_000, "settled", World::settled);
        world.run(10_000);
        assert_eq!(world.hosts[0].counts.lost, lost);
        world.check();
    }
}

#[test]
fn scenario_22_closing_while_a_join_is_parked() {
    let mut world = group(22, 3, &["sticky"], &[("t", 6)]);
    // A member that does not release its partitions delays the JoinGroup responses of the others.
    world.hosts[2].callback_ms = 20_000;
    world.subscribe(0, &["t", "u"]);
    world.run_until_so(15_000, "parked", |world| world.hosts[0].member.stage() == Stage::Joining);
    world.close(0, 3_000);
    world.run_until_so(3_100, "closed", |world| world.hosts[0].closed);
    world.run_until_so(60_000, "the others go on", World::settled);
    assert_eq!(world.cluster.broker.groups()[0].members.len(), 2);
    world.check();
}

#[test]
fn scenario_22_closing_without_a_coordinator_takes_no_longer_than_allowed() {
    let mut world = group(23, 2, &["sticky"], &[("t", 4)]);
    (1..=3).for_each(|node| world.node_down(node));
    world.run(1_000);
    world.close(0, 4_000);
    world.run_until_so(4_500, "closed", |world| world.hosts[0].closed);
    assert!(world.hosts[0].held.is_empty(), "its callbacks have run");
    assert_eq!(world.hosts[0].member.next_deadline(), None);
}

/// A cooperative member that has two partitions, and whose JoinGroup is unanswered.
fn unanswered() -> (Script, Asked<JoinGroupRequest>) {
    let mut settings = config(1, &["cooperative-sticky"]);
    settings.converted = Converted::CarryOn;
    let mut script = Script::new(settings);
    script.stable(&[("t", &[0, 1])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let asked = script.asked();
    (script, asked)
}

/// As `unanswered`. The member is being closed.
fn rejoining() -> (Script, Asked<JoinGroupRequest>) {
    let (mut script, asked) = unanswered();
    script.handle(Event::Close { timeout_ms: 20_000 });
    assert!(script.notice().is_none_or(|notice| notice.kind != NoticeKind::Leave), "it keeps its partitions");
    (script, asked)
}

/// The member leaves. Its callback commits before, with this generation.
fn leaves_with_a_commit(script: &mut Script, generation: i32) {
    let leave = script.notice().unwrap();
    assert_eq!((leave.kind, leave.lost), (NoticeKind::Leave, false));
    assert_eq!(leave.revoked, owned(&[("t", &[0, 1])]));
    assert!(script.member.begin(leave.ticket));
    script.commit(1, &[("t", 0, 5), ("t", 1, 6)]);
    assert_eq!(script.committed(ErrorCode::NONE).generation_id, generation);
    assert_eq!(script.ended(1), Some(ErrorCode::NONE));
    script.done(&leave);
    let left: Asked<LeaveGroupRequest> = script.asked();
    script.answer(&left, &LeaveGroupResponse::default());
    assert_eq!(script.member.stage(), Stage::Closed);
}

#[test]
fn scenario_22_closing_during_a_rejoin_commits_what_was_read() {
    // A group with a leader, and a group for which the broker plans: that group has no leader, and the broker answers at once.
    for leader in ["boss", ""] {
        let (mut script, asked) = rejoining();
        let joined = JoinGroupResponse { leader: leader.to_owned(), ..script.follows(2) };
        script.answer(&asked, &joined);
        script.sync(assignment(&[("t", &[0])], 2));
        leaves_with_a_commit(&mut script, 2);
    }
}

#[test]
fn scenario_22_closing_during_a_rejoin_that_begins_again_commits_what_was_read() {
    // While a group is converted, the broker answers JoinGroup and SyncGroup with this code, and the member's generation stays
    // valid.
    let again = ErrorCode::REBALANCE_IN_PROGRESS;
    let (mut script, asked) = rejoining();
    script.answer(&asked, &JoinGroupResponse { error_code: again, ..Default::default() });
    leaves_with_a_commit(&mut script, 1);

    let (mut script, asked) = rejoining();
    script.answer(&asked, &script.follows(2));
    let syncing: Asked<SyncGroupRequest> = script.asked();
    script.answer(&syncing, &SyncGroupResponse { error_code: again, ..Default::default() });
    leaves_with_a_commit(&mut script, 2);
}

/// The member leaves. Its partitions are lost, and its callback cannot commit.
fn leaves_without_a_commit(script: &mut Script) {
    let leave = script.notice().unwrap();
    assert_eq!((leave.kind, leave.lost), (NoticeKind::Leave, true));
    assert!(script.member.begin(leave.ticket));
    script.commit(1, &[("t", 0, 5)]);
    assert_eq!(script.ended(1), Some(ErrorCode::REBALANCE_IN_PROGRESS));
    script.done(&leave);
    assert!(script.asks(ApiKey::LeaveGroup));
}

#[test]
fn scenario_22_closing_while_others_have_not_joined_commits_with_the_last_generation() {
    // The wait: a heartbeat interval, and a second for the callbacks of the others.
    let (mut script, _asked) = rejoining();
    script.pass(3_999);
    assert_eq!(script.member.stage(), Stage::Joining);
    script.pass(1);
    leaves_with_a_commit(&mut script, 1);

    let (mut script, _asked) = rejoining();
    script.handle(Event::Close { timeout_ms: 2_000 });
    script.pass(1_999);
    assert_eq!(script.member.stage(), Stage::Joining);
    script.pass(1);
    // There is no time for a commit.
    let leave = script.notice().unwrap();
    assert_eq!((leave.kind, leave.lost), (NoticeKind::Leave, false));
    script.done(&leave);
    assert_eq!(script.member.stage(), Stage::Closed);
}

#[test]
fn scenario_22_a_last_commit_that_comes_after_the_join_of_the_others_is_refused() {
    let (mut script, _asked) = rejoining();
    script.pass(4_000);
    let leave = script.notice().unwrap();
    assert!(script.member.begin(leave.ticket));
    script.commit(1, &[("t", 0, 5)]);
    assert_eq!(script.committed(ErrorCode::ILLEGAL_GENERATION).generation_id, 1);
    assert_eq!(script.ended(1), Some(ErrorCode::ILLEGAL_GENERATION));
    script.done(&leave);
    assert!(script.asks(ApiKey::LeaveGroup));
}

#[test]
fn scenario_22_closing_waits_for_the_plan_until_its_time_is_over() {
    let (mut script, asked) = rejoining();
    let joined = script.follows(2);
    script.pass(500);
    script.answer(&asked, &joined);
    script.pass(19_499);
    assert_eq!(script.member.stage(), Stage::Syncing);
    script.pass(1);
    let leave = script.notice().unwrap();
    assert_eq!((leave.kind, leave.lost), (NoticeKind::Leave, true));
    script.done(&leave);
    assert_eq!(script.member.stage(), Stage::Closed);
}

#[test]
fn scenario_22_unsubscribing_does_not_wait_for_a_rejoin() {
    let (mut script, _asked) = unanswered();
    script.handle(Event::Unsubscribe);
    let leave = script.notice().unwrap();
    assert_eq!((leave.kind, leave.lost), (NoticeKind::Leave, false));
    assert!(script.member.begin(leave.ticket));
    script.commit(1, &[("t", 0, 5), ("t", 1, 6)]);
    assert_eq!(script.committed(ErrorCode::NONE).generation_id, 1);
    script.done(&leave);
    assert!(script.asks(ApiKey::LeaveGroup));

    let (mut script, asked) = unanswered();
    script.answer(&asked, &script.follows(2));
    script.handle(Event::Unsubscribe);
    leaves_without_a_commit(&mut script);
}

#[test]
fn scenario_22_closing_twice_and_inside_a_callback() {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    let joined = script.follows(1);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[0])], 1));
    let notice = script.notice().unwrap();
    assert!(script.member.begin(notice.ticket));
    script.handle(Event::Close { timeout_ms: 5_000 });
    script.handle(Event::Close { timeout_ms: 5_000 });
    assert_eq!(script.notice().unwrap().ticket, notice.ticket, "the callback that runs is waited for");
    script.done(&notice);
    let leave = script.obey();
    assert_eq!((leave.kind, leave.lost), (NoticeKind::Leave, false));
    assert_eq!(leave.revoked, owned(&[("t", &[0])]));
    let asked: Asked<LeaveGroupRequest> = script.asked();
    assert_eq!(asked.conn, script.conn(Role::Offsets));
    assert_eq!(asked.body.members[0].member_id, "me");
    script.answer(&asked, &LeaveGroupResponse::default());
    let closed = script.actions.iter().filter(|action| **action == Action::Closed).count();
    assert_eq!(closed, 1);
    script.handle(Event::Close { timeout_ms: 5_000 });
    script.handle(Event::Poll);
    script.subscribe(&["t"]);
    assert_eq!(script.actions.iter().filter(|action| **action == Action::Closed).count(), 1);
    assert!(script.conns.is_empty());
}

#[test]
fn a_farewell_that_could_not_be_said_in_time_keeps_nobody_waiting() {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    script.answer(&asked, &script.follows(1));
    // There is no connection for the LeaveGroup.
    script.connects = false;
    if script.conns.values().any(|&role| role == Role::Offsets) {
        script.cut(Role::Offsets);
    }
    let syncing: Asked<SyncGroupRequest> = script.asked();
    let refused = SyncGroupResponse { error_code: ErrorCode::GROUP_AUTHORIZATION_FAILED, ..Default::default() };
    script.answer(&syncing, &refused);
    let failed_at = script.now;
    assert_eq!(script.fatal(), [ErrorCode::GROUP_AUTHORIZATION_FAILED]);
    script.handle(Event::Close { timeout_ms: 60_000 });
    script.pass(9_999);
    assert_eq!(script.member.stage(), Stage::Failed);
    // request_timeout_ms has passed, and no other event happens at that time.
    script.pass(1);
    assert_eq!((script.member.stage(), script.now), (Stage::Closed, failed_at + 10_000));
}
