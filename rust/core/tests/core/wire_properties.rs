//! Properties of all bytes: reading returns the written content, and no input makes a reader panic or exceed its
//! bounds.

use std::collections::{BTreeMap, BTreeSet};

use crate::encode::{SubscriptionFields, encode_sticky, encode_stream_join};
use kafka_assignors_core::protocol::assignment::{self, Assignment};
use kafka_assignors_core::protocol::subscription::Subscription;
use kafka_assignors_core::protocol::topic_partitions::{CanonicalPartitions, TopicPartitions};
use kafka_assignors_core::protocol::user_data::{StickyUserData, StreamJoinUserData, read_cooperative_generation};
use proptest::prelude::*;

type Given = Vec<(String, Vec<i32>)>;

fn given() -> impl Strategy<Value = Given> {
    prop::collection::vec(("[a-dé]{0,3}", prop::collection::vec(prop_oneof![-1..9i32, any::<i32>()], 0..6)), 0..6)
}

fn canonical(given: &Given) -> CanonicalPartitions<'_> {
    CanonicalPartitions::new(given.iter().map(|(name, numbers)| (name.as_str(), numbers.iter().copied())))
}

fn expected(given: &Given) -> BTreeMap<Vec<u8>, Vec<i32>> {
    let mut sets: BTreeMap<Vec<u8>, BTreeSet<i32>> = BTreeMap::new();
    for (name, numbers) in given {
        sets.entry(name.clone().into_bytes()).or_default().extend(numbers);
    }
    sets.retain(|_, numbers| !numbers.is_empty());
    sets.into_iter().map(|(name, numbers)| (name, numbers.into_iter().collect())).collect()
}

/// The content that was read. It must be sorted and without duplicates, as in the canonical form.
fn read(partitions: TopicPartitions<'_>) -> BTreeMap<Vec<u8>, Vec<i32>> {
    let lists: Vec<_> = partitions.iter().map(|(name, numbers)| (name.to_vec(), numbers.iter().collect())).collect();
    assert!(lists.is_sorted_by(|a, b| a.0 < b.0));
    lists.into_iter().collect()
}

fn generation() -> impl Strategy<Value = i32> {
    prop_oneof![Just(-1), 0..9i32, Just(i32::MAX)]
}

proptest! {
    #[test]
    fn subscriptions_come_back(
        topics in prop::collection::vec("[a-dé.]{0,4}", 0..6),
        user_data in prop::option::of(prop::collection::vec(any::<u8>(), 0..9)),
        owned in given(),
        generation in generation(),
        rack in prop::option::of("[a-cé]{0,3}"),
        version in 3..=i16::MAX,
        trailing in prop::collection::vec(any::<u8>(), 0..5),
    ) {
        let names: Vec<&str> = topics.iter().map(String::as_str).collect();
        let rack = rack.as_deref();
        let fields = SubscriptionFields {
            topics: &names, user_data: user_data.as_deref(), owned: canonical(&owned), generation: Some(generation), rack,
        };
        let mut bytes = fields.encode().unwrap();
        bytes[..2].copy_from_slice(&version.to_be_bytes());
        bytes.extend(trailing);
        let subscription = Subscription::read(&bytes).unwrap();
        let sorted: BTreeSet<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        prop_assert_eq!(subscription.topics.iter().collect::<Vec<_>>(), sorted.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(subscription.user_data, user_data.as_deref().filter(|data| !data.is_empty()));
        prop_assert_eq!(read(subscription.owned), expected(&owned));
        prop_assert_eq!(subscription.generation, generation);
        prop_assert_eq!(subscription.rack, rack.filter(|rack| !rack.is_empty()).map(str::as_bytes));
        prop_assert_eq!(subscription.fault, None);

        // The reader of the next member recognises the list of topics by its bytes, and returns the same content.
        let (again, known) = Subscription::read_known(&bytes, &[subscription.topics]).unwrap();
        prop_assert_eq!((again, known), (subscription, Some(0)));
    }

    #[test]
    fn equal_content_has_equal_bytes(owned in given(), seed in any::<u64>()) {
        let mut shuffled: Given = owned.iter().flat_map(|(name, numbers)| {
            numbers.iter().map(|&number| (name.clone(), vec![number]))
        }).collect();
        shuffled.sort_by_key(|(name, numbers)| (seed ^ u64::from(numbers[0].unsigned_abs())).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(name.len() as u32));
        prop_assert_eq!(encode_sticky(&canonical(&owned), Some(3)), encode_sticky(&canonical(&shuffled), Some(3)));
    }

    #[test]
    fn assignments_come_back(given in given(), generation in prop::option::of(0..=i32::MAX)) {
        let bytes = assignment::encode(&canonical(&given), generation).unwrap();
        let assignment = Assignment::read(&bytes).unwrap();
        prop_assert_eq!(read(assignment.partitions), expected(&given));
        prop_assert_eq!(assignment.generation(), generation);
    }

    #[test]
    fn sticky_user_data_comes_back_in_all_forms(given in given(), generation in generation()) {
        let bare = encode_sticky(&canonical(&given), Some(generation)).unwrap();
        let version_0 = &bare[..bare.len() - 4];
        let prefixed = |version: i16, bytes: &[u8]| [&version.to_be_bytes(), bytes].concat();
        let forms = [
            (bare.clone(), generation), (version_0.to_vec(), -1),
            (prefixed(1, &bare), generation), (prefixed(0, version_0), -1),
        ];
        for (bytes, generation) in forms {
            let data = StickyUserData::read(Some(&bytes)).unwrap();
            prop_assert_eq!(read(data.partitions), expected(&given));
            prop_assert_eq!(data.generation, generation);
            // A cooperative assignor reads any four bytes as a generation, even those of an empty version 0.
            let generation = if bytes.len() == 4 { 0 } else { generation };
            prop_assert_eq!(read_cooperative_generation(Some(&bytes)), Ok(generation));
        }
    }

    #[test]
    fn stream_join_user_data_comes_back(numbers in prop::collection::vec(any::<i32>(), 0..9), epoch in 0..=i32::MAX) {
        let bytes = encode_stream_join(&numbers, epoch).unwrap();
        let data = StreamJoinUserData::read(Some(&bytes)).unwrap();
        let sorted: BTreeSet<i32> = numbers.into_iter().collect();
        prop_assert_eq!(data.numbers.iter().collect::<Vec<_>>(), sorted.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(data.epoch, epoch);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&bytes);
    }

    /// Small integers as lengths and counts, so that the readers get further than with arbitrary bytes.
    #[test]
    fn nearly_valid_bytes_do_no_harm(words in prop::collection::vec(prop_oneof![0..4i32, Just(-1), any::<i32>()], 0..40),
                                     cut in 0..4usize) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        read_everything(&bytes[cut.min(bytes.len())..]);
    }

    #[test]
    fn damaged_bytes_do_no_harm(
        owned in given(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let user_data = encode_sticky(&canonical(&owned), Some(5)).unwrap();
        let fields = SubscriptionFields {
            topics: &["a", "b", "c"], user_data: Some(&user_data), owned: canonical(&owned), generation: Some(5), rack: Some("r"),
        };
        for mut bytes in [fields.encode().unwrap(), user_data.clone()] {
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            read_everything(&bytes);
            read_everything(&bytes[..cut.index(bytes.len())]);
        }
    }
}

/// Every reader either refuses the bytes or returns slices inside them.
fn read_everything(bytes: &[u8]) {
    let within = |partitions: TopicPartitions<'_>| {
        let lists = partitions.iter().map(|(name, numbers)| (name.len(), numbers.iter().count()));
        let (names, numbers) = lists.fold((0, 0), |sum, list| (sum.0 + list.0, sum.1 + list.1));
        assert_eq!((partitions.iter().count(), numbers), (partitions.topics(), partitions.partitions()));
        assert!(6 * partitions.topics() + names + 4 * numbers <= bytes.len());
    };
    if let Ok(subscription) = Subscription::read(bytes) {
        assert_eq!(subscription.topics.iter().count(), subscription.topics.len());
        assert!(subscription.topics.iter().map(|name| name.len() + 2).sum::<usize>() + 6 <= bytes.len());
        within(subscription.owned);
        assert!(subscription.generation >= -1);
    }
    if let Ok(assignment) = Assignment::read(bytes) {
        within(assignment.partitions);
        assert!(assignment.generation().is_none_or(|generation| generation >= 0));
    }
    if let Ok(data) = StickyUserData::read(Some(bytes)) {
        within(data.partitions);
        assert!(data.generation >= -1);
    }
    let mut visited = 0;
    let generation =
        StickyUserData::visit_bare(bytes, |elements| visited += elements.map(|(_, n)| n.len()).sum::<usize>());
    if let Some(generation) = generation.filter(|_| !bytes.is_empty()) {
        let data = StickyUserData::read(Some(bytes)).expect("the short way reads what the long way reads");
        assert_eq!((data.partitions.partitions(), data.generation), (visited, generation));
    }
    if let Ok(data) = StreamJoinUserData::read(Some(bytes)) {
        assert!(8 + 4 * data.numbers.len() <= bytes.len() || bytes.is_empty());
        assert!(data.epoch >= 0);
    }
    assert!(read_cooperative_generation(Some(bytes)).unwrap_or(-1) >= -1);
}
