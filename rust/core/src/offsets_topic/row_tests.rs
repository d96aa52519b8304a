//! The rows of records. Some records are golden bytes of Kafka and of Java's assignors.

use proptest::prelude::*;

use super::*;
use crate::encode::{SubscriptionFields, bytes, encode_sticky, encode_stream_join, string};
use crate::protocol::assignment;
use crate::protocol::topic_partitions::CanonicalPartitions;

const NOW: i64 = 1_700_000_000_000;

fn key(kind: i16, parts: &[&str]) -> Vec<u8> {
    let mut out = kind.to_be_bytes().to_vec();
    parts.iter().for_each(|part| string(&mut out, part));
    out
}

/// The value of a classic group, version 3: members with subscriptions and assignments.
fn group(protocol_type: &str, generation: i32, protocol: &str, members: &[(&str, Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![0, 3];
    string(&mut out, protocol_type);
    out.extend(generation.to_be_bytes());
    string(&mut out, protocol);
    string(&mut out, members.first().map_or("", |(id, ..)| id));
    out.extend(NOW.to_be_bytes());
    out.extend((members.len() as i32).to_be_bytes());
    for (id, subscription, assignment) in members {
        string(&mut out, id);
        out.extend([0xff, 0xff]);
        string(&mut out, "app");
        string(&mut out, "/10.0.0.1");
        out.extend([0; 8]);
        bytes(&mut out, subscription);
        bytes(&mut out, assignment);
    }
    out
}

fn subscription(data: Option<&[u8]>, owned: &[(&str, &[i32])], generation: Option<i32>) -> Vec<u8> {
    let owned = CanonicalPartitions::new(owned.iter().map(|(topic, numbers)| (*topic, numbers.iter().copied())));
    let fields = SubscriptionFields { topics: &["a", "b"], user_data: data, owned, generation, rack: Some("r1") };
    fields.encode().expect("short names")
}

fn assigned(partitions: &[(&str, &[i32])]) -> Vec<u8> {
    let lists = partitions.iter().map(|(topic, numbers)| (*topic, numbers.iter().copied()));
    assignment::encode(&CanonicalPartitions::new(lists), None).expect("short names")
}

fn record<'a>(key: &'a [u8], value: Option<&'a [u8]>) -> Record<'a> {
    Record { key: Some(key), value, partition: Some(0), offset: Some(5), timestamp: Some(NOW) }
}

fn all(record: Record<'_>) -> Vec<Row<'_>> {
    let mut found = Vec::new();
    rows(record, None, |row| found.push(row));
    found
}

/// The columns of a row as text.
fn shown(row: &Row<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match row {
        Row::Event(MembershipEvent { group, kind, generation, protocol, member }) => {
            let member = member.as_ref().map_or("nobody".to_owned(), |member| {
                let mut topics = Vec::new();
                member.topics.each(|name| topics.push(text(name)));
                let claim = member.claim.map(|claim| match claim.held {
                    Held::Numbers(numbers) => {
                        format!("{:?}@{:?}", numbers.iter().collect::<Vec<_>>(), claim.generation)
                    }
                    Held::Partitions(partitions) => {
                        let lists: Vec<_> = partitions
                            .iter()
                            .map(|(name, list)| (text(name), list.iter().collect::<Vec<_>>()))
                            .collect();
                        format!("{lists:?}@{:?}", claim.generation)
                    }
                });
                let (rack, regex) = (member.rack.map(text), member.topic_regex);
                format!("{} {:?} {rack:?} {topics:?} {regex:?} held {claim:?}", member.id, member.instance_id)
            });
            format!("{} {group} {generation:?} {protocol:?} {member}", kind.name())
        }
        Row::Assignment(row) => {
            let topic = match row.topic {
                TopicNameOrId::Name(name) => text(name),
                TopicNameOrId::Id(id) => topic_id_text(id),
            };
            let numbers: Vec<i32> = row.partitions.iter().collect();
            format!("{} {} {:?} {} {topic} {numbers:?}", row.source.name(), row.group, row.generation, row.member_id)
        }
        Row::Commit(row) => format!("{row:?}"),
        Row::Matches(row) => {
            let mut topics = Vec::new();
            row.topics.each(|name| topics.push(text(name)));
            format!("matches {} {} {topics:?}", row.group, row.expression)
        }
        Row::Rejected(row) => {
            format!("{} {:?} {:?} {:?}: {}", row.reason.name(), row.kind, row.group, row.member_id, row.detail)
        }
    }
}

fn shown_all(record: Record<'_>) -> Vec<String> {
    all(record).iter().map(shown).collect()
}

#[test]
fn a_generation_of_each_assignor() {
    let held: &[(&str, &[i32])] = &[("a", &[0, 2])];
    let partitions = CanonicalPartitions::new(held.iter().map(|(topic, numbers)| (*topic, numbers.iter().copied())));
    let sticky = encode_sticky(&partitions, Some(6)).expect("short names");
    // The user data of kafka-python 3.0.12: a schema version, then the sticky user data.
    let prefixed = [&[0, 1], sticky.as_slice()].concat();
    let join = encode_stream_join(&[0, 3], 7).expect("few");
    let of_sticky = r#"Some("[(\"a\", [0, 2])]@Some(6)")"#;
    for (protocol, data, owned, generation, claim) in [
        ("sticky", Some(sticky.as_slice()), held, None, of_sticky),
        ("sticky", Some(prefixed.as_slice()), &[], None, of_sticky),
        ("sticky", None, held, Some(6), "None"),
        ("lag", Some(sticky.as_slice()), &[], None, of_sticky),
        ("cooperative-sticky", Some([0, 0, 0, 4].as_slice()), held, Some(6), of_sticky),
        ("cooperative-sticky", Some([0, 0, 0, 6].as_slice()), held, None, of_sticky),
        ("cooperative-sticky", None, &[], None, "None"),
        ("sticky-join", Some(join.as_slice()), held, Some(6), r#"Some("[0, 3]@Some(7)")"#),
        ("cooperative-sticky-join", Some(join.as_slice()), &[], None, r#"Some("[0, 3]@Some(7)")"#),
        ("range", None, held, Some(6), of_sticky),
        ("roundrobin", Some([9].as_slice()), &[], None, "None"),
    ] {
        let members = [
            ("m0", subscription(data, owned, generation), assigned(&[("a", &[0, 1]), ("b", &[2])])),
            ("m1", subscription(None, &[], None), Vec::new()),
        ];
        let (key, value) = (key(2, &["g"]), group("consumer", 9, protocol, &members));
        let head = format!("snapshot g Some(9) Some({protocol:?})");
        let expected = [
            format!(r#"{head} m0 None Some("r1") ["a", "b"] None held {claim}"#),
            "classic g Some(9) m0 a [0, 1]".to_owned(),
            "classic g Some(9) m0 b [2]".to_owned(),
            format!(r#"{head} m1 None Some("r1") ["a", "b"] None held None"#),
        ];
        assert_eq!(shown_all(record(&key, Some(&value))), expected, "{protocol} {data:?}");
    }
}

#[test]
fn members_cost_themselves_only() {
    let broken = [("m0", vec![0], vec![0]), ("m1", subscription(Some(&[1]), &[], None), assigned(&[("a", &[4])]))];
    let (key, value) = (key(2, &["g"]), group("consumer", 2, "sticky", &broken));
    assert_eq!(
        shown_all(record(&key, Some(&value))),
        [
            r#"snapshot g Some(2) Some("sticky") m0 None None [] None held None"#,
            r#"subscription Some(2) Some("g") Some("m0"): cannot read version at byte 0: the input ends too early"#,
            r#"assignment Some(2) Some("g") Some("m0"): cannot read version at byte 0: the input ends too early"#,
            r#"snapshot g Some(2) Some("sticky") m1 None Some("r1") ["a", "b"] None held None"#,
            r#"user_data Some(2) Some("g") Some("m1"): the user data of 1 bytes has no form that this assignor knows"#,
            "classic g Some(2) m1 a [4]",
        ]
    );
}

#[test]
fn groups_that_are_empty_gone_or_not_of_consumers() {
    let key = key(2, &["g"]);
    let empty = group("consumer", 3, "", &[]);
    assert_eq!(shown_all(record(&key, Some(&empty))), [r#"snapshot g Some(3) Some("") nobody"#]);
    assert_eq!(shown_all(record(&key, None)), [r#"tombstone Some(2) Some("g") None: a record of kind 2"#]);
    // The coordinator writes this record for a new group, before the first member has sent the protocol type.
    let new = group("", 0, "", &[]);
    assert_eq!(shown_all(record(&key, Some(&new))), [r#"snapshot g Some(0) Some("") nobody"#]);
    let strange = group("", 1, "range", &[("w", vec![1], vec![2])]);
    assert_eq!(shown_all(record(&key, Some(&strange))), [r#"not_consumer Some(2) Some("g") None: "#]);
    let connect = group("connect", 3, "compatible", &[("w", vec![1], vec![2])]);
    assert_eq!(shown_all(record(&key, Some(&connect))), [r#"not_consumer Some(2) Some("g") None: connect"#]);
}

#[test]
fn commits_and_their_ends() {
    let mut key = key(1, &["g", "a"]);
    key.extend(7i32.to_be_bytes());
    let mut value = vec![0, 3];
    value.extend(42i64.to_be_bytes());
    value.extend((-1i32).to_be_bytes());
    string(&mut value, "m");
    value.extend((NOW - 5).to_be_bytes());
    let gone = Commit {
        group: "g".into(),
        timestamp: NOW,
        topic: "a".into(),
        topic_id: None,
        partition: 7,
        committed: None,
        leader_epoch: None,
    };
    assert_eq!(all(record(&key, None)), [Row::Commit(gone.clone())]);
    let there = Commit { timestamp: NOW - 5, committed: Some(42), ..gone };
    assert_eq!(all(record(&key, Some(&value))), [Row::Commit(there)]);
}

#[test]
fn kip_848_groups_and_their_epochs() {
    let ids =
        [2u8, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0];
    let target = [&[0, 0], ids.as_slice(), &[0]].concat();
    let current = [&[0, 0, 0, 0, 0, 12, 0, 0, 0, 11, 1], ids.as_slice(), &ids, &[0]].concat();
    let member = b"\0\0\0\x03r1\x04app\x02/\x02\x07orders\x04o.*\0\x04\x93\xe0\0\0";
    let epoch = |epoch: u8| vec![0, 0, 0, 0, 0, epoch, 0];
    let records = [
        (key(5, &["g", "m"]), Some(member.to_vec())),
        (key(16, &["g", "o.*"]), Some(b"\0\0\x02\x07orders".to_vec())),
        (key(3, &["h"]), Some(epoch(90))),
        (key(3, &["g"]), Some(epoch(12))),
        (key(7, &["g", "m"]), Some(target)),
        (key(6, &["g"]), Some(epoch(12))),
        (key(8, &["g", "m"]), Some(current)),
        (key(8, &["g", "m"]), None),
        (key(7, &["g", "m"]), None),
        (key(5, &["g", "m"]), None),
        (key(3, &["g"]), Some(epoch(13))),
        (key(5, &["g", "n"]), None),
        (key(16, &["g", "o.*"]), None),
        (key(3, &["g"]), None),
    ];
    let at =
        |index: usize| Record { offset: Some(index as i64), ..record(&records[index].0, records[index].1.as_deref()) };
    let keys = || records.iter().map(|(key, _)| Some(key.as_slice()));
    let epochs = Epochs::read(keys(), at);
    let mut found = Vec::new();
    for index in 0..records.len() {
        rows(at(index), epochs.of(index), |row| found.push(shown(&row)));
    }
    let id = "AQIDBAUGBwgREhMUFRYXGA";
    assert_eq!(
        found,
        [
            r#"join g Some(12) None m None Some("r1") ["orders"] Some("o.*") held None"#.to_owned(),
            r#"matches g o.* ["orders"]"#.to_owned(),
            format!("target g Some(12) m {id} [0, 3]"),
            format!("current g Some(12) m {id} [0, 3]"),
            format!("pending_revocation g Some(12) m {id} [0, 3]"),
            r#"tombstone Some(8) Some("g") Some("m"): a record of kind 8"#.to_owned(),
            r#"tombstone Some(7) Some("g") Some("m"): a record of kind 7"#.to_owned(),
            "leave g Some(13) None m None None [] None held None".to_owned(),
            "leave g None None n None None [] None held None".to_owned(),
            "matches g o.* []".to_owned(),
            r#"tombstone Some(3) Some("g") None: a record of kind 3"#.to_owned(),
        ]
    );
    // Records that are not in the order of their offsets get no epoch.
    let reversed = |index: usize| Record { offset: Some(-(index as i64)), ..at(index) };
    let epochs = Epochs::read(keys(), reversed);
    assert!((0..records.len()).all(|index| epochs.of(index).is_none()));
}

#[test]
fn records_that_cannot_be_read() {
    let group_key = key(2, &["g"]);
    for (record, expected) in [
        (
            record(&[], None),
            "broken None None None: the record's key: cannot read version at byte 0: the input ends too early",
        ),
        (
            record(&group_key, Some(&[0, 9])),
            r#"unknown_version Some(2) Some("g") None: the value of a record of kind 2 has version 9; versions 0 to 4 are known"#,
        ),
        (
            record(&group_key, Some(&[0])),
            r#"broken Some(2) Some("g") None: the value of a record of kind 2: cannot read version at byte 0: the input ends too early"#,
        ),
        (record(&[0, 15], Some(b"x")), "other_kind Some(15) None None: a record of kind 15"),
        (Record { key: None, ..record(&[], None) }, "no_key None None None: the record has no key"),
        (Record { partition: None, ..record(&[], None) }, "broken None None None: the record's partition is null"),
        (Record { offset: None, ..record(&[], None) }, "broken None None None: the record's offset is null"),
        (Record { timestamp: None, ..record(&[], None) }, "broken None None None: the record's timestamp is null"),
    ] {
        assert_eq!(shown_all(record), [expected]);
    }
}

/// A record of one megabyte must not produce gigabytes of rows.
#[test]
fn names_are_not_repeated_without_bound() {
    let long = "g".repeat(30_000);
    let (empty, some) = (Vec::new(), assigned(&[("", &[0])]));
    let members: Vec<_> = (0..3_000).map(|_| ("", empty.clone(), empty.clone())).collect();
    let (key, value) = (key(2, &[&long]), group("consumer", 1, "sticky", &members));
    let found = all(record(&key, Some(&value)));
    let [Row::Rejected(rejected)] = found.as_slice() else { panic!("{} rows", found.len()) };
    assert_eq!(
        (rejected.reason, rejected.detail.as_str()),
        (RejectReason::TooLarge, "3000 members with names of 30006 bytes")
    );
    // The rows of half as many members fit, but not the rows of their assignments.
    let members: Vec<_> = (0..1_500).map(|_| ("", empty.clone(), some.clone())).collect();
    let value = group("consumer", 1, "sticky", &members);
    let found = all(record(&key, Some(&value)));
    let count = |wanted: fn(&Row<'_>) -> bool| found.iter().filter(|row| wanted(row)).count();
    let given = count(|row| matches!(row, Row::Assignment(_)));
    assert!(given > 0 && (1_500 + given) * 30_000 <= MOST_BYTES, "{given}");
    let too_large = |row: &Row<'_>| matches!(row, Row::Rejected(row) if row.reason == RejectReason::TooLarge);
    assert_eq!(count(too_large), 1_500 - given);
}

#[test]
fn topic_ids_as_kafka_prints_them() {
    // The result of `Uuid.toString` of Kafka 4.3.1.
    let id = [1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
    assert_eq!(topic_id_text(id), "AQIDBAUGBwgREhMUFRYXGA");
    assert_eq!(topic_id_text([0xff; 16]), "_____________________w");
    assert_eq!(parse_topic_id("/////////////////////w"), Some([0xff; 16]));
    for wrong in
        ["", "AQIDBAUGBwgREhMUFRYXG", "AQIDBAUGBwgREhMUFRYXGB", "AQIDBAUGBwgREhMUFRYXGA=", "AQID AUGBwgREhMUFRYXGA"]
    {
        assert_eq!(parse_topic_id(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn topic_ids_round_trip(id: [u8; 16]) {
        prop_assert_eq!(parse_topic_id(&topic_id_text(id)), Some(id));
    }

    /// Every record except an epoch gives at least one row, and no input panics.
    #[test]
    fn hostile_records_give_rows(
        kind in prop_oneof![0i16..20, any::<i16>()],
        group in "[a-z]{0,4}",
        rest in proptest::collection::vec(any::<u8>(), 0..60),
        value in proptest::option::of((0i16..6, proptest::collection::vec(any::<u8>(), 0..200))),
    ) {
        let key = [key(kind, &[&group]).as_slice(), &rest].concat();
        let value = value.map(|(version, bytes)| [version.to_be_bytes().as_slice(), &bytes].concat());
        let found = shown_all(record(&key, value.as_deref()));
        let assigns = matches!(kind, 7 | 8);
        prop_assert!(!found.is_empty() || matches!(kind, 3 | 6) || assigns && value.is_some());
    }
}
