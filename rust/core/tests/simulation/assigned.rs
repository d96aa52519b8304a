//! Which of its assigned partitions a member takes.

use crate::config;
use crate::script::{Asked, Script, assignment, owned};
use kafka_assignors_core::member::{Action, Event, Level, NoticeKind, Stage};
use kafka_assignors_core::protocol::assignment::Assignment;
use kafka_assignors_core::protocol::join_group::JoinGroupRequest;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};

fn warnings(script: &Script) -> Vec<&str> {
    let warnings = script.actions.iter().filter_map(|action| match action {
        Action::Log { level: Level::Warning, message } => Some(message.as_str()),
        _ => None,
    });
    warnings.collect()
}

/// A member in generation 1 whose assignment names these partitions. In its metadata, `t` has four partitions.
fn given(partitions: &[(&str, &[i32])]) -> Script {
    let mut script = Script::new(config(1, &["sticky"]));
    let asked = script.joining();
    script.answer(&asked, &script.follows(1));
    script.actions.clear();
    // The member's metadata is older than the assignment.
    script.pass(1);
    script.sync(assignment(partitions, 1));
    script
}

#[test]
fn what_does_not_exist_is_left_out_in_one_line() {
    let all: Vec<i32> = (0..250_000).collect();
    let mut script = given(&[("t", &all)]);
    assert_eq!(script.notice(), None, "first the topics are asked for again");
    assert!(script.asks(ApiKey::Metadata));
    script.describe();
    let notice = script.obey();
    assert_eq!((notice.kind, &notice.owned), (NoticeKind::Assign, &owned(&[("t", &[0, 1, 2, 3])])));
    assert_eq!(script.member.owned(), owned(&[("t", &[0, 1, 2, 3])]));
    // The assignor makes its next claims from these bytes, so they do not contain the missing partitions; the user data stays.
    let read = Assignment::read(&notice.assignment).unwrap();
    assert_eq!((read.partitions.partitions(), read.generation()), (4, Some(1)));
    let [line] = warnings(&script)[..] else { panic!("{:?}", warnings(&script)) };
    assert!(line.contains("249996 partitions that do not exist: 249996 of \"t\", which has 4"), "{line}");
    assert!(line.len() < 300);
}

#[test]
fn a_leader_that_knows_of_new_partitions_is_believed() {
    let mut script = given(&[("t", &[0, 5])]);
    script.topics.insert("t".to_owned(), 6);
    assert_eq!(script.notice(), None);
    script.describe();
    assert_eq!(script.obey().owned, owned(&[("t", &[0, 5])]));
    assert_eq!(warnings(&script), [""; 0]);
}

#[test]
fn what_is_known_to_exist_is_taken_at_once() {
    let mut script = given(&[("t", &[0, 3])]);
    assert_eq!(script.obey().owned, owned(&[("t", &[0, 3])]));
    assert!(!script.asks(ApiKey::Metadata));
}

#[test]
fn what_was_left_out_is_planned_anew_once_it_exists() {
    // The first broker does not know yet that the topic has grown.
    let mut script = given(&[("t", &[0, 4])]);
    script.describe();
    assert_eq!(script.obey().owned, owned(&[("t", &[0])]));
    script.topics.insert("t".to_owned(), 5);
    script.pass(1_000);
    script.describe();
    assert_eq!(script.notice().unwrap().kind, NoticeKind::Prepare);
    script.obey();
    assert!(script.asks(ApiKey::JoinGroup));
}

#[test]
fn a_partition_that_never_exists_is_not_asked_for_for_ever() {
    let mut script = given(&[("t", &[0, 4])]);
    script.describe();
    script.obey();
    let mut asked = 0;
    for _ in 0..60 {
        script.pass(500);
        script.handle(Event::Poll);
        if script.asks(ApiKey::Metadata) {
            asked += 1;
            script.describe();
        }
        if script.asks(ApiKey::Heartbeat) {
            script.heartbeat(ErrorCode::NONE);
        }
    }
    // At most once per max_backoff_ms during request_timeout_ms, then at the usual interval.
    assert!((2..=22).contains(&asked), "{asked}");
    assert_eq!(script.member.stage(), Stage::Stable);
}

#[test]
fn without_an_answer_the_assignment_is_taken_as_far_as_is_known() {
    let mut script = given(&[("t", &[0, 4])]);
    for _ in 0..10 {
        assert_eq!(script.notice(), None);
        if script.asks(ApiKey::Heartbeat) {
            script.heartbeat(ErrorCode::NONE);
        }
        script.pass(1_000);
    }
    assert_eq!(script.obey().owned, owned(&[("t", &[0])]));
}

#[test]
fn of_a_topic_whose_size_is_not_known_nothing_is_taken_until_it_is() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.leaderless.push("new".to_owned());
    script.subscribe(&["t", "new"]);
    let asked = script.joining();
    script.answer(&asked, &script.follows(1));
    script.pass(1);
    let all: Vec<i32> = (0..250_000).collect();
    script.sync(assignment(&[("new", &all), ("t", &[0])], 1));
    script.discover();
    let notice = script.obey();
    assert_eq!((notice.kind, &notice.owned), (NoticeKind::Assign, &owned(&[("t", &[0])])));
    let [line] = warnings(&script)[..] else { panic!("{:?}", warnings(&script)) };
    assert!(line.contains("250000 of \"new\", whose size is not known"), "{line}");
    // Once the size is known, the member joins again for a new plan.
    script.topics.insert("new".to_owned(), 2);
    script.pass(1_000);
    script.describe();
    assert_eq!(script.notice().unwrap().kind, NoticeKind::Prepare);
}

#[test]
fn a_rebalance_overtakes_an_assignment_that_is_checked() {
    let mut script = given(&[("t", &[0, 4])]);
    script.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(script.obey().kind, NoticeKind::Prepare);
    script.describe();
    assert!(script.notices().iter().all(|notice| notice.kind == NoticeKind::Prepare), "{:?}", script.notices());
    let joining: Asked<JoinGroupRequest> = script.asked();
    script.answer(&joining, &script.follows(2));
    script.sync(assignment(&[("t", &[1])], 2));
    assert_eq!(script.obey().owned, owned(&[("t", &[1])]));
}

#[test]
fn a_topic_that_is_gone_has_no_partitions() {
    let mut script = Script::new(config(1, &["sticky"]));
    script.subscribe(&["t", "u"]);
    let asked = script.joining();
    script.answer(&asked, &script.follows(1));
    script.pass(1);
    script.sync(assignment(&[("t", &[0]), ("u", &[0, 1])], 1));
    script.discover();
    assert_eq!(script.obey().owned, owned(&[("t", &[0])]));
}
