//! The scenarios of the consumer protocol, one by one. Their table is in `docs/fault-scenarios.md`.

use crate::coordinator::Rules;
use crate::world::{GROUP, World, config};
use kafka_assignors_core::member::{CommitOffset, ConsumerConfig, Event, NoticeKind, Stage};
use kafka_assignors_core::protocol::ErrorCode;
use kafka_assignors_core::protocol::consumer_group_heartbeat::*;

pub(crate) const NEWEST: Rules =
    Rules { plan_interval: 1_000, older_epochs_commit: true, known_may_join: true, session: 10_000, interval: 5_000 };
pub(crate) const OLDER: Rules = Rules { plan_interval: 0, older_epochs_commit: false, known_may_join: false, ..NEWEST };

/// A group with this number of members on `t` (5 partitions), in which every partition is owned.
fn stable(rules: Rules, members: usize) -> World {
    let mut world = World::new(7, rules);
    world.group.topic("t", 5);
    for number in 0..members {
        world.start(config(number), &["t"], None);
    }
    settle(&mut world, 15_000);
    world
}

fn settle(world: &mut World, millis: u64) -> u64 {
    let wanted = world.all(&["t"]);
    world.run_until(millis, "every partition has an owner", |world| world.settled(&wanted))
}

fn lone(config: ConsumerConfig) -> World {
    let mut world = World::new(7, NEWEST);
    world.group.topic("t", 5);
    world.start(config, &["t"], None);
    settle(&mut world, 5_000);
    world
}

fn answer(member_epoch: i32, partitions: Option<&[i32]>) -> ConsumerGroupHeartbeatResponse {
    let rows = |numbers: &[i32]| match numbers {
        [] => vec![],
        _ => vec![HeartbeatTopicPartitions { topic_id: [1; 16], partitions: numbers.to_vec() }],
    };
    ConsumerGroupHeartbeatResponse {
        member_id: Some("m0".to_owned()),
        member_epoch,
        heartbeat_interval_ms: 5_000,
        assignment: partitions.map(|numbers| HeartbeatAssignment { topic_partitions: rows(numbers) }),
        ..Default::default()
    }
}

/// A member whose heartbeats get the given answers, and then answers without changes.
fn scripted(answers: impl IntoIterator<Item = ConsumerGroupHeartbeatResponse>) -> World {
    let mut world = World::new(7, NEWEST);
    world.group.topic("t", 5);
    world.script.extend(answers);
    let last = world.script.back().unwrap().member_epoch;
    world.script.extend((0..200).map(|_| answer(last, None)));
    world.start(config(0), &["t"], None);
    world
}

fn held(world: &World, host: usize) -> Vec<i32> {
    world.hosts[host].holds.iter().map(|&(_, number)| number).collect()
}

#[test]
fn kip848_01_an_assignment_that_comes_in_pieces_is_waited_for_often() {
    let mut world = stable(NEWEST, 3);
    world.run(5_000);
    let newcomer = world.start(config(3), &["t"], None);
    world.without_owner.clear();
    // 2,500 ms are half of the broker's interval.
    world.run_until(2_500, "the newcomer has a partition", |world| !held(world, newcomer).is_empty());
    settle(&mut world, 500);
    assert!(world.without_owner.iter().all(|&millis| millis <= 300), "{:?}", world.without_owner);
}

#[test]
fn kip848_02_an_answer_may_revoke_and_assign() {
    let mut world = scripted([answer(1, Some(&[0, 1])), answer(1, None), answer(2, Some(&[1, 2]))]);
    world.run(1_000);
    assert_eq!(held(&world, 0), [1, 2]);
    let notices = &world.hosts[0].notices;
    assert_eq!(notices.len(), 2);
    assert_eq!(
        (&notices[1].revoked, &notices[1].added),
        (&vec![("t".to_owned(), vec![0])], &vec![("t".to_owned(), vec![2])])
    );
    let mut acknowledged = world.hosts[0].sent.iter().filter_map(|sent| sent.topic_partitions.as_ref());
    assert_eq!(acknowledged.next_back().unwrap()[0].partitions, [1, 2]);
}

#[test]
fn kip848_03_the_lost_answer_to_an_acknowledgement_is_asked_for_with_the_epoch_before() {
    for rules in [NEWEST, OLDER] {
        let mut world = stable(rules, 1);
        world.start(config(1), &["t"], None);
        let moved = |world: &World| held(world, 0).len() < 5;
        world.run_until(5_000, "the first member gives something up", moved);
        world.lost_answers = 1;
        settle(&mut world, 15_000);
        // The first member was not fenced: it lost no partition.
        assert!(world.hosts[0].notices.iter().all(|notice| !notice.lost));
    }
}

#[test]
fn kip848_04_a_repetition_without_partitions_would_be_fenced_and_is_never_sent() {
    for rules in [NEWEST, OLDER] {
        let mut world = stable(rules, 1);
        world.start(config(1), &["t"], None);
        let end = world.now + 5_000;
        while held(&world, 0).len() == 5 && world.now < end {
            world.run(1);
        }
        let before = world.hosts[0].member.identity().1;
        world.lost_answers = 1;
        while world.group.members["m0"].epoch == before && world.now < end {
            world.run(1);
        }
        // The answer to the acknowledgement is lost: the coordinator is an epoch ahead of the member.
        assert!(world.group.members["m0"].epoch > before, "the acknowledgement does not arrive");
        assert_eq!(world.hosts[0].member.identity().1, before);
        let repeats = ConsumerGroupHeartbeatRequest {
            group_id: GROUP.to_owned(),
            member_id: "m0".to_owned(),
            member_epoch: before,
            rebalance_timeout_ms: -1,
            ..Default::default()
        };
        let now = world.now;
        assert_eq!(world.group.heartbeat(now, &repeats).error_code, ErrorCode::FENCED_MEMBER_EPOCH);
        let sent = world.hosts[0].sent.len();
        settle(&mut world, 15_000);
        let mut repeated = world.hosts[0].sent[sent..].iter().filter(|request| request.member_epoch == before);
        assert!(repeated.all(|request| request.topic_partitions.is_some()));
        assert!(world.hosts[0].notices.iter().all(|notice| !notice.lost), "it was fenced");
    }
}

#[test]
fn kip848_05_after_a_lost_answer_the_next_request_is_full() {
    let mut world = World::new(7, NEWEST);
    world.group.topic("t", 5);
    world.lost_answers = 1;
    world.start(config(0), &["t"], None);
    settle(&mut world, 5_000);
    world.lost_answers = 1;
    world.run(3_000);
    let sent = &world.hosts[0].sent;
    let full = |request: &ConsumerGroupHeartbeatRequest| {
        request.subscribed_topic_names.is_some()
            && request.rebalance_timeout_ms > 0
            && request.topic_partitions.is_some()
    };
    assert!(full(&sent[0]) && full(&sent[1]), "the join and its repetition");
    let steady = sent.iter().position(|request| request.topic_partitions.is_none()).unwrap();
    assert!(sent[steady..].iter().any(full));
    assert!(!full(sent.last().unwrap()), "and then only what changes");
}

#[test]
fn kip848_06_a_fenced_member_loses_once_and_joins_again_with_its_id() {
    for code in [ErrorCode::FENCED_MEMBER_EPOCH, ErrorCode::UNKNOWN_MEMBER_ID] {
        let mut world = lone(config(0));
        world.group.evict("m0");
        world.whims.push_back(code);
        world.run(1_000);
        settle(&mut world, 5_000);
        let lost: Vec<_> = world.hosts[0].notices.iter().filter(|notice| notice.lost).collect();
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].kind, lost[0].generation), (NoticeKind::Leave, -1));
        let joins = world.hosts[0].sent.iter().filter(|request| request.member_epoch == 0);
        assert_eq!(joins.map(|request| request.member_id.as_str()).collect::<Vec<_>>(), ["m0", "m0"]);
    }
}

#[test]
fn kip848_06_a_broker_that_fences_for_ever_is_asked_less_and_less() {
    let mut world = lone(config(0));
    world.whims.extend((0..1_000).map(|_| ErrorCode::FENCED_MEMBER_EPOCH));
    let before = world.hosts[0].heartbeats;
    world.run(20_000);
    assert!(world.hosts[0].heartbeats - before < 40, "{}", world.hosts[0].heartbeats);
}

#[test]
fn kip848_08_what_comes_back_before_it_is_given_up_is_acknowledged_without_a_callback() {
    let mut world = scripted([answer(1, Some(&[0, 1]))]);
    world.run(1_500);
    let notices = world.hosts[0].notices.len();
    world.hosts[0].polls = false;
    world.script.clear();
    world.script.extend([answer(1, Some(&[0])), answer(2, Some(&[0, 1]))]);
    world.script.extend((0..200).map(|_| answer(2, None)));
    world.run(2_000);
    world.hosts[0].polls = true;
    world.run(500);
    assert_eq!((held(&world, 0), world.hosts[0].notices.len()), (vec![0, 1], notices));
    assert_eq!(world.hosts[0].member.stage(), Stage::Stable);
}

#[test]
fn kip848_09_a_callback_slower_than_the_rebalance_timeout_costs_the_membership() {
    let mut world = lone(ConsumerConfig { max_poll_interval_ms: 20_000, ..config(0) });
    // The coordinator waits for a revocation for as long as the application may go without a poll.
    world.hosts[0].callback_ms = 60_000;
    world.start(config(1), &["t"], None);
    world.run(90_000);
    world.hosts[0].callback_ms = 10;
    settle(&mut world, 60_000);
}

/// ```text
/// m0   0 s  polls for the last time      19.5 s  polls, and begins the revocation     20-25 s  gives up all as lost
/// m1   0 s  joins: within 5 s m0 must give partitions up for m1          20-25 s  the coordinator removes m0, m1 has all
/// ```
/// The session of m0 goes on, and `max.poll.interval.ms` begins anew with its poll. The simulation fails if both members read a
/// partition at the same time.
#[test]
fn kip848_09_a_member_that_revokes_too_late_stops_before_another_begins() {
    let mut world = lone(ConsumerConfig { max_poll_interval_ms: 20_000, ..config(0) });
    world.hosts[0].polls = false;
    world.hosts[0].callback_ms = 600_000;
    world.start(config(1), &["t"], None);
    world.run(19_500);
    assert_eq!(held(&world, 0).len(), 5);
    world.hosts[0].polls = true;
    world.run_until(6_000, "the newcomer has all", |world| held(world, 1).len() == 5);
    assert!(world.hosts[0].member.is_lost() && world.hosts[0].overruns == 0, "{}", world.describe());
}

#[test]
fn kip848_11_an_application_that_does_not_poll_leaves_and_comes_back_with_the_next_poll() {
    for instance in [None, Some("i".to_owned())] {
        let mut world = lone(ConsumerConfig { group_instance_id: instance.clone(), ..config(0) });
        world.hosts[0].polls = false;
        world.run(25_000);
        assert_eq!(world.hosts[0].overruns, 1);
        let left = if instance.is_some() { LEAVE_STATIC_EPOCH } else { LEAVE_EPOCH };
        assert_eq!(world.hosts[0].sent.last().unwrap().member_epoch, left);
        assert!(world.hosts[0].member.is_lost());
        world.hosts[0].polls = true;
        settle(&mut world, 5_000);
        assert!(world.hosts[0].notices.iter().any(|notice| notice.lost));
    }
}

#[test]
fn kip848_12_the_coordinator_moves_with_a_heartbeat_in_flight() {
    let mut world = stable(NEWEST, 2);
    world.delay = 100;
    for _ in 0..5 {
        world.coordinator = 3 - world.coordinator;
        world.cut(|_, _| true);
        world.run(700);
    }
    settle(&mut world, 10_000);
    assert!(world.hosts.iter().all(|host| host.notices.iter().all(|notice| !notice.lost)));
}

#[test]
fn kip848_13_a_coordinator_that_loads_is_asked_again_with_pauses() {
    let mut world = stable(NEWEST, 1);
    let before = world.hosts[0].heartbeats;
    world.loading_until = world.now + 5_000;
    world.run(5_500);
    assert!((3..20).contains(&(world.hosts[0].heartbeats - before)));
    settle(&mut world, 2_000);
}

#[test]
fn kip848_14_a_broker_without_the_protocol_is_fatal_and_says_what_to_do() {
    let mut world = lone(config(0));
    world.whims.push_back(ErrorCode::UNSUPPORTED_VERSION);
    world.run(2_000);
    let (code, message) = world.hosts[0].fatal.clone().unwrap();
    assert_eq!(code, ErrorCode::UNSUPPORTED_VERSION);
    assert!(message.contains("group.version") && message.contains("group.protocol=classic"), "{message}");
    assert!(world.hosts[0].holds.is_empty(), "the application gives up what it had");
}

#[test]
fn kip848_14_version_0_has_no_expressions() {
    let mut world = World::new(7, OLDER);
    world.heartbeat_versions = (0, 0);
    world.group.topic("t", 5);
    world.start(config(0), &[], Some("t.*"));
    world.run(2_000);
    assert_eq!(world.hosts[0].fatal.as_ref().unwrap().0, ErrorCode::UNSUPPORTED_VERSION);
}

#[test]
fn kip848_15_a_topic_that_metadata_do_not_know_yet_is_waited_for() {
    let mut world = World::new(7, NEWEST);
    world.group.topic("t", 5);
    world.stale_metadata_until = world.now + 3_000;
    world.start(config(0), &["t"], None);
    world.run(2_900);
    assert_eq!(held(&world, 0), []);
    settle(&mut world, 3_000);
    assert_eq!(world.hosts[0].errors, [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]);
}

#[test]
fn kip848_15_a_topic_made_anew_is_given_up_and_taken() {
    let mut world = lone(config(0));
    world.group.delete("t");
    world.run(2_000);
    assert_eq!(held(&world, 0), []);
    world.group.topic("t", 3);
    settle(&mut world, 5_000);
    assert_eq!(held(&world, 0), [0, 1, 2]);
}

#[test]
fn kip848_16_the_subscription_changes_to_nothing_to_an_expression_and_back() {
    let mut world = lone(config(0));
    world.group.topic("other", 2);
    world.subscribe(0, &[], None);
    world.run(3_000);
    assert_eq!(held(&world, 0), []);
    world.subscribe(0, &[], Some("t.*"));
    settle(&mut world, 5_000);
    world.subscribe(0, &["other"], None);
    let wanted = world.all(&["other"]);
    world.run_until(5_000, "only the other topic is held", |world| world.settled(&wanted));
    let removed = world.hosts[0].sent.iter().any(|sent| sent.subscribed_topic_regex.as_deref() == Some(""));
    assert!(removed, "an empty expression removes the one before");
}

#[test]
fn kip848_17_an_expression_that_the_broker_refuses_is_fatal() {
    let mut world = lone(config(0));
    world.subscribe(0, &[], Some("t("));
    world.whims.push_back(ErrorCode::INVALID_REGULAR_EXPRESSION);
    world.run(2_000);
    let (code, message) = world.hosts[0].fatal.clone().unwrap();
    assert_eq!(code, ErrorCode::INVALID_REGULAR_EXPRESSION);
    assert!(message.contains("RE2/J"), "{message}");
}

#[test]
fn kip848_17_a_new_topic_under_an_expression_is_taken() {
    let mut world = World::new(7, NEWEST);
    world.group.topic("t", 5);
    world.start(config(0), &[], Some("t.*"));
    settle(&mut world, 5_000);
    world.group.topic("tt", 2);
    let wanted = world.all(&["t", "tt"]);
    world.run_until(5_000, "the new topic is held", |world| world.settled(&wanted));
}

#[test]
fn kip848_18_static_members() {
    let named = |number| ConsumerConfig { group_instance_id: Some("i".to_owned()), ..config(number) };
    let mut world = lone(named(0));
    let second = world.start(named(1), &["t"], None);
    world.run(2_000);
    let (code, message) = world.hosts[second].fatal.clone().unwrap();
    assert_eq!(code, ErrorCode::UNRELEASED_INSTANCE_ID);
    assert!(message.contains("'i'"), "{message}");
    // The static member leaves for a while, and another process returns in its place: the group makes no new plan.
    let epoch = world.group.group_epoch;
    world.close(0);
    world.run(1_000);
    assert!(world.hosts[0].closed);
    assert_eq!(world.hosts[0].sent.last().unwrap().member_epoch, LEAVE_STATIC_EPOCH);
    world.start(named(2), &["t"], None);
    settle(&mut world, 2_000);
    assert_eq!(world.group.group_epoch, epoch);
}

#[test]
fn kip848_19_a_static_member_whose_place_another_process_took_ends() {
    let mut world = lone(ConsumerConfig { group_instance_id: Some("i".to_owned()), ..config(0) });
    world.whims.push_back(ErrorCode::FENCED_INSTANCE_ID);
    world.run_until(2_000, "it ends", |world| world.hosts[0].fatal.is_some());
    let (code, message) = world.hosts[0].fatal.clone().unwrap();
    assert_eq!(code, ErrorCode::FENCED_INSTANCE_ID);
    assert!(message.contains("'i'"), "{message}");
    let heartbeats = world.hosts[0].heartbeats;
    world.run(30_000);
    assert_eq!(world.hosts[0].heartbeats, heartbeats, "it must not take the place back");
    // The application gives its partitions up, and nothing is committed: the other process may own them.
    world.close(0);
    world.run_until(6_000, "it is closed", |world| world.hosts[0].closed);
    assert!(world.hosts[0].holds.is_empty());
}

#[test]
fn kip848_20_a_commit_between_two_epochs() {
    for rules in [NEWEST, OLDER] {
        let mut world = stable(rules, 1);
        for number in 1..4 {
            world.start(config(number), &["t"], None);
            settle(&mut world, 15_000);
        }
        let codes: Vec<ErrorCode> = world.hosts.iter().flat_map(|host| host.commit_codes.iter().copied()).collect();
        assert!(codes.len() >= 4 && codes.iter().all(|&code| code.is_none()), "{codes:?}");
    }
}

/// Refusals are counted from the beginning of a membership: those of an earlier one do not end the repetitions of a commit.
#[test]
fn kip848_20_a_new_membership_repeats_a_commit_again() {
    let mut world = lone(config(0));
    let gives_up = |world: &mut World, refused| {
        world.refused_commits = refused;
        let before = world.hosts[0].commit_codes.len();
        let offset = CommitOffset { topic: "t".to_owned(), partition: 0, offset: 1, leader_epoch: -1, metadata: None };
        world.handle(0, Event::Commit { id: 99, offsets: vec![offset], timeout_ms: 30_000 });
        world.run(30_000);
        assert_eq!(world.refused_commits, 0);
        world.hosts[0].commit_codes[before..].contains(&ErrorCode::ILLEGAL_GENERATION)
    };
    assert!(!gives_up(&mut world, 8));
    assert!(gives_up(&mut world, 9));
    world.refused_commits = u32::MAX;
    world.run(10_000);
    world.group.evict("m0");
    world.whims.push_back(ErrorCode::FENCED_MEMBER_EPOCH);
    world.run_until(10_000, "the member is out of its epoch", |world| world.hosts[0].member.identity().1 < 0);
    world.refused_commits = 0;
    world.run_until(10_000, "the member is in an epoch", |world| world.hosts[0].member.identity().1 >= 0);
    assert!(!gives_up(&mut world, 1));
}

#[test]
fn kip848_21_a_member_without_an_epoch_commits_nothing() {
    let mut world = lone(config(0));
    world.hosts[0].polls = false;
    world.run(25_000);
    assert!(world.hosts[0].member.is_lost());
    let offset = CommitOffset { topic: "t".to_owned(), partition: 0, offset: 1, leader_epoch: -1, metadata: None };
    world.handle(0, Event::Commit { id: 99, offsets: vec![offset], timeout_ms: 1_000 });
    assert_eq!(world.hosts[0].commit_codes.last(), Some(&ErrorCode::ILLEGAL_GENERATION));
}

#[test]
fn kip848_22_a_transaction_names_the_last_epoch() {
    let mut world = lone(config(0));
    let epoch = world.hosts[0].member.identity().1;
    assert_eq!(world.hosts[0].member.fencing(), Some(("m0", epoch)));
    world.hosts[0].polls = false;
    world.run(25_000);
    assert_eq!(world.hosts[0].member.identity().1, -1);
    assert_eq!(world.hosts[0].member.fencing(), Some(("m0", epoch)), "a broker refuses it");
}

#[test]
fn kip848_23_closing_in_each_state_twice_and_without_a_coordinator() {
    for millis in [0, 3, 8, 15, 40, 200, 2_000] {
        for reachable in [true, false] {
            let mut world = World::new(millis, NEWEST);
            world.group.topic("t", 5);
            world.start(config(0), &["t"], None);
            world.run(millis);
            if !reachable {
                world.unreachable.insert(0);
                world.cut(|_, _| true);
            }
            world.close(0);
            world.handle(0, Event::Close { timeout_ms: 5_000 });
            world.run_until(6_000, "it is closed", |world| world.hosts[0].closed);
            assert!(world.hosts[0].holds.is_empty());
            if reachable {
                assert!(!world.group.members.contains_key("m0"), "after {millis} ms");
            }
        }
    }
}

#[test]
fn kip848_24_an_interval_of_0_or_none_makes_no_hot_loop() {
    for interval in [0, -5, 1] {
        let mut world = World::new(7, Rules { interval, ..NEWEST });
        world.group.topic("t", 5);
        world.start(config(0), &["t"], None);
        world.run(10_000);
        // The window is checked with every heartbeat.
        assert!(world.hosts[0].heartbeats <= 101, "{}", world.hosts[0].heartbeats);
        settle(&mut world, 1_000);
    }
}

#[test]
fn an_epoch_from_the_past_closes_the_connection() {
    let mut world = scripted([answer(5, Some(&[0])), answer(5, None), answer(3, None), answer(6, None)]);
    world.run(5_000);
    assert_eq!(world.hosts[0].member.identity(), ("m0", 6));
    assert_eq!(held(&world, 0), [0]);
}

#[test]
fn neighbours_of_a_process_hear_of_a_rebalance_at_once() {
    let mut world = stable(OLDER, 3);
    for host in 0..3 {
        world.hosts[host].tells_neighbours = true;
        world.handle(host, Event::Neighbours { place: host as u32, count: 4 });
    }
    world.run(5_000);
    let newcomer = world.start(config(3), &["t"], None);
    world.hosts[newcomer].tells_neighbours = true;
    world.run_until(600, "the newcomer has a partition", |world| !held(world, newcomer).is_empty());
}

/// With any bytes in the answers, the member neither panics nor sends heartbeats without a pause. Afterwards it is in the group
/// again, or has failed.
#[test]
fn spoiled_answers_cost_a_pause() {
    for seed in 0..200 {
        let mut world = World::new(seed, NEWEST);
        world.group.topic("t", 5);
        world.spoiled_one_in = 1 + seed % 5;
        world.start(config(0), &["t"], None);
        world.run(10_000);
        assert!(world.hosts[0].heartbeats <= 110, "seed {seed}: {}", world.hosts[0].heartbeats);
        world.spoiled_one_in = 0;
        world.run(30_000);
        // The member believes a changed number in an answer, so it may hold other partitions than the group's plan.
        let host = &world.hosts[0];
        assert!(host.fatal.is_some() || host.member.identity().1 > 0, "seed {seed}\n{}", world.describe());
        world.close(0);
        world.run_until(6_000, "it is closed", |world| world.hosts[0].closed);
    }
}

#[test]
fn what_the_broker_refuses_for_good_is_fatal_and_names_a_remedy() {
    let cases = [
        (ErrorCode::UNSUPPORTED_ASSIGNOR, "group.consumer.assignors does not have 'least'"),
        (ErrorCode::GROUP_ID_NOT_FOUND, "the group is one of another type"),
        (ErrorCode::GROUP_MAX_SIZE_REACHED, "group.consumer.max.size"),
        (ErrorCode::GROUP_AUTHORIZATION_FAILED, "READ on the group"),
    ];
    for (code, remedy) in cases {
        let mut world = World::new(7, NEWEST);
        world.group.topic("t", 5);
        world.whims.push_back(code);
        world.start(ConsumerConfig { remote_assignor: Some("least".to_owned()), ..config(0) }, &["t"], None);
        world.run(5_000);
        let (found, message) = world.hosts[0].fatal.clone().unwrap();
        assert_eq!(found, code);
        assert!(message.contains(remedy) && message.contains("group 'g'"), "{message}");
        assert_eq!(world.hosts[0].heartbeats, 1, "{message}");
    }
}

#[test]
fn a_topic_that_may_not_be_described_is_reported_once_and_the_member_goes_on() {
    let mut world = World::new(7, NEWEST);
    world.group.topic("t", 5);
    world.whims.extend([ErrorCode::TOPIC_AUTHORIZATION_FAILED; 3]);
    world.start(config(0), &["t"], None);
    settle(&mut world, 10_000);
    assert_eq!(world.hosts[0].errors, [ErrorCode::TOPIC_AUTHORIZATION_FAILED]);
}
