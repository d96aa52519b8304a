//! Scenarios 32 and 33: static members.

use crate::script::{Asked, Script, assignment};
use crate::world::World;
use crate::{config, world};
use kafka_assignors_core::member::{Config, Role, Stage};
use kafka_assignors_core::protocol::group_admin::{DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup};
use kafka_assignors_core::protocol::join_group::{JoinGroupRequest, JoinGroupResponse};
use kafka_assignors_core::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

fn fixed(number: u64, assignor: &str) -> Config {
    let mut settings = config(number, &[assignor]);
    settings.group_instance_id = Some(format!("i{number}"));
    settings
}

/// A stable group of three static members.
fn statics(seed: u64, assignor: &str, newest_join: i16) -> World {
    let mut world = world(seed);
    world.cluster.caps.insert(ApiKey::JoinGroup, newest_join);
    world.topic("t", 6);
    world.topic("u", 3);
    for number in 0..3 {
        world.start(fixed(number, assignor), &["t"]);
    }
    world.run_until_so(60_000, "settled", World::settled);
    world
}

fn leader(world: &World) -> usize {
    let id = world.cluster_leader();
    world.hosts.iter().position(|host| host.member.identity().0 == id).unwrap()
}

#[test]
fn scenario_32_a_restart_within_the_session_moves_nothing() {
    for assignor in ["sticky", "cooperative-sticky", "range"] {
        for newest_join in [5, 8, 9] {
            for leads in [false, true] {
                let mut world = statics(32, assignor, newest_join);
                let who = (0..3).find(|&host| (host == leader(&world)) == leads).unwrap();
                let generation = world.hosts[who].member.identity().1;
                let held: Vec<_> =
                    world.hosts.iter().map(|host| host.held.keys().cloned().collect::<Vec<_>>()).collect();
                world.kill(who);
                world.run(3_000);
                world.restart(who);
                world.run_until_so(20_000, "it is back", World::settled);
                world.run(30_000);
                let after: Vec<_> =
                    world.hosts.iter().map(|host| host.held.keys().cloned().collect::<Vec<_>>()).collect();
                assert_eq!(after, held, "{assignor} JoinGroup {newest_join} leads {leads}");
                assert_eq!(world.hosts[who].member.identity().1, generation, "no rebalance");
                world.check();
            }
        }
    }
}

#[test]
fn scenario_32_closing_keeps_the_place() {
    let mut world = statics(33, "sticky", 9);
    world.close(0, 5_000);
    world.run_until_so(5_000, "closed", |world| world.hosts[0].closed);
    assert_eq!(world.cluster.seen.get(&ApiKey::LeaveGroup), None);
    assert_eq!(world.cluster.broker.groups()[0].members.len(), 3);
    world.restart(0);
    world.run_until_so(20_000, "it is back", World::settled);
    world.check();
}

#[test]
fn scenario_32_a_leader_that_comes_back_sees_what_changed_meanwhile() {
    for newest_join in [5, 9] {
        let mut world = statics(34, "cooperative-sticky", newest_join);
        let who = leader(&world);
        world.kill(who);
        world.cluster.broker.grow_topic("t", 9).unwrap();
        world.run(2_000);
        world.restart(who);
        world.run_until_so(60_000, "the new partitions are read", World::settled);
        world.check();
    }
}

#[test]
fn scenario_32_a_leader_that_polls_again_sees_what_changed_meanwhile() {
    for assignor in ["sticky", "cooperative-sticky"] {
        for newest_join in [5, 9] {
            let mut world = statics(38, assignor, newest_join);
            let who = leader(&world);
            world.hosts[who].polls = false;
            world.run_until_so(60_000, "silent", |world| world.hosts[who].counts.poll_exceeded == 1);
            world.cluster.broker.grow_topic("t", 9).unwrap();
            world.run(2_000);
            // The member returns within its session, so the group did not rebalance.
            world.hosts[who].polls = true;
            world.run_until_so(60_000, "the new partitions are read", World::settled);
            assert_eq!(world.hosts[who].counts.lost, 1);
            world.check();
        }
    }
}

#[test]
fn scenario_32_a_subscription_that_changed_across_the_restart() {
    for leads in [false, true] {
        for topics in [&["u"][..], &["t", "u"][..]] {
            for newest_join in [5, 9] {
                let mut world = statics(35, "sticky", newest_join);
                let who = (0..3).find(|&host| (host == leader(&world)) == leads).unwrap();
                world.kill(who);
                world.hosts[who].topics = topics.iter().map(|&topic| topic.to_owned()).collect();
                world.restart(who);
                world.run_until_so(60_000, "what it wants now is read", World::settled);
                assert!(world.hosts[who].held.keys().any(|(topic, _)| topic == "u"));
                world.check();
            }
        }
    }
}

#[test]
fn scenario_33_the_older_of_two_processes_with_one_instance_id_is_fenced() {
    for assignor in ["sticky", "cooperative-sticky"] {
        let mut world = statics(36, assignor, 9);
        let younger = world.start(fixed(0, assignor), &["t"]);
        world.run_until_so(20_000, "the older one is fenced", |world| world.hosts[0].fatal.is_some());
        assert_eq!(world.hosts[0].fatal.as_ref().unwrap().0, ErrorCode::FENCED_INSTANCE_ID);
        world.run_until_so(20_000, "it has let go", |world| world.hosts[0].held.is_empty());
        assert_eq!(world.hosts[0].counts.lost, 1);
        world.run_until_so(20_000, "the younger one has its place", World::settled);
        assert_eq!(world.hosts[younger].held.len(), 2);
        world.check();
    }
}

fn stable_static() -> Script {
    let mut script = Script::new(fixed(1, "sticky"));
    let asked = script.joining();
    assert_eq!(asked.body.group_instance_id.as_deref(), Some("i1"));
    let joined = script.follows(1);
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[0, 1, 2, 3])], 1));
    script.obey();
    script.discover();
    // The member checks with DescribeGroups whether the plan fits, but the broker does not allow that.
    let asked: Asked<DescribeGroupsRequest> = script.asked();
    let group = DescribedGroup {
        group_id: "g".to_owned(),
        error_code: ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ..Default::default()
    };
    script.answer(&asked, &DescribeGroupsResponse { groups: vec![group], ..Default::default() });
    script
}

#[test]
fn scenario_33_fenced_in_a_join_a_sync_a_heartbeat_and_a_commit() {
    let fenced = ErrorCode::FENCED_INSTANCE_ID;
    for request in ["join", "sync", "heartbeat", "commit"] {
        let mut script = stable_static();
        match request {
            "heartbeat" => script.heartbeat(fenced),
            "commit" => {
                script.commit(1, &[("t", 0, 5)]);
                script.committed(fenced);
                assert_eq!(script.ended(1), Some(fenced));
            }
            _ => {
                script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
                script.obey();
                let asked: Asked<JoinGroupRequest> = script.asked();
                if request == "join" {
                    let protocol_name = Some(String::new());
                    let body = JoinGroupResponse { error_code: fenced, protocol_name, ..Default::default() };
                    script.answer(&asked, &body);
                } else {
                    let joined = script.follows(2);
                    script.answer(&asked, &joined);
                    let asked: Asked<SyncGroupRequest> = script.asked();
                    script.answer(&asked, &SyncGroupResponse { error_code: fenced, ..Default::default() });
                }
            }
        }
        assert_eq!(script.fatal(), [fenced], "{request}");
        assert!(!script.asks(ApiKey::LeaveGroup), "{request}: it would take the younger one's place away");
    }
}

#[test]
fn scenario_33_a_fencing_of_a_generation_that_is_over_is_not_fatal() {
    let mut script = stable_static();
    script.commit(1, &[("t", 0, 5)]);
    let stale: Asked<kafka_assignors_core::protocol::offsets::OffsetCommitRequest> = script.asked();
    script.heartbeat(ErrorCode::UNKNOWN_MEMBER_ID);
    script.obey();
    let asked: Asked<JoinGroupRequest> = script.asked();
    let mut joined = script.follows(2);
    joined.member_id = "me-again".to_owned();
    script.answer(&asked, &joined);
    script.sync(assignment(&[("t", &[1])], 2));
    script.obey();
    let partition = kafka_assignors_core::protocol::offsets::OffsetCommitPartitionResponse {
        partition_index: 0,
        error_code: ErrorCode::FENCED_INSTANCE_ID,
    };
    let topic = kafka_assignors_core::protocol::offsets::OffsetCommitTopicResponse {
        name: "t".to_owned(),
        partitions: vec![partition],
        ..Default::default()
    };
    let body =
        kafka_assignors_core::protocol::offsets::OffsetCommitResponse { topics: vec![topic], ..Default::default() };
    assert_eq!(stale.conn, script.conn(Role::Offsets));
    script.answer(&stale, &body);
    assert_eq!(script.member.stage(), Stage::Stable);
    assert!(script.fatal().is_empty());
}

#[test]
fn a_broker_too_old_for_static_members_is_reported() {
    let mut script = Script::new(fixed(1, "sticky"));
    script.connects = false;
    script.versions.insert(ApiKey::JoinGroup.code(), (0, 4));
    script.cut(Role::Bootstrap);
    script.pass(200);
    let conn = script.conn(Role::Bootstrap);
    let versions = script.versions.clone();
    script.connects = true;
    script.handle(kafka_assignors_core::member::Event::Connected { conn, versions });
    script.discover();
    script.obey();
    assert_eq!(script.fatal(), [ErrorCode::UNSUPPORTED_VERSION]);
}
