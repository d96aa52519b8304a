//! Golden bytes, written by the generated classes of Apache Kafka 4.3.1 (`kafka-group-coordinator`), and hostile bytes.

use proptest::prelude::*;

use super::*;
use crate::protocol::Utf8;
use crate::protocol::reader::Problem;

const TOPIC_ID: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
const OFFSET_KEY: &str = "0001000762696c6c696e6700066f726465727300000007";
const GROUP_KEY: &str = "0002000762696c6c696e67";
const MEMBER_KEY: &str = "0005000762696c6c696e6700026330";
const MEMBER: &str = concat!(
    "00000369300261046170700a2f31302e302e302e3103076f7264657273097061796d656e7473046f2e2a000493e0",
    "08756e69666f726d010012010000afc80207737469636b790301020000"
);
const TARGET: &str = "000002010203040506070811121314151617180300000000000000030000";
const CURRENT: &str = concat!(
    "00000000000c0000000b01020102030405060708111213141516171803000000010000000200020102030405060708",
    "111213141516171802000000050000"
);
const GROUPS: [&str; 5] = [
    concat!(
        "00000008636f6e73756d6572000000090006737469636b79000263300000000100026330000361707000092f31302e302e302e31",
        "0000afc80000000201020000000103"
    ),
    concat!(
        "00010008636f6e73756d6572000000090006737469636b79000263300000000100026330000361707000092f31302e302e302e31",
        "000493e00000afc80000000201020000000103"
    ),
    concat!(
        "00020008636f6e73756d6572000000090006737469636b79000263300000018bcfe568000000000100026330000361707000092f",
        "31302e302e302e31000493e00000afc80000000201020000000103"
    ),
    concat!(
        "00030008636f6e73756d6572000000090006737469636b79000263300000018bcfe56800000000010002633000026930000361",
        "707000092f31302e302e302e31000493e00000afc80000000201020000000103"
    ),
    concat!(
        "000409636f6e73756d65720000000907737469636b790363300000018bcfe5680002036330036930046170700a2f31302e302e",
        "302e31000493e00000afc803010202030000"
    ),
];
const OFFSETS: [&str; 5] = [
    "0000000000000000109200016d0000018bcfe56800",
    "0001000000000000109200016d0000018bcfe568000000018bcfe6eea0",
    "0002000000000000109200016d0000018bcfe56800",
    "000300000000000010920000000500016d0000018bcfe56800",
    "0004000000000000109200000005026d0000018bcfe5680001001001020304050607081112131415161718",
];

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Reads golden bytes and passes key and value to `check`.
fn golden(key: &str, value: &str, check: impl FnOnce(Key<'_>, Value<'_>)) {
    let (key, value) = (bytes(key), bytes(value));
    let (key, value) = read(Some(&key), Some(&value)).expect("golden bytes");
    check(key, value);
}

#[test]
fn offset_commits_of_all_versions() {
    for (version, hex) in OFFSETS.iter().enumerate() {
        golden(OFFSET_KEY, hex, |key, value| {
            assert_eq!(key, Key::OffsetCommit { group: "billing".into(), topic: "orders".into(), partition: 7 });
            let expected = OffsetCommit {
                offset: 4242,
                leader_epoch: if version >= 3 { 5 } else { -1 },
                metadata: "m".into(),
                commit_timestamp: 1_700_000_000_000,
                expire_timestamp: if version == 1 { 1_700_000_100_000 } else { -1 },
                topic_id: (version == 4).then_some(TOPIC_ID),
            };
            assert_eq!(value, Value::OffsetCommit(expected), "version {version}");
        });
    }
}

#[test]
fn groups_of_all_versions() {
    for (version, hex) in GROUPS.iter().enumerate() {
        golden(GROUP_KEY, hex, |key, value| {
            assert_eq!(key, Key::Group { group: "billing".into() });
            let Value::Group(group) = value else { panic!("{value:?}") };
            assert_eq!((group.protocol_type, group.generation), ("consumer".into(), 9));
            assert_eq!((group.protocol, group.leader), (Some("sticky".into()), Some("c0".into())));
            assert_eq!(group.state_timestamp, if version >= 2 { 1_700_000_000_000 } else { -1 });
            let members = group.members;
            let expected = GroupMetadataMember {
                member_id: "c0".into(),
                instance_id: (version >= 3).then_some("i0".into()),
                client_id: "app".into(),
                client_host: "/10.0.0.1".into(),
                rebalance_timeout: if version >= 1 { 300_000 } else { -1 },
                session_timeout: 45_000,
                subscription: &[1, 2],
                assignment: &[3],
            };
            assert_eq!(members, [expected], "version {version}");
        });
    }
}

#[test]
fn a_member_of_a_kip_848_group() {
    golden(MEMBER_KEY, MEMBER, |key, value| {
        assert_eq!(key, Key::ConsumerGroupMember { group: "billing".into(), member_id: "c0".into() });
        let Value::Member(member) = value else { panic!("{value:?}") };
        assert_eq!((member.instance_id, member.rack), (Some("i0".into()), Some("a".into())));
        assert_eq!((member.client_id, member.client_host), ("app".into(), "/10.0.0.1".into()));
        assert_eq!(member.topics.iter().map(Utf8::text).collect::<Vec<_>>(), ["orders", "payments"]);
        assert_eq!((member.topic_regex, member.server_assignor), (Some("o.*".into()), Some("uniform".into())));
        let classic = member.classic.expect("a classic member");
        assert_eq!(classic.session_timeout, 45_000);
        assert_eq!(classic.iter().collect::<Vec<_>>(), [("sticky".into(), [1u8, 2].as_slice())]);
    });
    // For a field that is not set, Kafka's generated classes write an empty string, its coordinator writes null.
    for (hex, absent) in [
        ("0000010104617070026802076f726465727301000000010100", Some("".into())),
        ("0000000004617070026802076f726465727300000000010000", None),
        // The record that a 4.3.1 broker writes for a member without the classic protocol: the tagged structure is
        // present and null.
        ("0000000004617070026802076f726465727300000000010001000100", None),
    ] {
        golden(MEMBER_KEY, hex, |_, value| {
            let Value::Member(member) = value else { panic!("{value:?}") };
            assert_eq!((member.instance_id, member.rack, member.topic_regex), (absent, absent, absent));
            assert_eq!(member.topics.iter().map(Utf8::text).collect::<Vec<_>>(), ["orders"]);
            assert_eq!((member.server_assignor, member.classic), (absent, None));
        });
    }
}

#[test]
fn epochs_targets_and_current_assignments_of_kip_848_groups() {
    golden("0003000762696c6c696e67", "00000000000b0100080000000000000063", |key, value| {
        assert_eq!((key, value), (Key::ConsumerGroup { group: "billing".into() }, Value::GroupEpoch(11)));
    });
    golden("0006000762696c6c696e67", "00000000000c00", |key, value| {
        assert_eq!((key, value), (Key::TargetAssignment { group: "billing".into() }, Value::TargetEpoch(12)));
    });
    let numbers = |partitions: TopicIdPartitions<'_>| -> Vec<([u8; 16], Vec<i32>)> {
        partitions.iter().map(|(id, numbers)| (id, numbers.iter().collect())).collect()
    };
    golden("0007000762696c6c696e6700026330", TARGET, |key, value| {
        assert_eq!(key, Key::TargetAssignmentMember { group: "billing".into(), member_id: "c0".into() });
        let Value::Target(target) = value else { panic!("{value:?}") };
        assert_eq!(numbers(target), [(TOPIC_ID, vec![0, 3])]);
    });
    golden("0008000762696c6c696e6700026330", CURRENT, |key, value| {
        assert_eq!(key, Key::CurrentAssignment { group: "billing".into(), member_id: "c0".into() });
        let Value::Current(current) = value else { panic!("{value:?}") };
        assert_eq!((current.epoch, current.previous_epoch, current.state), (12, 11, 1));
        assert_eq!(numbers(current.assigned), [(TOPIC_ID, vec![1, 2])]);
        assert_eq!(numbers(current.pending_revocation), [(TOPIC_ID, vec![5])]);
    });
    golden(
        "0010000762696c6c696e6700036f2e2a",
        "000002076f726465727300000000000000030000018bcfe5680000",
        |key, value| {
            assert_eq!(key, Key::RegularExpression { group: "billing".into(), expression: "o.*".into() });
            let Value::Matches(topics) = value else { panic!("{value:?}") };
            assert_eq!(topics.iter().map(Utf8::text).collect::<Vec<_>>(), ["orders"]);
        },
    );
}

#[test]
fn tombstones_and_other_kinds() {
    let key = bytes(OFFSET_KEY);
    assert_eq!(read(Some(&key), None).expect("a tombstone").1, Value::Tombstone);
    for kind in [4i16, 9, 10, 15, 17, 99] {
        let key = [kind.to_be_bytes().as_slice(), b"anything"].concat();
        assert_eq!(read(Some(&key), Some(b"anything")), Ok((Key::Other(kind), Value::Other)));
        assert_eq!(read(Some(&key), None), Ok((Key::Other(kind), Value::Other)));
    }
}

#[test]
fn broken_records_are_named() {
    assert_eq!(read(None, None), Err(RecordError::NoKey));
    let key = bytes(OFFSET_KEY);
    let newer = RecordError::UnknownVersion { kind: 1, version: 5, newest: 4 };
    assert_eq!(read(Some(&key), Some(&[0, 5, 0, 0])), Err(newer));
    assert_eq!(newer.to_string(), "the value of a record of kind 1 has version 5; versions 0 to 4 are known");
    let negative = Problem::Version(-1);
    assert!(matches!(read(Some(&key), Some(&[0xff, 0xff])),
        Err(RecordError::Value { kind: 1, error }) if error.problem == negative));
    let mut negative_partition = key.clone();
    let end = negative_partition.len();
    negative_partition[end - 4..].fill(0xff);
    assert!(matches!(read(Some(&negative_partition), None), Err(RecordError::Key(error)) if error.what == "partition"));
}

/// Every prefix of a record is an error, unless it contains all fields that are read.
#[test]
fn truncated_records_are_errors() {
    let cases = [(OFFSET_KEY, OFFSETS[4]), (GROUP_KEY, GROUPS[3]), (GROUP_KEY, GROUPS[4]), (MEMBER_KEY, MEMBER)];
    for (key, value) in cases {
        let (key, value) = (bytes(key), bytes(value));
        // The last byte of a flexible group record is the count of its tagged fields. The reader does not need it.
        let needed = value.len() - usize::from(value[1] == 4 && value.last() == Some(&0));
        for length in 0..needed {
            assert!(read(Some(&key), Some(&value[..length])).is_err(), "{length} of {} bytes", value.len());
        }
        for length in 0..key.len() {
            assert!(read(Some(&key[..length]), Some(&value)).is_err(), "{length} of {} key bytes", key.len());
        }
    }
}

proptest! {
    /// No input makes the reader panic, and every borrowed slice is within the input.
    #[test]
    fn hostile_bytes_are_contained(
        kind in prop_oneof![0i16..20, any::<i16>()],
        key in proptest::collection::vec(any::<u8>(), 0..40),
        version in -1i16..6,
        value in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let key = [kind.to_be_bytes().as_slice(), &key].concat();
        let value = [version.to_be_bytes().as_slice(), &value].concat();
        if let Ok((_, read)) = read(Some(&key), Some(&value)) {
            walk(read, value.len());
        }
    }

    /// The same with one changed byte in golden bytes: the reader gets deeper into such a record than into random
    /// bytes.
    #[test]
    fn changed_records_are_contained(case in 0usize..5, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (key, value) = [
            (OFFSET_KEY, OFFSETS[4]),
            (GROUP_KEY, GROUPS[3]),
            (GROUP_KEY, GROUPS[4]),
            (MEMBER_KEY, MEMBER),
            ("0008000762696c6c696e6700026330", CURRENT),
        ][case];
        let (key, mut value) = (bytes(key), bytes(value));
        let at = at.index(value.len());
        value[at] = byte;
        if let Ok((_, read)) = read(Some(&key), Some(&value)) {
            walk(read, value.len());
        }
    }
}

/// Reads every borrowed list to its end: each must have as many items as its length.
fn walk(value: Value<'_>, limit: usize) {
    match value {
        Value::Group(group) => {
            assert!(group.members.iter().map(|member| member.subscription.len()).sum::<usize>() <= limit);
        }
        Value::Member(member) => {
            assert_eq!(member.topics.iter().count(), member.topics.len());
            assert!(member.classic.is_none_or(|classic| classic.iter().count() <= limit));
        }
        Value::Target(partitions) => {
            assert!(partitions.iter().map(|(_, numbers)| numbers.iter().count()).sum::<usize>() <= limit);
        }
        Value::Current(current) => assert!(current.assigned.iter().count() <= limit),
        Value::Matches(topics) => assert_eq!(topics.iter().count(), topics.len()),
        _ => {}
    }
}
