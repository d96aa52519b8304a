//! Scenarios 1 to 5: finding the coordinator, keeping it, and malformed frames.

use crate::script::Script;
use crate::world::{Weather, World};
use crate::{config, group};
use kafka_assignors_core::member::{Action, Event, Role, Stage};
use kafka_assignors_core::protocol::heartbeat::HeartbeatRequest;
use kafka_assignors_core::protocol::join_group::JoinGroupRequest;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

#[test]
fn scenario_01_discovery_backs_off_and_goes_on_while_the_application_is_idle() {
    let mut script = Script::new(config(1, &["sticky"]));
    // The search continues although the application does not poll: error 15, no response, a closed connection, 15 …
    let mut waits = Vec::new();
    for round in 0..8 {
        match round {
            2 => script.pass(10_001),
            4 => script.cut(Role::Bootstrap),
            _ => script.find(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        }
        let failed = script.now;
        for _ in 0..200 {
            if script.asks(ApiKey::FindCoordinator) {
                break;
            }
            if script.asks(ApiKey::Metadata) {
                script.describe();
            }
            script.pass(10);
        }
        assert!(script.asks(ApiKey::FindCoordinator), "round {round}");
        waits.push(script.now - failed);
    }
    assert!((80..=130).contains(&waits[0]), "{waits:?}");
    assert!(waits.iter().all(|&wait| wait <= 1_310), "{waits:?}");
    assert!(*waits.last().unwrap() >= 700, "{waits:?}");
    script.find(ErrorCode::NONE);
    assert_eq!(script.conns.values().filter(|&&role| role == Role::Group).count(), 1);
    assert!(script.fatal().is_empty());
}

#[test]
fn scenario_01_a_group_that_is_forbidden_is_fatal() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.find(ErrorCode::GROUP_AUTHORIZATION_FAILED);
    assert_eq!(script.fatal(), [ErrorCode::GROUP_AUTHORIZATION_FAILED]);
    script.pass(60_000);
    assert_eq!(script.fatal().len(), 1, "reported once");
}

#[test]
fn scenario_02_the_coordinator_moves_whatever_the_member_is_doing() {
    for doing in ["join", "sync", "heartbeat", "commit"] {
        let mut world = group(2, 3, &["sticky"], &[("t", 6)]);
        let before = world.hosts[0].counts.lost;
        match doing {
            "join" => world.subscribe(0, &[]),
            "sync" => {
                for host in 0..3 {
                    world.hosts[host].plan_ms = 50;
                }
                world.subscribe(0, &[]);
                world.run_until_so(10_000, "somebody plans", |world| {
                    world.hosts.iter().any(|host| host.member.stage() == Stage::Planning)
                });
            }
            "commit" => world.commits = 1,
            _ => {}
        }
        world.cluster.coordinator = 2;
        world
            .run_until_so(60_000, doing, |world: &World| world.hosts.iter().all(|h| h.member.stage() == Stage::Stable));
        world.subscribe(0, &["t"]);
        world.run_until_so(60_000, doing, World::settled);
        world.check();
        assert_eq!(world.hosts[0].counts.lost, before, "{doing}: nobody is expelled for it");
    }
}

#[test]
fn scenario_02_late_answers_on_the_old_connection_are_ignored() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    let old = script.conn(Role::Group);
    script.pass(3_000);
    let asked = script.asked::<HeartbeatRequest>();
    script.commit(7, &[("t", 0, 5)]);
    script.committed(ErrorCode::NOT_COORDINATOR);
    assert!(!script.conns.contains_key(&old), "closed");
    let mut late = asked.header.correlation_id.to_be_bytes().to_vec();
    late.extend_from_slice(&[0, 0, 0, 0, 0, 25]);
    script.handle(Event::Received { conn: old, frame: late });
    script.pass(2_000);
    script.discover();
    script.committed(ErrorCode::NONE);
    assert_eq!(script.ended(7), Some(ErrorCode::NONE));
    assert!(script.notices().is_empty(), "still in its generation");
}

#[test]
fn scenario_02_leaving_while_the_coordinator_moves_ends_in_time() {
    let mut world = group(3, 2, &["sticky"], &[("t", 4)]);
    world.cluster.coordinator = 3;
    world.close(0, 5_000);
    world.run_until_so(5_100, "closed", |world| world.hosts[0].closed);
    world.run_until_so(30_000, "the other has everything", World::settled);
    world.check();
}

#[test]
fn scenario_03_a_coordinator_that_loads_is_asked_again_with_the_same_id_and_pauses() {
    let mut script = Script::new(config(1, &["sticky"]));
    let mut asked = script.joining();
    script.answer(&asked, &{
        let mut body = script.follows(0);
        body.error_code = ErrorCode::MEMBER_ID_REQUIRED;
        body
    });
    let mut last = script.now;
    let mut waits = Vec::new();
    for _ in 0..6 {
        asked = script.asked::<JoinGroupRequest>();
        assert_eq!(asked.body.member_id, "me");
        assert_eq!(asked.conn, script.conn(Role::Group), "the same coordinator");
        waits.push(script.now - last);
        last = script.now;
        let mut body = script.follows(0);
        body.error_code = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
        script.answer(&asked, &body);
        while !script.asks(ApiKey::JoinGroup) {
            script.pass(10);
        }
    }
    assert!(waits[1..].windows(2).all(|pair| pair[1] + 20 >= pair[0].min(700)), "{waits:?}");
    assert!(waits[1] >= 80, "{waits:?}");
    assert!(script.fatal().is_empty());
}

#[test]
fn scenario_04_refused_credentials_are_fatal_at_bootstrap_and_later() {
    for later in [false, true] {
        let mut script = Script::new(config(1, &["sticky"]));
        if later {
            script.stable(&[("t", &[0])]);
        }
        script.connects = false;
        let conn = if later {
            script.cut(Role::Group);
            script.pass(200);
            script.discover();
            script.conn(Role::Group)
        } else {
            script.conn(Role::Bootstrap)
        };
        let before = script.connected;
        let fatal = Some(ErrorCode::SASL_AUTHENTICATION_FAILED);
        script.handle(Event::Disconnected { conn, reason: "wrong password".to_owned(), fatal });
        assert_eq!(script.fatal(), [ErrorCode::SASL_AUTHENTICATION_FAILED]);
        script.pass(120_000);
        assert_eq!(script.connected, before, "it is not tried again");
        if later {
            let notice = script.obey();
            assert!(notice.lost, "what it owned is lost");
        }
        assert!(script.member.owned().is_empty());
    }
}

/// Malformed frames in place of the response to a heartbeat. The host refuses invalid lengths, and splits the stream
/// into frames (tests/net/test_connection.py).
fn hostile_frames(correlation: i32) -> Vec<(&'static str, Vec<u8>)> {
    let id = correlation.to_be_bytes();
    vec![
        ("no bytes at all", Vec::new()),
        ("less than a header", vec![0, 0]),
        ("another correlation id", [(correlation + 1).to_be_bytes(), [0; 4]].concat()),
        ("a header without a body", id.to_vec()),
        ("a body cut short", [&id[..], &[0, 0]].concat()),
        ("bytes behind the body", [&id[..], &[0; 4], &[0, 0, 0, 0, 7]].concat()),
        ("endless tagged fields", [&id[..], &[0xff, 0xff, 0xff, 0xff, 0x0f]].concat()),
    ]
}

#[test]
fn scenario_05_hostile_frames_close_the_connection_and_cost_a_pause() {
    for number in 0..7 {
        let mut script = Script::new(config(1, &["sticky"]));
        script.stable(&[("t", &[0])]);
        script.pass(3_000);
        let asked = script.asked::<HeartbeatRequest>();
        let (what, frame) = hostile_frames(asked.header.correlation_id).swap_remove(number);
        let before = script.connected;
        script.handle(Event::Received { conn: asked.conn, frame });
        assert!(!script.conns.contains_key(&asked.conn), "{what}");
        assert_eq!(script.connected, before, "{what}: not at once");
        script.pass(200);
        script.discover();
        script.heartbeat(ErrorCode::NONE);
        assert_eq!(script.member.stage(), Stage::Stable, "{what}");
        assert!(script.notices().is_empty() && script.fatal().is_empty(), "{what}");
    }
}

#[test]
fn scenario_05_an_answer_to_nothing_closes_the_connection() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.stable(&[("t", &[0])]);
    let conn = script.conn(Role::Offsets);
    script.handle(Event::Received { conn, frame: vec![0, 0, 0, 1] });
    assert!(!script.conns.contains_key(&conn));
}

#[test]
fn scenario_05_hostile_metadata_of_another_member_costs_only_its_sender() {
    let bodies: [&[u8]; 6] = [
        &[],
        &[0xff, 0xff],
        &[0, 3, 0x7f, 0xff, 0xff, 0xff],
        &[0, 0, 0, 0, 0, 1, 0x7f, 0xff],
        &[0, 1, 0, 0, 0, 1, 0, 1, b'u', 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff],
        &[0, 3, 0, 0, 0, 1, 0, 2, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff],
    ];
    for body in bodies {
        let mut script = Script::new(config(1, &["cooperative-sticky"]));
        let asked = script.joining();
        let mut joined = script.leads(1, &["t"]);
        joined.members[1].metadata = body.to_vec();
        script.answer(&asked, &joined);
        script.discover();
        let planned = script.actions.iter().rev().find_map(|action| match action {
            Action::Plan { ticket, members, topics, generation, protocol } => {
                Some((*ticket, crate::assignors::plan(protocol, members, topics, *generation)))
            }
            _ => None,
        });
        let (ticket, assignments) = planned.expect("a plan is asked for");
        script.handle(Event::Planned { ticket, assignments });
        assert!(script.asks(ApiKey::SyncGroup), "{body:?}");
    }
}

#[test]
fn a_cold_network_only_slows_the_group_down() {
    let mut world = group(4, 4, &["cooperative-sticky"], &[("t", 9)]);
    world.weather = Weather { delay: 400, cut: 15 };
    world.run(60_000);
    world.weather = crate::world::CALM;
    world.run_until_so(60_000, "settled again", World::settled);
    world.check();
}
