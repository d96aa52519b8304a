//! The bytes of other clients, and their decoded content.
//!
//! Vectors marked J are the output of kafka-clients, K of kafka-python 3.0.12. L follows from the published layout. The
//! bytes of this package are compared if the canonical form is the same, otherwise the decoded content.

use crate::encode::{SubscriptionFields, encode_cooperative, encode_sticky, encode_stream_join};
use kafka_assignors_core::protocol::assignment::{self, Assignment};
use kafka_assignors_core::protocol::reader::Problem;
use kafka_assignors_core::protocol::subscription::Subscription;
use kafka_assignors_core::protocol::topic_partitions::{CanonicalPartitions, TopicPartitions};
use kafka_assignors_core::protocol::user_data::{
    StickyUserData, StreamJoinUserData, UnknownForm, read_assignment_generation, read_cooperative_generation,
};
use kafka_assignors_core::protocol::writer::WriteError;

type Lists = Vec<(String, Vec<i32>)>;
/// Topics with partition numbers: the expected content, or the content to write.
type Shown<'a> = &'a [(&'a str, &'a [i32])];
/// A subscription's bytes and their content: version, owned partitions, generation, rack.
type Read<'a> = (&'a str, i16, Shown<'a>, i32, Option<&'a [u8]>);

fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn lists(partitions: TopicPartitions<'_>) -> Lists {
    let lists = partitions.iter();
    lists.map(|(name, numbers)| (String::from_utf8(name.to_vec()).unwrap(), numbers.iter().collect())).collect()
}

fn of(expected: Shown<'_>) -> Lists {
    expected.iter().map(|&(name, numbers)| (name.to_owned(), numbers.to_vec())).collect()
}

fn canonical<'a>(given: Shown<'a>) -> CanonicalPartitions<'a> {
    CanonicalPartitions::new(given.iter().map(|&(name, numbers)| (name, numbers.to_vec())))
}

const T02: Shown<'_> = &[("t", &[0, 2])];
const A1_T02: Shown<'_> = &[("a", &[1]), ("t", &[0, 2])];

#[test]
fn sticky_user_data_of_other_clients_is_read() {
    let cases: &[(&str, Shown<'_>, i32)] = &[
        ("0000000100017400000002000000000000000200000005", T02, 5), // J, version 1
        ("00000000ffffffff", &[], -1),                              // J, version 1
        ("00000001000174000000020000000000000002", T02, -1),        // J, version 0
        ("00010000000100017400000002000000000000000200000005", T02, 5), // K, prefixed version 1
        ("00010000000000000005", &[], 5),                           // L, prefixed version 1
        ("000000000001000174000000020000000000000002", T02, -1),    // K, prefixed version 0
        ("00000001000174000000020000000000000002aabb", T02, -1),    // L, version 0 and stray bytes
        ("0000000100017400000002000000000000000200000005ff", T02, 5), // L, version 1 and a stray byte
    ];
    for &(bytes, partitions, generation) in cases {
        let bytes = hex(bytes);
        let data = StickyUserData::read(Some(&bytes)).unwrap();
        assert_eq!((lists(data.partitions), data.generation), (of(partitions), generation), "{bytes:02x?}");
    }
}

#[test]
fn unreadable_sticky_user_data_is_reported() {
    for bytes in ["00", "00000001", "ffffffff00000001"] {
        let bytes = hex(bytes);
        assert_eq!(StickyUserData::read(Some(&bytes)), Err(UnknownForm(bytes.len())));
    }
}

#[test]
fn no_sticky_user_data_is_no_history() {
    for nothing in [None, Some(&[][..])] {
        let data = StickyUserData::read(nothing).unwrap();
        assert!(data.partitions.is_empty());
        assert_eq!(data.generation, -1);
    }
}

#[test]
fn sticky_user_data_is_written_as_java_writes_it() {
    let bytes = encode_sticky(&canonical(&[("t", &[2, 0, 2])]), Some(5)).unwrap();
    assert_eq!(bytes, hex("0000000100017400000002000000000000000200000005"));
    assert_eq!(encode_sticky(&canonical(&[("t", &[])]), None).unwrap(), hex("00000000ffffffff"));
    assert_eq!(encode_sticky(&canonical(&[]), Some(-7)).unwrap(), hex("00000000ffffffff"));
}

#[test]
fn a_topic_may_come_in_several_elements() {
    let bytes = hex("00000002000174000000010000000000017400000001000000020000000a");
    let data = StickyUserData::read(Some(&bytes)).unwrap();
    assert_eq!(lists(data.partitions), of(&[("t", &[0]), ("t", &[2])]));
    assert_eq!((data.partitions.topics(), data.partitions.partitions(), data.generation), (2, 2, 10));
}

#[test]
fn cooperative_user_data_of_other_clients_is_read() {
    let cases: &[(Option<&str>, Result<i32, UnknownForm>)] = &[
        (Some("00000007"), Ok(7)),                                           // J
        (Some("ffffffff"), Ok(-1)),                                          // J, before the first assignment
        (Some("80000000"), Ok(-1)),                                          // L, any negative is absent
        (None, Ok(-1)),                                                      // J, before 2021
        (Some(""), Ok(-1)),                                                  // K
        (Some("0000000100017400000002000000000000000200000005"), Ok(5)),     // librdkafka, franz-go
        (Some("00000001000174000000020000000000000002"), Ok(-1)),            // L, without a generation
        (Some("00010000000100017400000002000000000000000200000005"), Ok(5)), // L, prefixed
        (Some("000000"), Err(UnknownForm(3))),                               // J: shorter than four bytes
        (Some("0000000700"), Err(UnknownForm(5))),                           // L, no form takes all
    ];
    for &(bytes, expected) in cases {
        let bytes = bytes.map(hex);
        assert_eq!(read_cooperative_generation(bytes.as_deref()), expected, "{bytes:02x?}");
    }
    assert_eq!(encode_cooperative(Some(7)).to_vec(), hex("00000007"));
    assert_eq!(encode_cooperative(None).to_vec(), hex("ffffffff"));
}

#[test]
fn stream_join_user_data_has_the_layout_of_the_kip_author() {
    let bytes = hex("00000002000000000000000300000007");
    let data = StreamJoinUserData::read(Some(&bytes)).unwrap();
    assert_eq!((data.numbers.iter().collect::<Vec<_>>(), data.epoch), (vec![0, 3], 7));
    assert_eq!(encode_stream_join(&[3, 0, 3], 7).unwrap(), bytes);
    assert_eq!(encode_stream_join(&[], 0).unwrap(), hex("0000000000000000"));
    for (nothing, epoch) in [(None, 0), (Some(""), 0), (Some("0000000000000000"), 0), (Some("00000000fffffffe"), 0)] {
        let nothing = nothing.map(hex);
        let data = StreamJoinUserData::read(nothing.as_deref()).unwrap();
        assert_eq!((data.numbers.is_empty(), data.epoch), (true, epoch));
    }
    for unreadable in ["00000001", "0000000100000000", "ffffffff00000000", "00"] {
        let bytes = hex(unreadable);
        assert_eq!(StreamJoinUserData::read(Some(&bytes)), Err(UnknownForm(bytes.len())));
    }
}

#[test]
fn an_assignment_s_user_data_is_a_generation() {
    assert_eq!(read_assignment_generation(Some(&hex("00000008"))), Some(8));
    assert_eq!(read_assignment_generation(Some(&hex("00000008ff"))), Some(8));
    assert_eq!(read_assignment_generation(Some(&hex("ffffffff"))), None);
    assert_eq!(read_assignment_generation(Some(&hex("000008"))), None);
    assert_eq!(read_assignment_generation(None), None);
}

const V0: &str = "000000000002000161000174000000020102";
const V1: &str = "000100000002000161000174000000020102000000020001610000000100000001000174000000020000000000000002";
const V2: &str =
    "00020000000200016100017400000002010200000002000161000000010000000100017400000002000000000000000200000005";
const V3: &str =
    "0003000000020001610001740000000201020000000200016100000001000000010001740000000200000000000000020000000500027231";

#[test]
fn subscriptions_of_all_versions_are_read() {
    let versions: [Read<'_>; 5] = [
        (V0, 0, &[], -1, None),          // J K
        (V1, 1, A1_T02, -1, None),       // K
        (V2, 2, A1_T02, 5, None),        // K
        (V3, 3, A1_T02, 5, Some(b"r1")), // J K
        // L: an unknown newer version reads as the newest known, whatever follows
        (&format!("0009{}ffff", &V3[4..]), 9, A1_T02, 5, Some(b"r1")),
    ];
    for (bytes, version, owned, generation, rack) in versions {
        let bytes = hex(bytes);
        let read = Subscription::read(&bytes).unwrap();
        assert_eq!((read.version, read.fault), (version, None));
        assert_eq!(read.topics.iter().collect::<Vec<_>>(), [b"a", b"t"]);
        assert_eq!(read.user_data, Some(&[1, 2][..]));
        assert_eq!((lists(read.owned), read.generation, read.rack), (of(owned), generation, rack));
    }
}

#[test]
fn subscriptions_are_written_as_java_writes_them() {
    let all = SubscriptionFields {
        topics: &["t", "a", "t"],
        user_data: Some(&[1, 2]),
        owned: canonical(&[("t", &[2, 0]), ("a", &[1])]),
        generation: Some(5),
        rack: Some("r1"),
    };
    assert_eq!(all.encode().unwrap(), hex(V3));
    let least = hex("000300000001000174ffffffff00000000ffffffffffff"); // K
    assert_eq!(SubscriptionFields { topics: &["t"], ..Default::default() }.encode().unwrap(), least);
    let same = SubscriptionFields { topics: &["t"], generation: Some(-9), rack: Some(""), ..Default::default() };
    assert_eq!(same.encode().unwrap(), least);
    let read = Subscription::read(&least).unwrap();
    assert_eq!((read.user_data, read.owned.is_empty(), read.generation, read.rack), (None, true, -1, None));
}

#[test]
fn a_field_that_its_version_promises_may_be_missing() {
    for version in ["0001", "0002", "0003", "7fff"] {
        let bytes = hex(&format!("{version}{}", &V0[4..]));
        let read = Subscription::read(&bytes).unwrap();
        assert_eq!((read.fault, read.user_data), (None, Some(&[1, 2][..])));
        assert_eq!((lists(read.owned), read.generation, read.rack), (vec![], -1, None));
    }
    let without_rack = hex(&format!("0003{}", &V2[4..]));
    assert_eq!(Subscription::read(&without_rack).unwrap().generation, 5);
}

#[test]
fn a_damaged_later_field_costs_itself_and_what_follows() {
    // Cut the bytes inside each field: the fields before the cut are read.
    let bytes = hex(V3);
    for length in 12..bytes.len() {
        let read = Subscription::read(&bytes[..length]).unwrap();
        let field = match length {
            12..18 => Some("user_data"),
            18 | 48 | 52 => None, // between two fields
            19..48 => Some("owned_partitions"),
            49..52 => Some("generation_id"),
            _ => Some("rack_id"),
        };
        assert_eq!(read.fault.map(|fault| fault.what), field, "{length}");
        assert_eq!(read.topics.len(), 2);
        assert_eq!(read.user_data, (length >= 18).then_some(&[1, 2][..]));
        assert_eq!(lists(read.owned), if length >= 48 { of(A1_T02) } else { vec![] });
        assert_eq!((read.generation, read.rack), (if length >= 52 { 5 } else { -1 }, None));
    }
    for length in 0..12 {
        assert_eq!(
            Subscription::read(&bytes[..length]).unwrap_err().what,
            if length < 2 { "version" } else { "topics" }
        );
    }
}

#[test]
fn impossible_versions_and_counts_are_errors() {
    let error = Subscription::read(&hex("ffff00000000ffffffff")).unwrap_err();
    assert_eq!((error.what, error.at, error.problem), ("version", 0, Problem::Version(-1)));
    assert_eq!(error.to_string(), "cannot read version at byte 0: version -1 does not exist");
    for (bytes, count) in [("0000ffffffff", -1), ("00007fffffff0000", 0x7fff_ffff), ("000000000002000000", 2)] {
        let error = Subscription::read(&hex(bytes)).unwrap_err();
        assert_eq!((error.what, error.at, error.problem), ("topics", 2, Problem::Length(count)));
    }
    assert_eq!(Assignment::read(&[]).unwrap_err().what, "version");
    assert_eq!(Assignment::read(&hex("ffff00000000ffffffff")).unwrap_err().problem, Problem::Version(-1));
    let negative = Assignment::read(&hex("000000000001000174ffffffffffffffff")).unwrap_err();
    assert_eq!((negative.what, negative.problem), ("assigned_partitions", Problem::Length(-1)));
}

#[test]
fn assignments_are_read_and_written() {
    let java = hex("0003000000020001740000000200000002000000000001610000000100000001ffffffff"); // J K
    let read = Assignment::read(&java).unwrap();
    assert_eq!(lists(read.partitions), of(&[("t", &[2, 0]), ("a", &[1])]));
    assert_eq!((read.version, read.user_data, read.fault, read.generation()), (3, None, None, None));

    let ours = hex("0003000000020001610000000100000001000174000000020000000000000002ffffffff");
    assert_eq!(assignment::encode(&canonical(&[("t", &[2, 0]), ("a", &[1])]), None).unwrap(), ours);
    let ours = assignment::encode(&canonical(&[]), Some(8)).unwrap();
    assert_eq!(ours, hex("0003000000000000000400000008"));
    assert_eq!(Assignment::read(&ours).unwrap().generation(), Some(8));

    let cut = Assignment::read(&java[..java.len() - 1]).unwrap();
    assert_eq!((lists(cut.partitions).len(), cut.fault.unwrap().what), (2, "user_data"));
}

#[test]
fn a_string_that_is_too_long_is_refused() {
    let (longest, longer) = ("x".repeat(32_767), "x".repeat(32_768));
    assert!(SubscriptionFields { topics: &[&longest], ..Default::default() }.encode().is_ok());
    let error = SubscriptionFields { topics: &[&longer], ..Default::default() }.encode().unwrap_err();
    assert_eq!(error, WriteError::LongString { what: "topic", length: 32_768 });
    assert_eq!(encode_sticky(&canonical(&[(&longer, &[0])]), None).unwrap_err(), error);
    assert_eq!(assignment::encode(&canonical(&[(&longer, &[0])]), None).unwrap_err(), error);
    let rack = SubscriptionFields { rack: Some(&longer), ..Default::default() }.encode().unwrap_err();
    assert_eq!(rack, WriteError::LongString { what: "rack_id", length: 32_768 });
}
