//! From JoinGroup's bytes to SyncGroup's.

use std::collections::{BTreeMap, BTreeSet};

use crate::encode::{SubscriptionFields, bytes, encode_cooperative, encode_sticky, string};
use kafka_assignors_core::planning::group::{Group, NONE, TopicSpec, Topics};
use kafka_assignors_core::planning::leader::{
    Assignments, ClaimSource, Fault, FaultReason, HOST_ALLOWANCE, JoinedMember, Performed, codec_floor,
    perform_assignment, read_group, record_bytes, record_bytes_of_plan, write_assignments,
};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::plan::Plan;
use kafka_assignors_core::planning::strategy::Strategy;
use kafka_assignors_core::protocol::assignment::{self, Assignment};
use kafka_assignors_core::protocol::record_batch::DEFAULT_RECORD_LIMIT;
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::protocol::writer::WriteError;
use kafka_assignors_core::verify::verify_outcome;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::{Just, Strategy as _};

const OBJECTIVE: Objective = Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness };
const STICKY: Strategy = Strategy::Sticky(OBJECTIVE);
const COOPERATIVE: Strategy = Strategy::CooperativeSticky(OBJECTIVE);

fn topics(counts: &[(&str, i64)]) -> Topics {
    Topics::new(counts.iter().map(|&(name, partitions)| TopicSpec { name, partitions, racks: None }).collect()).unwrap()
}

fn member<'a>(id: &'a str, metadata: &'a [u8]) -> JoinedMember<'a> {
    JoinedMember { id, instance_id: None, metadata }
}

type Claims<'a> = &'a [(&'a str, &'a [i32])];

fn canonical<'a>(claims: Claims<'a>) -> CanonicalPartitions<'a> {
    CanonicalPartitions::new(claims.iter().map(|&(topic, numbers)| (topic, numbers.to_vec())))
}

fn sticky(topics: &[&str], claims: Claims<'_>, generation: Option<i32>) -> Vec<u8> {
    let user_data = encode_sticky(&canonical(claims), generation).unwrap();
    SubscriptionFields { topics, user_data: Some(&user_data), ..Default::default() }.encode().unwrap()
}

fn cooperative(topics: &[&str], claims: Claims<'_>, generation: Option<i32>, user_data: Option<&[u8]>) -> Vec<u8> {
    SubscriptionFields { topics, owned: canonical(claims), generation, user_data, rack: None }.encode().unwrap()
}

fn shown(bytes: &[u8]) -> String {
    let assignment = Assignment::read(bytes).unwrap();
    let lists = assignment.partitions.iter().map(|(name, numbers)| {
        format!("{}{:?}", std::str::from_utf8(name).unwrap(), numbers.iter().collect::<Vec<_>>())
    });
    lists.collect::<Vec<_>>().join(" ")
}

fn all_shown(performed: &Performed) -> Vec<String> {
    performed.assignments.iter().map(shown).collect()
}

fn claims(group: &Group, member: u32) -> Vec<(&str, u32)> {
    let claims = group.claims(member).iter().map(|&partition| group.topics().locate(partition));
    claims.map(|(topic, number)| (group.topics().names().get(topic), number)).collect()
}

#[test]
fn bytes_to_bytes() {
    let (b, a) = (sticky(&["t", "u"], &[("t", &[1, 3])], Some(4)), sticky(&["t"], &[("t", &[0])], Some(4)));
    let members = [member("m-b", &b), member("m-a", &a)];
    let performed = perform_assignment(&members, topics(&[("u", 1), ("t", 4), ("v", 2)]), STICKY, None).unwrap();
    assert_eq!(performed.order, [1, 0]);
    assert_eq!(performed.faults, []);
    assert_eq!(performed.generation, Some(5));
    assert_eq!(all_shown(&performed), ["t[0, 2]", "t[1, 3] u[0]"]);
    let bytes = assignment::encode(&canonical(&[("t", &[0, 2])]), Some(5)).unwrap();
    assert_eq!(performed.assignments.get(0), bytes);
    assert_eq!(performed.outcome.kept_and_moved(), (3, 0));
    assert_eq!(performed.assignments.len(), 2);
    assert_eq!(performed.assignments.bytes(), performed.assignments.iter().map(<[u8]>::len).sum::<usize>());
}

#[test]
fn the_generation_is_the_one_being_formed_where_it_is_known() {
    let generation = |newest, strategy, forming| {
        let metadata = sticky(&["t"], &[("t", &[0])], Some(newest));
        let members = [member("m", &metadata)];
        let performed = perform_assignment(&members, topics(&[("t", 1)]), strategy, forming).unwrap();
        assert_eq!(Assignment::read(performed.assignments.get(0)).unwrap().generation(), performed.generation);
        performed.generation
    };
    assert_eq!(generation(4, STICKY, Some(9)), Some(9));
    assert_eq!(generation(4, STICKY, None), Some(5));
    assert_eq!(generation(4, STICKY, Some(-1)), Some(5), "a negative one is not known");
    assert_eq!(generation(4, Strategy::Range, Some(9)), None);
    assert_eq!(generation(4, Strategy::RoundRobin, None), None);
    // The cooperative assignor reads sticky user data for its generation where the field is missing.
    assert_eq!(generation(4, COOPERATIVE, None), Some(5));
    // The largest generation cannot be claimed, so it is not written. Otherwise all claims of the next rebalance would be false.
    assert_eq!(generation(i32::MAX - 1, STICKY, None), Some(0));
    assert_eq!(generation(i32::MAX, STICKY, None), Some(0), "a false claim is no newest one");
}

#[test]
fn a_claim_of_the_last_generation_there_could_be_is_false_where_the_groups_own_is_unknown() {
    let (liar, owner) = (sticky(&["t"], &[("t", &[0, 1])], Some(i32::MAX)), sticky(&["t"], &[("t", &[0, 1])], Some(6)));
    let members = [member("liar", &liar), member("owner", &owner)];
    let performed = perform_assignment(&members, topics(&[("t", 2)]), STICKY, None).unwrap();
    assert_eq!(performed.outcome.ownership.owner, [1, 1]);
    assert_eq!(performed.generation, Some(7));
    let held = |id, generation| (id, cooperative(&["t"], &[("t", &[0, 1])], Some(generation), None));
    let (liar, owner) = (held("liar", i32::MAX), held("owner", 6));
    let members = [member(liar.0, &liar.1), member(owner.0, &owner.1)];
    let performed = perform_assignment(&members, topics(&[("t", 2)]), COOPERATIVE, None).unwrap();
    assert_eq!(performed.outcome.ownership.held, [1, 1]);
    assert_eq!(performed.generation, Some(7));
}

#[test]
fn a_claim_that_is_not_older_than_the_forming_generation_does_not_count() {
    let (liar, owner) = (sticky(&["t"], &[("t", &[0, 1])], Some(7)), sticky(&["t"], &[("t", &[0, 1])], Some(6)));
    let members = [member("liar", &liar), member("owner", &owner), member("third", &liar)];
    let performed = perform_assignment(&members[..2], topics(&[("t", 2)]), STICKY, Some(7)).unwrap();
    assert_eq!(performed.outcome.ownership.owner, [1, 1]);
}

#[test]
fn sticky_trusts_user_data_alone() {
    let user_data = encode_sticky(&canonical(&[("t", &[0])]), Some(3)).unwrap();
    let metadata = cooperative(&["t"], &[("t", &[1])], Some(9), Some(&user_data));
    let joined = read_group(&[member("m", &metadata)], topics(&[("t", 2)]), ClaimSource::Sticky);
    assert_eq!((claims(&joined.group, 0), joined.group.generations()), (vec![("t", 0)], &[3][..]));
    assert_eq!(joined.max_generation, 3);
}

#[test]
fn cooperative_trusts_owned_partitions_and_the_field_before_the_user_data() {
    let sticky_form = encode_sticky(&canonical(&[("t", &[0])]), Some(3)).unwrap();
    let java_form = encode_cooperative(Some(4));
    for (field, user_data, generation) in [
        (Some(9), Some(&java_form[..]), 9),
        (Some(0), Some(&java_form), 0),
        (None, Some(&java_form), 4),
        (None, Some(&sticky_form), 3),
        (None, None, -1),
        (Some(9), Some(b"unreadable"), 9),
    ] {
        let metadata = cooperative(&["t"], &[("t", &[1])], field, user_data);
        let joined = read_group(&[member("m", &metadata)], topics(&[("t", 2)]), ClaimSource::Cooperative);
        assert_eq!((claims(&joined.group, 0), joined.group.generations()), (vec![("t", 1)], &[generation][..]));
        assert_eq!(joined.faults, []);
    }
    let metadata = cooperative(&["t"], &[("t", &[1])], None, Some(b"unreadable"));
    let joined = read_group(&[member("m", &metadata)], topics(&[("t", 2)]), ClaimSource::Cooperative);
    assert_eq!((claims(&joined.group, 0), joined.group.generations()), (vec![("t", 1)], &[-1][..]));
    assert_eq!(joined.faults.len(), 1);
}

#[test]
fn range_and_round_robin_have_no_memory() {
    let metadata = sticky(&["t"], &[("t", &[0])], Some(3));
    let joined = read_group(&[member("m", &metadata)], topics(&[("t", 2)]), ClaimSource::None);
    assert_eq!((joined.group.claims(0).len(), joined.max_generation), (0, -1));
    assert_eq!(ClaimSource::of(Strategy::Range), ClaimSource::None);
    assert_eq!(ClaimSource::of(Strategy::RoundRobin), ClaimSource::None);
}

#[test]
fn claims_that_nobody_can_have_are_left_out() {
    let metadata = sticky(&["t"], &[("gone", &[0]), ("t", &[-1, 0, 1, 2, i32::MAX]), ("u", &[0])], Some(1));
    let joined = read_group(&[member("m", &metadata)], topics(&[("t", 2), ("u", 1)]), ClaimSource::Sticky);
    assert_eq!(claims(&joined.group, 0), [("t", 0), ("t", 1), ("u", 0)], "an unsubscribed one is for settling to drop");
    assert_eq!(joined.faults, []);
}

#[test]
fn only_claims_of_subscribed_topics_count() {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    let counts = NAMES.map(|name| (name, 1));
    // All orders of up to three claims.
    let mut orders: Vec<Vec<usize>> = vec![vec![]];
    for at in 0.. {
        let Some(order) = orders.get(at).cloned() else { break };
        let longer = (0..NAMES.len()).filter(|topic| order.len() < 3 && !order.contains(topic));
        orders.extend(longer.map(|topic| [order.as_slice(), &[topic]].concat()));
    }
    assert_eq!(orders.len(), 1 + 5 + 20 + 60);
    for subscribed in 0u32..1 << NAMES.len() {
        let reads = |topic: &usize| subscribed >> topic & 1 == 1;
        let names: Vec<&str> = (0..NAMES.len()).filter(reads).map(|topic| NAMES[topic]).collect();
        for order in &orders {
            // `encode_sticky` would sort the claims.
            let mut user_data = (order.len() as i32).to_be_bytes().to_vec();
            for &topic in order {
                string(&mut user_data, NAMES[topic]);
                user_data.extend([1i32, 0].map(i32::to_be_bytes).concat());
            }
            user_data.extend(1i32.to_be_bytes());
            let metadata = SubscriptionFields { topics: &names, user_data: Some(&user_data), ..Default::default() };
            let metadata = metadata.encode().unwrap();
            let performed = perform_assignment(&[member("m", &metadata)], topics(&counts), STICKY, None).unwrap();
            let owned = (0..NAMES.len()).filter(|&topic| performed.outcome.ownership.owner[topic] != NONE);
            let wanted = (0..NAMES.len()).filter(|topic| reads(topic) && order.contains(topic));
            assert_eq!(owned.collect::<Vec<_>>(), wanted.collect::<Vec<_>>(), "{names:?}, claims {order:?}");
        }
    }
}

#[test]
fn a_bad_member_costs_itself_only() {
    let good = sticky(&["t"], &[("t", &[0, 1])], Some(2));
    let bad_user_data =
        SubscriptionFields { topics: &["t"], user_data: Some(b"?"), ..Default::default() }.encode().unwrap();
    let cut = &good[..good.len() - 3];
    let mut hostile = good.clone();
    hostile[2..6].copy_from_slice(&i32::MAX.to_be_bytes());
    let first = sticky(&["t"], &[("t", &[2])], Some(2));
    let members = [
        member("e-hostile", &hostile),
        member("b-bad-user-data", &bad_user_data),
        member("a-good", &good),
        member("d-empty", &[]),
        member("c-cut", cut),
        member("c-first", &first),
        member("c-first", &good),
    ];
    let performed = perform_assignment(&members, topics(&[("t", 8)]), STICKY, None).unwrap();
    assert_eq!(performed.order, [2, 1, 4, 5, 3, 0]);
    let [good, bad_user_data, cut, first, empty, hostile] = &all_shown(&performed)[..] else { panic!("six members") };
    assert!(good.starts_with("t[0") && first.contains('2'), "{good} {first}");
    assert!(!bad_user_data.is_empty() && !cut.is_empty());
    assert_eq!((empty.as_str(), hostile.as_str()), ("", ""));
    let faults: Vec<String> = performed.faults.iter().map(Fault::to_string).collect();
    assert_eq!(
        faults,
        [
            "member \"e-hostile\": its subscription is unreadable, so it gets no partitions: \
         cannot read topics at byte 2: length 2147483647 is impossible here",
            "member \"b-bad-user-data\": it counts as without history: \
         the user data of 1 bytes has no form that this assignor knows",
            "member \"d-empty\": its subscription is unreadable, so it gets no partitions: \
         cannot read version at byte 0: the input ends too early",
            "member \"c-cut\": its subscription is damaged, so the damaged field and all after it are ignored: \
         cannot read generation_id at byte 40: the input ends too early",
            "member \"c-first\": it is listed twice; the first entry counts",
        ]
    );
    assert_eq!(performed.faults.iter().map(|fault| fault.position).collect::<Vec<_>>(), [0, 1, 3, 4, 6]);
    assert_eq!(performed.faults[4].reason, FaultReason::DuplicateId);
    let certificate = verify_outcome(&performed.group, STICKY.rules(), performed.forming, &performed.outcome);
    assert_eq!(certificate.map(|it| it.is_optimal()), Ok(true));
}

#[test]
fn nobody_and_nothing() {
    let performed = perform_assignment(&[], topics(&[("t", 3)]), STICKY, None).unwrap();
    assert!(performed.assignments.is_empty());
    assert_eq!(performed.outcome.plan.owner, [NONE; 3]);
    let metadata = sticky(&[], &[], None);
    let performed = perform_assignment(&[member("m", &metadata)], topics(&[]), COOPERATIVE, None).unwrap();
    assert_eq!(performed.assignments.get(0), assignment::encode(&canonical(&[]), Some(0)).unwrap());
}

#[test]
fn racks_and_instance_ids_are_read() {
    let racks = |rack| SubscriptionFields { topics: &["t"], rack, ..Default::default() }.encode().unwrap();
    let (a, b, none) = (racks(Some("a")), racks(Some("elsewhere")), racks(None));
    let static_member = JoinedMember { id: "m2", instance_id: Some("i"), metadata: &b };
    let members = [member("m1", &a), static_member, member("m3", &none)];
    let spec = TopicSpec { name: "t", partitions: 1, racks: Some([vec!["a"]].into_iter().collect()) };
    let joined = read_group(&members, Topics::new(vec![spec]).unwrap(), ClaimSource::Sticky);
    let names = joined.group.topics().racks().names.names();
    let [first, second, third] = joined.group.racks() else { panic!("three members") };
    assert_eq!((names.get(*first), names.get(*second), *third), ("a", "elsewhere", NONE));
    assert_eq!([0, 1, 2].map(|m| joined.group.instance_id(m)), [None, Some("i"), None]);
}

#[test]
fn an_assigned_name_that_the_protocol_cannot_carry_is_refused() {
    let long = "x".repeat(32_768);
    let group = |assigned: u32| {
        let joined = read_group(
            &[member("m", &sticky(&["t"], &[], None))],
            topics(&[("t", 1), (&long, 1)]),
            ClaimSource::Sticky,
        );
        write_assignments(&joined.group, &Plan { owner: vec![0, assigned] }, None)
    };
    assert!(group(NONE).is_ok());
    assert_eq!(group(0).unwrap_err(), WriteError::LongString { what: "topic", length: 32_768 });
}

/// A group's record as the broker writes it, byte by byte: GroupMetadataValue version 3 in a batch of one record.
fn record(group_id: &str, members: &[(JoinedMember<'_>, &str, &str, &[u8])]) -> Vec<u8> {
    let mut key = vec![0, 2];
    string(&mut key, group_id);
    let mut value = vec![0, 3];
    string(&mut value, "consumer");
    value.extend(1i32.to_be_bytes());
    string(&mut value, "cooperative-sticky-join");
    string(&mut value, members.iter().map(|(member, ..)| member.id).max_by_key(|id| id.len()).unwrap_or_default());
    value.extend(0i64.to_be_bytes());
    value.extend((members.len() as i32).to_be_bytes());
    for (member, client_id, host, assignment) in members {
        string(&mut value, member.id);
        match member.instance_id {
            Some(id) => string(&mut value, id),
            None => value.extend((-1i16).to_be_bytes()),
        }
        string(&mut value, client_id);
        string(&mut value, host);
        value.extend(300_000i32.to_be_bytes());
        value.extend(45_000i32.to_be_bytes());
        bytes(&mut value, member.metadata);
        bytes(&mut value, assignment);
    }
    fn varint(out: &mut Vec<u8>, value: usize) {
        let mut zigzag = value << 1;
        while zigzag >= 0x80 {
            out.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        out.push(zigzag as u8);
    }
    let mut body = vec![0, 0, 0];
    varint(&mut body, key.len());
    body.extend(key);
    varint(&mut body, value.len());
    body.extend(value);
    body.push(0);
    let mut batch = vec![0; 61];
    varint(&mut batch, body.len());
    batch.extend(body);
    batch
}

#[test]
fn the_record_s_size_is_that_of_the_broker_s_record() {
    let uuid = "-1b4e28ba-2fa1-11d2-883f-0016d3cca427";
    let metadata: Vec<Vec<u8>> = (0..40).map(|i| sticky(&["t", "u"], &[("t", &[i])], Some(2))).collect();
    let ids: Vec<String> = (0..40).map(|i| format!("client-{i}{uuid}")).collect();
    let members: Vec<JoinedMember<'_>> = (0..40)
        .map(|i| JoinedMember { id: &ids[i], instance_id: (i % 2 == 0).then_some("instance"), metadata: &metadata[i] })
        .collect();
    let performed = perform_assignment(&members, topics(&[("t", 500), ("u", 70)]), STICKY, None).unwrap();
    let host = "/192.168.100.100";
    assert_eq!(host.len() as u64, HOST_ALLOWANCE);
    let rows: Vec<_> = performed
        .order
        .iter()
        .zip(performed.assignments.iter())
        .map(|(&position, assignment)| {
            let member = members[position as usize];
            let client_id = if member.instance_id.is_some() {
                "a-client-id-of-24-bytes."
            } else {
                member.id.strip_suffix(uuid).unwrap()
            };
            (member, client_id, host, assignment)
        })
        .collect();
    let exact = record(&"g".repeat(64), &rows).len() as u64;
    // The three variable-length integers are counted with five bytes each.
    assert!((exact..exact + 12).contains(&performed.record_bytes), "{exact} {}", performed.record_bytes);
}

#[test]
fn about_130_000_partitions_fit_the_default_record() {
    let ids: Vec<String> = (0..10).map(|i| format!("m{i}")).collect();
    let metadata = sticky(&["t"], &[], None);
    let members: Vec<JoinedMember<'_>> = ids.iter().map(|id| member(id, &metadata)).collect();
    let record = |partitions, strategy| {
        let performed = perform_assignment(&members, topics(&[("t", partitions)]), strategy, None).unwrap();
        record_bytes_of_plan(&performed.group, &performed.outcome.plan, strategy)
    };
    for strategy in [STICKY, COOPERATIVE] {
        assert!(record(130_000, strategy) < DEFAULT_RECORD_LIMIT);
        assert!(record(131_000, strategy) > DEFAULT_RECORD_LIMIT);
    }
    assert!(record(260_000, Strategy::Range) < DEFAULT_RECORD_LIMIT);
}

#[derive(Debug, Clone)]
struct Sent {
    topics: Vec<String>,
    claims: Vec<(String, Vec<i32>)>,
    generation: i32,
    rack: Option<String>,
}

fn sent() -> impl proptest::strategy::Strategy<Value = Sent> {
    let topics = prop_oneof![
        Just((0..9).map(|i| format!("t{i}")).collect::<Vec<_>>()),
        prop::collection::vec("t[0-9]|gone", 0..9),
    ];
    let claims = prop::collection::vec(("t[0-9]|gone", prop::collection::vec(-1..8i32, 0..5)), 0..8);
    (topics, claims, -1..4i32, prop::option::of("r[0-2]")).prop_map(|(topics, claims, generation, rack)| Sent {
        topics,
        claims,
        generation,
        rack,
    })
}

impl Sent {
    /// The bytes, with all lists in the order of the fields here, sorted or not, as another client might write them.
    fn encode(&self, strategy: Strategy) -> Vec<u8> {
        let mut lists = (self.claims.len() as i32).to_be_bytes().to_vec();
        for (topic, numbers) in &self.claims {
            lists.extend((topic.len() as i16).to_be_bytes());
            lists.extend(topic.as_bytes());
            lists.extend((numbers.len() as i32).to_be_bytes());
            numbers.iter().for_each(|number| lists.extend(number.to_be_bytes()));
        }
        let mut out = vec![0, 3];
        out.extend((self.topics.len() as i32).to_be_bytes());
        for topic in &self.topics {
            out.extend((topic.len() as i16).to_be_bytes());
            out.extend(topic.as_bytes());
        }
        if strategy == COOPERATIVE {
            out.extend((-1i32).to_be_bytes());
            out.extend(lists);
            out.extend(self.generation.to_be_bytes());
        } else {
            out.extend((lists.len() as i32 + 4).to_be_bytes());
            out.extend(lists);
            out.extend(self.generation.to_be_bytes());
            out.extend([0; 4]);
            out.extend((-1i32).to_be_bytes());
        }
        let rack = self.rack.as_deref();
        out.extend(rack.map_or(-1, |rack| rack.len() as i16).to_be_bytes());
        out.extend(rack.unwrap_or_default().as_bytes());
        out
    }
}

fn counts() -> impl proptest::strategy::Strategy<Value = Vec<i64>> {
    prop::collection::vec(0..8i64, 10)
}

fn ten_topics(counts: &[i64]) -> Topics {
    let names: Vec<String> = (0..10).map(|i| format!("t{i}")).collect();
    topics(&names.iter().map(String::as_str).zip(counts.iter().copied()).collect::<Vec<_>>())
}

fn strategies() -> impl proptest::strategy::Strategy<Value = Strategy> {
    prop_oneof![Just(STICKY), Just(COOPERATIVE), Just(Strategy::Range), Just(Strategy::RoundRobin)]
}

proptest! {
    #[test]
    fn what_members_send_is_read_as_it_is(sent in prop::collection::vec(sent(), 0..8), counts in counts(), strategy in strategies()) {
        let metadata: Vec<Vec<u8>> = sent.iter().map(|sent| sent.encode(strategy)).collect();
        let ids: Vec<String> = (0..sent.len()).map(|i| format!("m{i}")).collect();
        let members: Vec<_> = ids.iter().zip(&metadata).map(|(id, metadata)| member(id, metadata)).collect();
        let source = ClaimSource::of(strategy);
        let joined = read_group(&members, ten_topics(&counts), source);
        prop_assert_eq!(&joined.faults, &[]);
        let exists = |topic: &str| topic.strip_prefix('t').map(|digit| digit.parse::<u32>().unwrap());
        for (sent, m) in sent.iter().zip(0..) {
            let subscribed: BTreeSet<u32> =
                sent.topics.iter().filter_map(|topic| exists(topic)).filter(|&topic| counts[topic as usize] > 0).collect();
            prop_assert_eq!(joined.group.subscription(m), subscribed.into_iter().collect::<Vec<_>>());
            let mut claimed = Vec::new();
            for (topic, numbers) in sent.claims.iter().filter(|_| source != ClaimSource::None) {
                let Some(topic) = exists(topic) else { continue };
                let range = joined.group.topics().range(topic);
                claimed.extend(numbers.iter().filter(|&&n| n >= 0 && i64::from(n) < counts[topic as usize]).map(|&n| range.start + n as u32));
            }
            prop_assert_eq!(joined.group.claims(m), claimed);
            let generation = if source == ClaimSource::None { -1 } else { sent.generation };
            prop_assert_eq!(joined.group.generations()[m as usize], generation);
        }
        prop_assert_eq!(joined.max_generation, joined.group.generations().iter().copied().max().unwrap_or(-1));
    }

    #[test]
    fn every_member_gets_its_part_of_a_right_plan(
        sent in prop::collection::vec(sent(), 0..8), counts in counts(), strategy in strategies(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut metadata: Vec<Vec<u8>> = sent.iter().map(|sent| sent.encode(strategy)).collect();
        for (whose, at, byte) in damage {
            if !metadata.is_empty() {
                let bytes = whose.get(&metadata).len();
                let whose = whose.index(metadata.len());
                let at = at.index(bytes);
                metadata[whose][at] = byte;
            }
        }
        let ids: Vec<String> = (0..sent.len()).map(|i| format!("m{i}")).collect();
        let members: Vec<_> = ids.iter().zip(&metadata).map(|(id, metadata)| member(id, metadata)).collect();
        let performed = perform_assignment(&members, ten_topics(&counts), strategy, None).unwrap();
        let certificate = verify_outcome(&performed.group, strategy.rules(), performed.forming, &performed.outcome).unwrap();
        prop_assert!(ClaimSource::of(strategy) == ClaimSource::None || certificate.is_optimal());

        // The fast writer writes the same bytes as the plain one.
        let group = &performed.group;
        let mut parts: Vec<BTreeMap<&str, Vec<i32>>> = vec![BTreeMap::new(); members.len()];
        for (partition, &owner) in (0..).zip(&performed.outcome.plan.owner) {
            if owner != NONE {
                let (topic, number) = group.topics().locate(partition);
                parts[owner as usize].entry(group.topics().names().get(topic)).or_default().push(number as i32);
            }
        }
        prop_assert_eq!(performed.assignments.len(), members.len());
        for (part, bytes) in parts.into_iter().zip(performed.assignments.iter()) {
            prop_assert_eq!(bytes, assignment::encode(&CanonicalPartitions::new(part), performed.generation).unwrap());
        }

        // The order of the members in the input has no effect.
        let reversed: Vec<_> = members.iter().rev().copied().collect();
        let again = perform_assignment(&reversed, ten_topics(&counts), strategy, None).unwrap();
        prop_assert_eq!(&again.assignments, &performed.assignments);
        prop_assert_eq!(again.record_bytes, performed.record_bytes);
    }

    #[test]
    fn the_record_of_a_plan_is_what_its_members_will_send(
        sent in prop::collection::vec(sent(), 1..8), counts in prop::collection::vec(1..8i64, 10),
        strategy in prop_oneof![Just(STICKY), Just(COOPERATIVE), Just(Strategy::Range)],
    ) {
        let sent: Vec<Sent> = sent.into_iter().map(|mut sent| {
            sent.topics.retain(|topic| topic != "gone");
            sent
        }).collect();
        let ids: Vec<String> = (0..sent.len()).map(|i| format!("m{i}")).collect();
        let metadata: Vec<Vec<u8>> = sent.iter().map(|sent| sent.encode(strategy)).collect();
        let members: Vec<_> = ids.iter().zip(&metadata).map(|(id, metadata)| member(id, metadata)).collect();
        let first = perform_assignment(&members, ten_topics(&counts), strategy, None).unwrap();
        let next: Vec<Vec<u8>> = sent.iter().zip(first.assignments.iter()).map(|(sent, bytes)| {
            let given = Assignment::read(bytes).unwrap();
            let given = CanonicalPartitions::new(given.partitions.iter().map(|(name, numbers)| (std::str::from_utf8(name).unwrap(), numbers)));
            let topics: Vec<&str> = sent.topics.iter().map(String::as_str).collect();
            let (mut fields, user_data);
            fields = SubscriptionFields { topics: &topics, rack: sent.rack.as_deref(), ..Default::default() };
            match strategy {
                STICKY => {
                    user_data = encode_sticky(&given, Some(1)).unwrap();
                    fields.user_data = Some(&user_data);
                }
                COOPERATIVE => {
                    user_data = encode_cooperative(Some(1)).to_vec();
                    fields.owned = given;
                    fields.user_data = Some(&user_data);
                }
                _ => {}
            }
            fields.encode().unwrap()
        }).collect();
        let members: Vec<_> = ids.iter().zip(&next).map(|(id, metadata)| member(id, metadata)).collect();
        let bytes = record_bytes(&members, &first.order, &first.assignments);
        prop_assert_eq!(record_bytes_of_plan(&first.group, &first.outcome.plan, strategy), bytes);
    }

    #[test]
    fn the_floor_deals_every_partition_that_somebody_can_get(sent in prop::collection::vec(sent(), 0..8), counts in counts()) {
        let metadata: Vec<Vec<u8>> = sent.iter().map(|sent| sent.encode(STICKY)).collect();
        let ids: Vec<String> = (0..sent.len()).map(|i| format!("m{i}")).collect();
        let members: Vec<_> = ids.iter().zip(&metadata).map(|(id, metadata)| member(id, metadata)).collect();
        let performed = perform_assignment(&members, ten_topics(&counts), STICKY, None).unwrap();
        let (joined, assignments) = codec_floor(&members, ten_topics(&counts), ClaimSource::Sticky).unwrap();
        prop_assert_eq!(joined.order, performed.order);
        let dealt = |assignments: &Assignments| {
            let mut all: Vec<(Vec<u8>, i32)> = assignments.iter().flat_map(|bytes| {
                let partitions = Assignment::read(bytes).unwrap().partitions;
                partitions.iter().flat_map(|(name, numbers)| numbers.iter().map(|number| (name.to_vec(), number))).collect::<Vec<_>>()
            }).collect();
            all.sort();
            all
        };
        let floor = dealt(&assignments);
        prop_assert_eq!(&floor, &dealt(&performed.assignments));
        prop_assert!(floor.is_sorted_by(|a, b| a < b));
    }
}
