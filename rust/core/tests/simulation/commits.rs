//! Scenarios 34 to 38 and 40: offsets.

use crate::script::{Asked, Script, assignment, owned};
use crate::world::{Weather, World};
use crate::{config, group};
use kafka_assignors_core::member::{Action, CommitOffset, Config, Event, Role, Stage};
use kafka_assignors_core::protocol::join_group::JoinGroupRequest;
use kafka_assignors_core::protocol::offsets::{
    OffsetCommitRequest, OffsetFetchPartitionResponse, OffsetFetchRequest, OffsetFetchResponse,
    OffsetFetchTopicResponse,
};
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

/// The member's reaction to the error of a commit.
#[derive(Debug, PartialEq)]
enum Reaction {
    /// Tried again until it succeeds.
    Retried,
    /// The application gets the error; the member stays in its generation.
    Told,
    /// The application gets the error; the member leaves its generation.
    Expelled,
    /// The member fails for good.
    Fatal,
}

#[test]
fn scenario_34_each_error_of_a_commit_has_its_reaction() {
    let table = [
        (ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, Reaction::Retried),
        (ErrorCode::COORDINATOR_NOT_AVAILABLE, Reaction::Retried),
        (ErrorCode::NOT_COORDINATOR, Reaction::Retried),
        (ErrorCode::REQUEST_TIMED_OUT, Reaction::Retried),
        (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, Reaction::Retried),
        (ErrorCode::ILLEGAL_GENERATION, Reaction::Expelled),
        (ErrorCode::UNKNOWN_MEMBER_ID, Reaction::Expelled),
        (ErrorCode::GROUP_ID_NOT_FOUND, Reaction::Expelled),
        (ErrorCode::TOPIC_AUTHORIZATION_FAILED, Reaction::Told),
        (ErrorCode::GROUP_AUTHORIZATION_FAILED, Reaction::Told),
        (ErrorCode::OFFSET_METADATA_TOO_LARGE, Reaction::Told),
        (ErrorCode::INVALID_COMMIT_OFFSET_SIZE, Reaction::Told),
        (ErrorCode::UNKNOWN_SERVER_ERROR, Reaction::Told),
        (ErrorCode(1234), Reaction::Told),
        (ErrorCode::FENCED_INSTANCE_ID, Reaction::Fatal),
    ];
    for (code, expected) in table {
        let mut script = Script::new(config(1, &["sticky"]));
        script.stable(&[("t", &[0])]);
        script.commit(3, &[("t", 0, 5)]);
        assert_eq!(script.committed(code).generation_id, 1);
        let expelled = script.notice().is_some_and(|notice| notice.lost);
        let reaction = match script.ended(3) {
            None => Reaction::Retried,
            Some(_) if !script.fatal().is_empty() => Reaction::Fatal,
            Some(_) if expelled => Reaction::Expelled,
            Some(_) => Reaction::Told,
        };
        assert_eq!(reaction, expected, "{code}");
        if expected == Reaction::Retried {
            assert!(!script.asks(ApiKey::OffsetCommit), "{code}: after a pause");
            script.pass(300);
            script.discover();
            script.pass(300);
            script.committed(ErrorCode::NONE);
            assert_eq!(script.ended(3), Some(ErrorCode::NONE), "{code}");
        }
    }
}

#[test]
fn scenario_34_a_commit_is_tried_until_its_time_is_over() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    let offset = CommitOffset { topic: "t".to_owned(), partition: 0, offset: 1, leader_epoch: -1, metadata: None };
    script.handle(Event::Commit { id: 1, offsets: vec![offset], timeout_ms: 2_000 });
    let mut tries = 0;
    while script.ended(1).is_none() {
        if script.asks(ApiKey::OffsetCommit) {
            script.committed(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
            tries += 1;
        }
        script.pass(10);
    }
    assert_eq!(script.ended(1), Some(ErrorCode::REQUEST_TIMED_OUT));
    assert!((3..=8).contains(&tries), "{tries}");
    assert!((2_000..2_020).contains(&(script.now % 100_000).max(2_000)), "{}", script.now);
}

#[test]
fn scenario_35_commits_before_during_and_after_a_rebalance() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    // A commit in the callback, before JoinGroup: it is sent with the old generation, and JoinGroup waits for it.
    script.commit(1, &[("t", 0, 5)]);
    let notice = script.obey();
    assert_eq!(notice.revoked, owned(&[("t", &[0, 1])]));
    assert!(!script.asks(ApiKey::JoinGroup));
    assert_eq!(script.committed(ErrorCode::NONE).generation_id, 1);
    let joining: Asked<JoinGroupRequest> = script.asked();
    // A commit between JoinGroup and SyncGroup: no offset of a given-up partition is sent.
    script.commit(2, &[("t", 0, 6)]);
    assert!(!script.asks(ApiKey::OffsetCommit));
    let joined = script.follows(2);
    script.answer(&joining, &joined);
    assert!(!script.asks(ApiKey::OffsetCommit));
    script.sync(assignment(&[("t", &[0])], 2));
    script.obey();
    assert_eq!(script.ended(2), Some(ErrorCode::NONE), "dropped");
    // A commit after the rebalance: it is sent with the new generation, and the member drops the partition that it lost.
    script.commit(3, &[("t", 0, 7), ("t", 1, 7)]);
    let body = script.committed(ErrorCode::NONE);
    assert_eq!((body.generation_id, body.topics[0].partitions.len()), (2, 1));
    let dropped = script.actions.iter().find_map(|action| match action {
        Action::CommitDone { id: 3, dropped, .. } => Some(dropped.clone()),
        _ => None,
    });
    assert_eq!(dropped, Some(vec![("t".to_owned(), 1)]));
}

#[test]
fn scenario_35_what_a_cooperative_member_keeps_is_committed_after_the_rebalance() {
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let joining: Asked<JoinGroupRequest> = script.asked();
    script.commit(1, &[("t", 0, 5), ("t", 1, 5)]);
    assert!(!script.asks(ApiKey::OffsetCommit), "not between JoinGroup and SyncGroup");
    let joined = script.follows(2);
    script.answer(&joining, &joined);
    script.sync(assignment(&[("t", &[0, 1])], 2));
    let body = script.committed(ErrorCode::NONE);
    assert_eq!((body.generation_id, body.topics[0].partitions.len()), (2, 2));
    assert_eq!(script.ended(1), Some(ErrorCode::NONE));
}

/// A first commit is in flight when the application commits again, in the callback in which it gives partitions up. The second
/// commit waits, and the application returns the notice before it is sent.
fn in_a_callback(script: &mut Script) {
    let notice = script.notice().unwrap();
    assert!(script.member.begin(notice.ticket));
    script.commit(2, &[("t", 0, 6), ("t", 1, 6)]);
    script.done(&notice);
    assert!(!script.asks(ApiKey::JoinGroup));
    assert!(!script.asks(ApiKey::LeaveGroup));
    assert_eq!(script.committed(ErrorCode::NONE).topics[0].partitions[0].committed_offset, 5);
    let body = script.committed(ErrorCode::NONE);
    assert_eq!((body.generation_id, body.topics[0].partitions.len()), (1, 2));
    assert!(body.topics[0].partitions.iter().all(|partition| partition.committed_offset == 6));
    assert_eq!((script.ended(1), script.ended(2)), (Some(ErrorCode::NONE), Some(ErrorCode::NONE)));
}

#[test]
fn scenario_35_a_last_commit_that_waits_for_another_one_is_sent_before_the_member_joins_or_leaves() {
    // The partitions that an eager member gives up before it joins.
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.commit(1, &[("t", 0, 5)]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    in_a_callback(&mut script);
    let joining: Asked<JoinGroupRequest> = script.asked();
    // After JoinGroup no offset of these partitions is committed.
    script.commit(3, &[("t", 0, 7)]);
    script.answer(&joining, &script.follows(2));
    script.sync(assignment(&[("t", &[1])], 2));
    script.obey();
    assert!(!script.asks(ApiKey::OffsetCommit));

    // The partitions that a member gives up before it leaves.
    for strategy in ["sticky", "cooperative-sticky"] {
        let mut script = Script::new(config(1, &[strategy]));
        script.stable(&[("t", &[0, 1])]);
        script.commit(1, &[("t", 0, 5)]);
        script.handle(Event::Close { timeout_ms: 20_000 });
        in_a_callback(&mut script);
        assert!(script.asks(ApiKey::LeaveGroup));
    }
}

#[test]
fn scenario_35_a_last_commit_of_a_topic_that_is_gone_does_not_hold_up_the_group() {
    let mut script = Script::new(config(1, &["range"]));
    script.stable(&[("t", &[0, 1])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    let notice = script.notice().unwrap();
    assert!(script.member.begin(notice.ticket));
    script.commit(1, &[("t", 0, 5), ("t", 1, 6)]);
    script.done(&notice);
    assert!(!script.asks(ApiKey::JoinGroup));
    script.committed(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(script.ended(1), Some(ErrorCode::NONE));
    assert!(script.asks(ApiKey::JoinGroup), "a further attempt would have to wait");
}

#[test]
fn scenario_35_a_last_commit_of_what_goes_to_others_is_sent_before_they_get_it() {
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let joining: Asked<JoinGroupRequest> = script.asked();
    script.answer(&joining, &script.follows(2));
    script.sync(assignment(&[("t", &[0])], 2));
    script.commit(1, &[("t", 0, 5)]);
    let notice = script.notice().unwrap();
    assert_eq!(notice.revoked, owned(&[("t", &[1])]));
    assert!(script.member.begin(notice.ticket));
    script.commit(2, &[("t", 1, 6)]);
    script.done(&notice);
    script.obey();
    assert!(!script.asks(ApiKey::JoinGroup), "the others get it then");
    script.committed(ErrorCode::NONE);
    let body = script.committed(ErrorCode::NONE);
    assert_eq!((body.generation_id, body.topics[0].partitions[0].partition_index), (2, 1));
    assert!(script.asks(ApiKey::JoinGroup));
}

#[test]
fn scenario_35_a_commit_that_comes_too_late_for_its_generation_is_sent_with_the_next() {
    let mut settings = config(1, &["cooperative-sticky"]);
    settings.max_poll_interval_ms = 7_000;
    late_for_its_generation(settings);
}

#[test]
fn scenario_35_no_commit_holds_a_rebalance_up_beyond_its_timeout() {
    let mut settings = config(1, &["cooperative-sticky"]);
    settings.rebalance_timeout_ms = Some(7_000);
    late_for_its_generation(settings);
}

/// A member whose rebalances may take 7 seconds has a commit that takes longer.
fn late_for_its_generation(settings: Config) {
    let mut script = Script::new(settings);
    script.stable(&[("t", &[0])]);
    script.commit(1, &[("t", 0, 5)]);
    let slow: Asked<OffsetCommitRequest> = script.asked();
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    // JoinGroup waits for the commit, but not for ever.
    for _ in 0..2 {
        script.handle(Event::Poll);
        script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
        assert!(!script.asks(ApiKey::JoinGroup));
    }
    script.handle(Event::Poll);
    script.pass(1_000);
    if script.asks(ApiKey::Heartbeat) {
        script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    let joining: Asked<JoinGroupRequest> = script.asked();
    let joined = script.follows(2);
    script.answer(&joining, &joined);
    script.sync(assignment(&[("t", &[0])], 2));
    script.obey();
    {
        let partition = kafka_assignors_core::protocol::offsets::OffsetCommitPartitionResponse {
            partition_index: 0,
            error_code: ErrorCode::ILLEGAL_GENERATION,
        };
        let topic = kafka_assignors_core::protocol::offsets::OffsetCommitTopicResponse {
            name: "t".to_owned(),
            partitions: vec![partition],
            ..Default::default()
        };
        let body =
            kafka_assignors_core::protocol::offsets::OffsetCommitResponse { topics: vec![topic], ..Default::default() };
        script.answer(&slow, &body);
    }
    script.pass(300);
    assert_eq!(script.committed(ErrorCode::NONE).generation_id, 2);
    assert_eq!(script.member.stage(), Stage::Stable, "the stale refusal expels nobody");
}

/// Lets time pass until the member sends JoinGroup; heartbeats are answered with REBALANCE_IN_PROGRESS.
fn until_joining(script: &mut Script) -> Asked<JoinGroupRequest> {
    for _ in 0..400 {
        if script.asks(ApiKey::JoinGroup) {
            break;
        }
        if script.asks(ApiKey::Heartbeat) {
            script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        script.handle(Event::Poll);
        script.pass(50);
    }
    script.asked()
}

#[test]
fn scenario_35_a_commit_of_what_was_away_in_between_is_dropped() {
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.stable(&[("t", &[0, 1])]);
    // The commit has no connection while partition 1 goes to another member and comes back.
    script.connects = false;
    script.cut(Role::Offsets);
    script.commit(1, &[("t", 0, 5), ("t", 1, 5)]);
    for (generation, numbers) in [(2, &[0][..]), (3, &[0, 1])] {
        if generation == 2 {
            script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        script.obey();
        let joining = until_joining(&mut script);
        let joined = script.follows(generation);
        script.answer(&joining, &joined);
        script.sync(assignment(&[("t", numbers)], generation));
        script.obey();
    }
    script.connects = true;
    while !script.asks(ApiKey::OffsetCommit) {
        if let Some((&conn, _)) = script.conns.iter().find(|(_, role)| **role == Role::Offsets) {
            let versions = script.versions.clone();
            script.handle(Event::Connected { conn, versions });
        }
        if script.asks(ApiKey::Heartbeat) {
            script.heartbeat(ErrorCode::NONE);
        }
        script.pass(100);
    }
    let body = script.committed(ErrorCode::NONE);
    let partitions: Vec<i32> = body.topics[0].partitions.iter().map(|partition| partition.partition_index).collect();
    assert_eq!((body.generation_id, partitions), (3, vec![0]));
    let dropped = script.actions.iter().find_map(|action| match action {
        Action::CommitDone { id: 1, dropped, .. } => Some(dropped.clone()),
        _ => None,
    });
    assert_eq!(dropped, Some(vec![("t".to_owned(), 1)]));
}

#[test]
fn scenario_35_a_commit_across_a_generation_that_was_missed_is_dropped() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.connects = false;
    script.cut(Role::Offsets);
    script.commit(1, &[("t", 0, 5)]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let joining = until_joining(&mut script);
    let joined = script.follows(2);
    script.answer(&joining, &joined);
    // SyncGroup stays without an answer: the member does not know who owned partition 0 in generation 2.
    let _: Asked<kafka_assignors_core::protocol::sync_group::SyncGroupRequest> = script.asked();
    script.connects = true;
    script.cut(Role::Group);
    while !script.asks(ApiKey::JoinGroup) {
        script.discover();
        script.pass(50);
    }
    let joining: Asked<JoinGroupRequest> = script.asked();
    let joined = script.follows(3);
    script.answer(&joining, &joined);
    script.sync(assignment(&[("t", &[0])], 3));
    script.obey();
    assert!(!script.asks(ApiKey::OffsetCommit));
    let dropped = script.actions.iter().find_map(|action| match action {
        Action::CommitDone { id: 1, dropped, .. } => Some(dropped.clone()),
        _ => None,
    });
    assert_eq!(dropped, Some(vec![("t".to_owned(), 0)]));
}

#[test]
fn scenario_35_an_eager_member_commits_what_came_straight_back() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.connects = false;
    script.cut(Role::Offsets);
    script.commit(1, &[("t", 0, 5), ("t", 1, 5)]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let joining = until_joining(&mut script);
    let joined = script.follows(2);
    script.answer(&joining, &joined);
    script.sync(assignment(&[("t", &[0])], 2));
    script.connects = true;
    let conn = script.conn(Role::Offsets);
    let versions = script.versions.clone();
    script.handle(Event::Connected { conn, versions });
    assert!(!script.asks(ApiKey::OffsetCommit), "not before the assignment is taken");
    script.obey();
    script.pass(1_500);
    let body = script.committed(ErrorCode::NONE);
    let partitions: Vec<i32> = body.topics[0].partitions.iter().map(|partition| partition.partition_index).collect();
    assert_eq!((body.generation_id, partitions), (2, vec![0]));
}

#[test]
fn scenario_35_a_commit_of_what_was_given_up_is_not_waited_for() {
    // An eager member that has given everything up cannot take its assignment while its application waits for a commit.
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let joining = until_joining(&mut script);
    script.commit(1, &[("t", 0, 5)]);
    assert_eq!(script.ended(1), Some(ErrorCode::NONE));
    let joined = script.follows(2);
    script.answer(&joining, &joined);
    script.sync(assignment(&[("t", &[0])], 2));
    script.commit(2, &[("t", 0, 5)]);
    assert_eq!(script.ended(2), Some(ErrorCode::NONE));
    for number in [1, 2] {
        let dropped = script.actions.iter().any(
            |action| matches!(action, Action::CommitDone { id, dropped, .. } if *id == number && dropped.len() == 1),
        );
        assert!(dropped, "commit {number} says that it was dropped");
    }
}

#[test]
fn scenario_36_a_zombies_commit_is_refused_and_the_new_owners_stays() {
    for assignor in ["sticky", "cooperative-sticky"] {
        let mut world = group(36, 3, &[assignor], &[("t", 6)]);
        world.commits = 1;
        world.run(10_000);
        world.freeze(0);
        world.run(30_000);
        // The frozen application wakes with old positions, and commits at once.
        let keys: Vec<_> = world.hosts[0].held.keys().cloned().collect();
        assert!(!keys.is_empty());
        let (id, event) = world.hosts[0].commit_event(keys.into_iter(), 5_000).unwrap();
        world.hosts[0].frozen = false;
        world.handle(0, event);
        world.thaw(0);
        world.run_until_so(60_000, "settled", World::settled);
        let code = world.result(0, id).unwrap();
        assert!(
            matches!(code, ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION | ErrorCode::REQUEST_TIMED_OUT),
            "{code}"
        );
        // This checks, among others, that no committed offset went back.
        world.check();
    }
}

#[test]
fn scenario_37_commits_are_neither_reordered_nor_taken_back_when_connections_break() {
    let mut world = group(37, 3, &["cooperative-sticky"], &[("t", 6)]);
    world.commits = 1;
    world.poll_ms = 40;
    world.weather = Weather { delay: 100, cut: 12 };
    for node in [2, 3, 1, 2] {
        world.run(5_000);
        world.cluster.coordinator = node;
    }
    world.weather = crate::world::CALM;
    world.run_until_so(60_000, "settled", World::settled);
    assert!(world.hosts.iter().all(|host| host.counts.committed > 50));
    world.check();
}

#[test]
fn scenario_37_the_lost_one_is_repeated_before_any_newer_one() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    for id in 1..=5 {
        script.commit(id, &[("t", 0, id as i64)]);
    }
    let first: Asked<OffsetCommitRequest> = script.asked();
    assert!(!script.asks(ApiKey::OffsetCommit), "one at a time");
    script.cut(Role::Offsets);
    script.pass(500);
    for id in 1..=5 {
        let body = script.committed(ErrorCode::NONE);
        assert_eq!(body.topics[0].partitions[0].committed_offset, id);
        if id == 1 {
            assert_eq!(body, first.body);
        }
    }
}

#[test]
fn scenario_37_a_commit_in_flight_is_waited_for_when_the_coordinator_moves() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.commit(1, &[("t", 0, 1)]);
    let first: Asked<OffsetCommitRequest> = script.asked();
    script.heartbeat(ErrorCode::NOT_COORDINATOR);
    script.commit(2, &[("t", 0, 2)]);
    script.pass(500);
    script.discover();
    script.pass(500);
    // The coordinator is known again, but the newer commit is not sent before the older one is answered.
    assert!(script.conns.contains_key(&first.conn));
    assert!(!script.asks(ApiKey::OffsetCommit));
    let partition = kafka_assignors_core::protocol::offsets::OffsetCommitPartitionResponse::default();
    let topic = kafka_assignors_core::protocol::offsets::OffsetCommitTopicResponse {
        name: "t".to_owned(),
        partitions: vec![partition],
        ..Default::default()
    };
    let body =
        kafka_assignors_core::protocol::offsets::OffsetCommitResponse { topics: vec![topic], ..Default::default() };
    script.answer(&first, &body);
    assert_eq!(script.ended(1), Some(ErrorCode::NONE));
    script.pass(100);
    assert!(!script.conns.contains_key(&first.conn), "now it is closed");
    assert_eq!(script.committed(ErrorCode::NONE).topics[0].partitions[0].committed_offset, 2);
}

#[test]
fn scenario_38_what_may_not_be_committed_is_dropped_here() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.commit(1, &[("t", 3, 5), ("u", 0, 5)]);
    assert!(!script.asks(ApiKey::OffsetCommit));
    let done = script.actions.iter().find_map(|action| match action {
        Action::CommitDone { id: 1, dropped, .. } => Some(dropped.len()),
        _ => None,
    });
    assert_eq!(done, Some(2));
    // Metadata that no field can carry, and metadata that the broker finds too long.
    let offset = |length: usize| CommitOffset {
        topic: "t".to_owned(),
        partition: 0,
        offset: 5,
        leader_epoch: -1,
        metadata: Some("x".repeat(length)),
    };
    script.handle(Event::Commit { id: 2, offsets: vec![offset(40_000)], timeout_ms: 1_000 });
    assert_eq!(script.ended(2), Some(ErrorCode::OFFSET_METADATA_TOO_LARGE));
    script.handle(Event::Commit { id: 3, offsets: vec![offset(5_000)], timeout_ms: 1_000 });
    script.committed(ErrorCode::OFFSET_METADATA_TOO_LARGE);
    let code = script.actions.iter().find_map(|action| match action {
        Action::CommitDone { id: 3, partitions, .. } => Some(partitions[0].2),
        _ => None,
    });
    assert_eq!(code, Some(ErrorCode::OFFSET_METADATA_TOO_LARGE));
    // A commit after the member has left.
    script.handle(Event::Close { timeout_ms: 0 });
    script.obey();
    script.pass(1);
    script.commit(4, &[("t", 0, 5)]);
    assert_eq!(script.ended(4), Some(ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn scenario_40_offsets_that_a_transaction_holds_are_waited_for() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.handle(Event::FetchOffsets { id: 1, partitions: owned(&[("t", &[0])]), timeout_ms: 60_000 });
    let answer = |script: &mut Script, error_code: ErrorCode, committed_offset: i64| {
        let asked: Asked<OffsetFetchRequest> = script.asked();
        let partition = OffsetFetchPartitionResponse { error_code, committed_offset, ..Default::default() };
        let topic =
            OffsetFetchTopicResponse { name: "t".to_owned(), partitions: vec![partition], ..Default::default() };
        script.answer(&asked, &OffsetFetchResponse { topics: vec![topic], ..Default::default() });
    };
    let fetched = |script: &Script| {
        script.actions.iter().find_map(|action| match action {
            Action::OffsetsFetched { id: 1, offsets, .. } => Some(offsets[0].offset),
            _ => None,
        })
    };
    for _ in 0..4 {
        answer(&mut script, ErrorCode::UNSTABLE_OFFSET_COMMIT, -1);
        assert_eq!(fetched(&script), None);
        assert!(!script.asks(ApiKey::OffsetFetch), "after a pause");
        script.pass(1_200);
    }
    answer(&mut script, ErrorCode::NONE, 42);
    assert_eq!(fetched(&script), Some(42));
}

#[test]
fn a_consumer_that_is_assigned_by_hand_commits_without_a_member() {
    let mut settings = config(1, &["sticky"]);
    settings.group_instance_id = Some("i".to_owned());
    let mut script = Script::new(settings);
    script.handle(Event::Unsubscribe);
    script.discover();
    script.commit(1, &[("t", 0, 5)]);
    script.pass(500);
    script.discover();
    let body = script.committed(ErrorCode::NONE);
    assert_eq!((body.generation_id, body.member_id.as_str(), body.group_instance_id), (-1, "", None));
    assert_eq!(script.ended(1), Some(ErrorCode::NONE));
}
