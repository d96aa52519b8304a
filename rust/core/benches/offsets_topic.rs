//! How fast the records of `__consumer_offsets` are decoded: offset commits, and group metadata with its members'
//! subscriptions, user data and assignments. `cargo bench --package kafka-assignors-core --bench offsets_topic`
//!
//! Prints JSON: for each kind the seconds on the given number of threads, with the records and bytes, and the seconds of the
//! floor, which reads every byte once. Seconds are the least of several rounds.

#[path = "../tests/encode/mod.rs"]
mod encode;

use std::hint::black_box;
use std::time::Instant;

use encode::{SubscriptionFields, bytes, encode_sticky, string};
use kafka_assignors_core::offsets_topic::{Value, read};
use kafka_assignors_core::protocol::Utf8;
use kafka_assignors_core::protocol::assignment::{self, Assignment};
use kafka_assignors_core::protocol::subscription::Subscription;
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::protocol::user_data::StickyUserData;

const THREADS: usize = 2;
const ROUNDS: usize = 7;
const COMMITS: usize = 1_000_000;
const GROUPS: usize = 400;
const MEMBERS: i32 = 50;
const PARTITIONS: i32 = 3_000;

/// Keys and values in one slab, as a record batch has them.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    /// Where each key ends, and each value.
    ends: Vec<(usize, usize)>,
}

impl Records {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn part(&self, part: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        let from = part * self.ends.len() / THREADS;
        let to = (part + 1) * self.ends.len() / THREADS;
        (from..to).map(|at| {
            let start = if at == 0 { 0 } else { self.ends[at - 1].1 };
            let (key_end, end) = self.ends[at];
            (&self.bytes[start..key_end], &self.bytes[key_end..end])
        })
    }
}

fn commits() -> Records {
    let mut records = Records::default();
    for number in 0..COMMITS {
        let mut key = 1i16.to_be_bytes().to_vec();
        string(&mut key, &format!("orders-service-{:04}", number % 2_000));
        string(&mut key, &format!("commerce.orders.{:03}", number % 300));
        key.extend((number as i32 % 64).to_be_bytes());
        // Half of the records have the form that brokers write today, half an older one.
        let flexible = number % 2 == 0;
        let mut value = (if flexible { 4i16 } else { 3i16 }).to_be_bytes().to_vec();
        value.extend((number as i64).to_be_bytes());
        value.extend(5i32.to_be_bytes());
        if flexible {
            value.push(1);
        } else {
            string(&mut value, "");
        }
        value.extend(1_700_000_000_000i64.to_be_bytes());
        if flexible {
            value.extend([1, 0, 16]);
            value.extend([7; 16]);
        }
        records.push(&key, &value);
    }
    records
}

fn groups() -> Records {
    let mut records = Records::default();
    for number in 0..GROUPS {
        let mut key = 2i16.to_be_bytes().to_vec();
        string(&mut key, &format!("orders-service-{number:04}"));
        let mut value = 3i16.to_be_bytes().to_vec();
        string(&mut value, "consumer");
        value.extend((number as i32 + 1).to_be_bytes());
        string(&mut value, "sticky");
        string(&mut value, "member-00");
        value.extend(1_700_000_000_000i64.to_be_bytes());
        value.extend(MEMBERS.to_be_bytes());
        for member in 0..MEMBERS {
            let own = (0..PARTITIONS).filter(|partition| partition % MEMBERS == member);
            let owned = CanonicalPartitions::new([("commerce.orders", own.collect::<Vec<_>>())]);
            let user_data = encode_sticky(&owned, Some(number as i32)).expect("short names");
            let fields =
                SubscriptionFields { topics: &["commerce.orders"], user_data: Some(&user_data), ..Default::default() };
            string(&mut value, &format!("member-{member:02}"));
            value.extend((-1i16).to_be_bytes());
            string(&mut value, "consumer-orders-service");
            string(&mut value, "/10.0.0.1");
            value.extend(300_000i32.to_be_bytes());
            value.extend(45_000i32.to_be_bytes());
            bytes(&mut value, &fields.encode().expect("short names"));
            bytes(&mut value, &assignment::encode(&owned, None).expect("short names"));
        }
        records.push(&key, &value);
    }
    records
}

/// Reads every field of the pipeline's tables. The sum keeps the compiler from leaving the work out.
fn decode(key: &[u8], value: &[u8]) -> i64 {
    match read(Some(key), Some(value)).expect("records as brokers write them") {
        (key, Value::OffsetCommit(commit)) => {
            commit.offset + commit.commit_timestamp + key.group().map_or(0, Utf8::len) as i64
        }
        (_, Value::Group(group)) => {
            let mut sum = i64::from(group.generation);
            for member in group.members.iter() {
                let subscription = Subscription::read(member.subscription).expect("a subscription");
                sum += subscription.topics.iter().map(<[u8]>::len).sum::<usize>() as i64;
                let history = StickyUserData::read(subscription.user_data).expect("a sticky history");
                sum += i64::from(history.generation);
                sum += history.partitions.iter().flat_map(|(_, numbers)| numbers).map(i64::from).sum::<i64>();
                let assignment = Assignment::read(member.assignment).expect("an assignment");
                sum += assignment.partitions.iter().flat_map(|(_, numbers)| numbers).map(i64::from).sum::<i64>();
            }
            sum
        }
        (key, value) => panic!("{key:?}: {value:?}"),
    }
}

fn floor(key: &[u8], value: &[u8]) -> i64 {
    key.iter().chain(value).map(|&byte| i64::from(byte)).sum()
}

/// The least number of seconds of several rounds.
fn seconds(records: &Records, each: impl Fn(&[u8], &[u8]) -> i64 + Sync) -> f64 {
    let round = || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for part in 0..THREADS {
                let each = &each;
                scope.spawn(move || black_box(records.part(part).map(|(key, value)| each(key, value)).sum::<i64>()));
            }
        });
        start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let kinds = [("offset commits", commits()), ("group metadata", groups())].map(|(name, records)| {
        let (decoded, read_once) = (seconds(&records, decode), seconds(&records, floor));
        format!(
            "{name:?}: {{\"records\": {}, \"bytes\": {}, \"seconds\": {decoded}, \"floor_seconds\": {read_once}}}",
            records.ends.len(),
            records.bytes.len()
        )
    });
    println!("{{\"threads\": {THREADS}, {}}}", kinds.join(", "));
}
