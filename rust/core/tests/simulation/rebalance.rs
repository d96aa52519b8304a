//! Scenarios 23 to 30: which member has which partitions while the group changes.

use crate::host::flat;
use crate::script::{Asked, Script, assignment, owned};
use crate::world::World;
use crate::{config, group, world};
use kafka_assignors_core::member::{Action, Event, NoticeKind, Partitions, Stage};
use kafka_assignors_core::protocol::join_group::JoinGroupRequest;
use kafka_assignors_core::protocol::offsets::{OffsetFetchRequest, OffsetFetchResponse};
use kafka_assignors_core::protocol::subscription::Subscription;
use kafka_assignors_core::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

#[test]
fn scenario_23_a_cooperative_group_rebalances_twice_and_nobody_shares() {
    let mut world = group(23, 3, &["cooperative-sticky"], &[("t", 12)]);
    let kept: Vec<_> = world.hosts.iter().map(|host| (host.held.clone(), host.counts.revoked)).collect();
    let generation = world.hosts[0].member.identity().1;
    world.start(config(9, &["cooperative-sticky"]), &["t"]);
    world.run_until_so(30_000, "settled", World::settled);
    for (host, (kept, revoked)) in world.hosts.iter().zip(kept) {
        // Each member goes from four partitions to three, which it keeps without a break.
        assert_eq!(host.held.len(), 3);
        assert!(host.held.iter().all(|(key, held)| kept.get(key).is_some_and(|before| before.ticket == held.ticket)));
        assert_eq!(host.counts.revoked, revoked + 1);
    }
    assert_eq!(world.hosts[3].member.identity().1, generation + 2, "two rebalances");
    world.check();
}

#[test]
fn scenario_24_members_come_and_go_quickly() {
    for assignor in ["sticky", "cooperative-sticky"] {
        let mut world = group(24, 2, &[assignor], &[("t", 12)]);
        for number in 0..6 {
            world.start(config(10 + number, &[assignor]), &["t"]);
            world.run(300);
            world.close(2 + number as usize, 2_000);
            world.run(200);
        }
        world.run_until_so(60_000, "settled", World::settled);
        assert_eq!(world.cluster.broker.groups()[0].members.len(), 2);
        world.check();
    }
}

#[test]
fn scenario_24_every_member_is_restarted_in_turn() {
    for assignor in ["sticky", "cooperative-sticky"] {
        let mut world = group(25, 5, &[assignor], &[("t", 13)]);
        for host in 0..5 {
            world.close(host, 5_000);
            world.run_until_so(6_000, "closed", |world| world.hosts[host].closed);
            world.restart(host);
            world.run_until_so(60_000, "settled", World::settled);
        }
        world.check();
    }
}

#[test]
fn scenario_24_a_hundred_members_join() {
    join_at_once(100);
}

#[test]
#[ignore = "part of `make check`: twenty seconds of a core"]
fn scenario_24_a_thousand_members_join() {
    join_at_once(1_000);
}

fn join_at_once(members: u16) {
    let mut world = world(26);
    world.topic("t", i32::from(2 * members));
    world.poll_ms = 2_000;
    world.commits = 0;
    for number in 0..members {
        let mut settings = config(u64::from(number), &["cooperative-sticky"]);
        settings.max_poll_interval_ms = 120_000;
        world.start(settings, &["t"]);
    }
    world.run_until_so(120_000, "settled", World::settled);
    assert!(world.hosts.iter().all(|host| host.held.len() == 2));
    world.check();
}

#[test]
fn scenario_25_a_topic_that_is_unsubscribed_is_given_up_before_joining() {
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.topics.insert("u".to_owned(), 2);
    script.subscribe(&["t", "u"]);
    script.stable(&[("t", &[0]), ("u", &[1])]);
    script.subscribe(&["t"]);
    let notice = script.obey();
    assert_eq!((notice.kind, notice.lost), (NoticeKind::Prepare, false));
    assert_eq!(notice.revoked, owned(&[("u", &[1])]));
    let asked: Asked<JoinGroupRequest> = script.asked();
    let metadata = Subscription::read(&asked.body.protocols[0].metadata).unwrap();
    assert_eq!(metadata.topics.iter().collect::<Vec<_>>(), [b"t"]);
    assert_eq!(metadata.owned.iter().count(), 1, "it claims what it kept only");
}

#[test]
fn scenario_25_a_subscription_that_changes_during_a_rebalance_is_for_the_next() {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    script.topics.insert("u".to_owned(), 2);
    script.subscribe(&["u"]);
    let joined = script.follows(1);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[0])], 1));
    let notice = script.obey();
    assert!(notice.owned.is_empty(), "nothing of a topic that is not wanted any more: {notice:?}");
    script.discover();
    script.pass(300);
    let notice = script.obey();
    assert_eq!((notice.kind, notice.topics), (NoticeKind::Prepare, vec!["u".to_owned()]));
    let again: Asked<JoinGroupRequest> = script.asked();
    let metadata = Subscription::read(&again.body.protocols[0].metadata).unwrap();
    assert_eq!(metadata.topics.iter().collect::<Vec<_>>(), [b"u"]);
}

#[test]
fn scenario_25_the_same_subscription_again_costs_eager_partitions_and_no_cooperative_ones() {
    for (assignor, gives_up) in [("sticky", true), ("cooperative-sticky", false)] {
        let mut script = Script::new(config(1, &[assignor]));
        script.stable(&[("t", &[0])]);
        script.subscribe(&["t"]);
        let revoked: Vec<Partitions> = script.notices().into_iter().map(|notice| notice.revoked).collect();
        let all = owned(&[("t", &[0])]);
        assert_eq!(revoked, if gives_up { vec![all] } else { Vec::new() }, "{assignor}");
        // The matched topics are those that the member subscribes to already: no notice follows.
        let before = script.notices().len();
        script.handle(Event::Matched { topics: vec!["t".to_owned()] });
        assert_eq!(script.notices().len(), before, "{assignor}");
    }
}

#[test]
fn scenario_25_subscribing_again_before_the_old_partitions_are_given_up() {
    for assignor in ["sticky", "cooperative-sticky"] {
        let mut script = Script::new(config(1, &[assignor]));
        script.stable(&[("t", &[0])]);
        script.handle(Event::Unsubscribe);
        script.subscribe(&["t"]);
        let notice = script.obey();
        assert_eq!((notice.kind, notice.revoked), (NoticeKind::Leave, owned(&[("t", &[0])])), "{assignor}");
        assert!(script.member.is_subscribed());
        script.discover();
        let notice = script.obey();
        assert_eq!((notice.kind, notice.topics), (NoticeKind::Prepare, vec!["t".to_owned()]), "{assignor}");
        assert!(script.asks(ApiKey::JoinGroup), "{assignor}");
    }
}

#[test]
fn scenario_25_what_expressions_match_does_not_keep_a_member_that_unsubscribes() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.handle(Event::Subscribe { topics: vec!["t".to_owned()], all_topics: true });
    script.stable(&[("t", &[0])]);
    script.handle(Event::Unsubscribe);
    // The answer to Metadata was on its way when the application unsubscribed.
    for topics in [vec!["t".to_owned()], vec!["t".to_owned(), "u".to_owned()]] {
        script.handle(Event::Matched { topics });
    }
    assert_eq!(script.obey().kind, NoticeKind::Leave);
    assert!(!script.member.is_subscribed());
}

#[test]
fn scenario_25_a_topic_is_deleted() {
    for assignor in ["sticky", "cooperative-sticky"] {
        let mut world = group(27, 3, &[assignor], &[("t", 6), ("u", 5)]);
        world.cluster.broker.delete_topic("u").unwrap();
        world.run_until_so(60_000, "nobody has it", |world| {
            world.settled() && world.hosts.iter().all(|host| host.held.keys().all(|(topic, _)| topic == "t"))
        });
        world.check();
    }
}

#[test]
fn scenario_26_claims_of_a_member_that_missed_a_rebalance_count_for_nothing() {
    let mut world = group(28, 3, &["cooperative-sticky"], &[("t", 9)]);
    // The member is frozen for longer than its session, the others get its partitions, and it comes back with its old claims.
    world.freeze(0);
    world.run_until_so(60_000, "the others have everything", |world| {
        world.hosts[1..].iter().map(|host| host.held.len()).sum::<usize>() == 9
    });
    world.thaw(0);
    world.run_until_so(60_000, "settled", World::settled);
    assert!(world.hosts.iter().all(|host| host.held.len() == 3));
    world.check();
}

#[test]
fn scenario_26_what_a_member_has_that_missed_a_plan_is_lost() {
    // generation:  1     2                 3     4
    // this member  joins -                 joins joins, with nothing
    // its claims   -     those of before 1 0, 1  -
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let asked: Asked<JoinGroupRequest> = script.asked();
    // The coordinator reports no error: for the plan of generation 2 it gave the leader this member's JoinGroup for generation 1.
    let joined = script.follows(3);
    script.answer(&asked, &joined);
    script.commit(1, &[("t", 0, 5)]);
    let notice = script.obey();
    assert!(notice.lost);
    assert_eq!(notice.revoked, owned(&[("t", &[0, 1])]));
    assert_ne!(script.ended(1), Some(ErrorCode::NONE), "somebody else may have committed more");
    script.discover();
    let asked: Asked<JoinGroupRequest> = script.asked();
    assert_eq!(asked.body.member_id, "me");
    let joined = script.follows(4);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[1])], 4));
    let notice = script.obey();
    assert!(!notice.lost);
    assert_eq!(notice.added, owned(&[("t", &[1])]), "read on from what is committed");
    assert!(!script.asks(ApiKey::OffsetCommit));
}

#[test]
fn scenario_26_a_plan_that_was_made_with_the_claims_costs_nothing() {
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let asked: Asked<JoinGroupRequest> = script.asked();
    let joined = script.follows(2);
    script.answer(&asked, &joined);
    // The group goes on before the plan arrives.
    let asked: Asked<SyncGroupRequest> = script.asked();
    let error_code = ErrorCode::REBALANCE_IN_PROGRESS;
    script.answer(&asked, &SyncGroupResponse { error_code, ..Default::default() });
    script.discover();
    let asked: Asked<JoinGroupRequest> = script.asked();
    let joined = script.follows(3);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[0, 1])], 3));
    let notice = script.obey();
    assert!(!notice.lost && notice.revoked.is_empty() && notice.added.is_empty());
}

#[test]
fn scenario_27_an_offset_fetch_goes_on_across_a_rebalance() {
    let mut script = Script::new(config(1, &["cooperative-sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.handle(Event::FetchOffsets { id: 4, partitions: owned(&[("t", &[0, 1])]), timeout_ms: 60_000 });
    let first: Asked<OffsetFetchRequest> = script.asked();
    assert!(first.body.require_stable);
    assert_eq!(first.header.version, 7);
    let loading = OffsetFetchResponse { error_code: ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, ..Default::default() };
    script.answer(&first, &loading);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.obey();
    let joining: Asked<JoinGroupRequest> = script.asked();
    script.pass(300);
    // JoinGroup is parked, and the fetch goes on beside it.
    let second: Asked<OffsetFetchRequest> = script.asked();
    assert_ne!(second.conn, joining.conn);
    script.answer(&second, &OffsetFetchResponse::default());
    let fetched = script.actions.iter().filter(|action| matches!(action, Action::OffsetsFetched { id: 4, .. })).count();
    assert_eq!(fetched, 1);
    // A fetch whose connection breaks is sent again.
    script.handle(Event::FetchOffsets { id: 5, partitions: owned(&[("t", &[1])]), timeout_ms: 60_000 });
    script.cut(kafka_assignors_core::member::Role::Offsets);
    script.pass(500);
    let third: Asked<OffsetFetchRequest> = script.asked();
    script.answer(&third, &OffsetFetchResponse::default());
    assert!(script.actions.iter().any(|action| matches!(action, Action::OffsetsFetched { id: 5, .. })));
}

#[test]
fn scenario_28_a_rolling_upgrade_from_eager_to_cooperative_and_back() {
    let steps: [&[&str]; 5] = [
        &["sticky"],
        &["cooperative-sticky", "sticky"],
        &["cooperative-sticky"],
        &["cooperative-sticky", "sticky"],
        &["sticky"],
    ];
    let mut world = group(29, 3, steps[0], &[("t", 9)]);
    for step in &steps[1..] {
        for host in 0..3 {
            world.close(host, 5_000);
            world.run_until_so(6_000, "closed", |world| world.hosts[host].closed);
            let seed = world.hosts[host].config.seed;
            world.hosts[host].config = config(seed, step);
            world.restart(host);
            world.run_until_so(60_000, "settled", World::settled);
            world.check();
        }
        let expected = if step.len() == 2 { "cooperative-sticky" } else { step[0] };
        assert_eq!(world.hosts[0].member.protocol(), expected);
    }
    assert!(world.hosts.iter().all(|host| host.fatal.is_none()));
}

#[test]
fn scenario_28_a_member_of_both_kinds_gives_everything_up() {
    // The member's list contains an eager assignor, so the member must not keep any partition, even where the group chose the
    // cooperative one.
    let mut script = Script::new(config(1, &["cooperative-sticky", "sticky"]));
    script.stable(&[("t", &[0, 1])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    let notice = script.obey();
    assert_eq!(notice.revoked, owned(&[("t", &[0, 1])]));
    let asked: Asked<JoinGroupRequest> = script.asked();
    assert!(asked.body.protocols.iter().all(|one| Subscription::read(&one.metadata).unwrap().owned.is_empty()));
}

#[test]
fn scenario_29_a_callback_that_raises_is_the_hosts_and_the_member_goes_on() {
    // The host returns the notice with Done even if a callback raises, so the next generation begins with a consistent state.
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    let notice = script.notice().unwrap();
    assert!(script.member.begin(notice.ticket));
    script.heartbeat(ErrorCode::UNKNOWN_MEMBER_ID);
    script.done(&notice);
    // The partitions that were given up in the callback are not given up a second time as lost.
    assert_eq!(script.notices().len(), 1);
    let asked: Asked<JoinGroupRequest> = script.asked();
    assert_eq!(asked.body.member_id, "");
}

#[test]
fn scenario_30_partitions_are_added_to_a_topic_that_only_others_read() {
    let mut world = world(30);
    world.topic("t", 4);
    world.topic("u", 2);
    let leader = world.start(config(0, &["cooperative-sticky"]), &["t"]);
    world.run_until_so(10_000, "it leads", World::settled);
    world.start(config(1, &["cooperative-sticky"]), &["u"]);
    world.run_until_so(30_000, "settled", World::settled);
    assert!(world.hosts[leader].member.leads());
    world.cluster.broker.grow_topic("u", 5).unwrap();
    world.run_until_so(40_000, "the new ones are read", World::settled);
    assert_eq!(world.hosts[1].held.len(), 5);
    world.check();
}

#[test]
fn scenario_30_topics_come_and_go_under_an_expression() {
    let mut world = world(31);
    world.topic("logs-a", 3);
    world.topic("other", 3);
    for number in 0..2 {
        world.start_prefix(config(number, &["cooperative-sticky"]), "logs-");
    }
    world.run_until_so(30_000, "settled", World::settled);
    world.topic("logs-b", 3);
    world.run_until_so(60_000, "the new one is read", |world| {
        world.settled() && world.hosts.iter().map(|host| host.held.len()).sum::<usize>() == 6
    });
    world.cluster.broker.delete_topic("logs-a").unwrap();
    world.run_until_so(60_000, "the old one is not", |world| {
        world.settled() && world.hosts.iter().map(|host| host.held.len()).sum::<usize>() == 3
    });
    world.check();
}

#[test]
fn scenario_30_partitions_are_added_while_the_group_rebalances() {
    let mut world = group(32, 2, &["sticky"], &[("t", 4)]);
    for host in &mut world.hosts {
        host.plan_ms = 2_000;
    }
    world.start(config(9, &["sticky"]), &["t"]);
    world.run_until_so(20_000, "somebody plans", |world| {
        world.hosts.iter().any(|host| host.member.stage() == Stage::Planning)
    });
    world.cluster.broker.grow_topic("t", 9).unwrap();
    world.run_until_so(60_000, "the new ones are read", World::settled);
    world.check();
}

#[test]
fn a_host_may_ask_for_another_plan_from_any_member() {
    let mut world = group(33, 3, &["sticky"], &[("t", 6)]);
    let follower = (0..3).find(|&host| !world.hosts[host].member.leads()).unwrap();
    let generation = world.hosts[follower].member.identity().1;
    world.handle(follower, Event::Rejoin { reason: "the lags have changed".to_owned() });
    world.run_until_so(20_000, "another generation", |world| {
        world.settled() && world.hosts.iter().all(|host| host.member.identity().1 > generation)
    });
    let held: Vec<_> = world.hosts.iter().flat_map(|host| flat(&host.member.owned()).collect::<Vec<_>>()).collect();
    assert_eq!(held.len(), 6);
    world.check();
}
