//! Orders and plans that Java gave: Java 17, and the classes of kafka-group-coordinator and kafka-server-common 4.3.1.

use super::java::{HashMap, IntSet, JavaKey, TimelineHashMap, Uuid, compare_strings, read_back, string_hash};
use super::{Assignor, CoordinatorError, Release, ServerSideGroup, Subscribing, When};

const JOINED: [&str; 14] = [
    "sEb-lAgXGiQ--MxgzX9y2g",
    "w2BMUZCVecJBTdw5fvfLuQ",
    "O5mjLDttF8uU4zDTKISB-w",
    "hcBuk2BPexJM-Xg-H5q1AQ",
    "Gl02oNY5ng-E1xAu7pcZIQ",
    "7JeZJKhg9RLSUzoOfSCxCQ",
    "Szp1vEkI6ukKHyXSUdwoLQ",
    "KYTO3wWOY8rZb_5rBnFgkA",
    "3-armuZMahp13AovKyPo4Q",
    "A",
    "Q",
    "a",
    "q",
    "consumer-1",
];

fn t1() -> Uuid {
    Uuid::from_bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
}

fn t2() -> Uuid {
    Uuid::from_bytes([17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32])
}

#[test]
fn hash_codes() {
    assert_eq!(string_hash("A"), 65);
    assert_eq!(string_hash("consumer-1"), -166_239_206);
    assert_eq!(string_hash("sEb-lAgXGiQ--MxgzX9y2g"), 544_689_987);
    assert_eq!((t1().hash_code(), t2().hash_code()), (16, 48));
    let signed = Uuid::from_bytes(0xffee_ddcc_bbaa_9988_7766_5544_3322_1100_u128.to_be_bytes());
    assert_eq!((signed.hash_code(), signed.compare(t1())), (0, std::cmp::Ordering::Less));
    assert_eq!(compare_strings("\u{ffff}", "\u{10000}"), std::cmp::Ordering::Greater);
    assert_eq!(Uuid::from_bytes(t2().to_bytes()), t2());
    assert_ne!(Uuid::of_name("t", 0), Uuid::of_name("t", 1));
}

#[test]
fn maps_of_members() {
    let hashes = JOINED.map(string_hash);
    let mut timeline = TimelineHashMap::new();
    for (number, hash) in (0..).zip(hashes) {
        timeline.put(number, hash);
    }
    let order = |timeline: &TimelineHashMap| timeline.iter().collect::<Vec<_>>();
    let seen = |timeline: &TimelineHashMap| {
        let mut map = HashMap::<&str>::new();
        timeline.iter().for_each(|number| assert!(map.put(JOINED[number as usize])));
        map.keys().map(|id| JOINED.iter().position(|&joined| joined == id).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(order(&timeline), [10, 4, 9, 7, 0, 13, 8, 1, 2, 5, 6, 3, 12, 11]);
    assert_eq!(seen(&timeline), [9, 11, 1, 4, 5, 13, 10, 12, 0, 2, 3, 6, 7, 8]);
    timeline.remove(2, hashes[2]);
    timeline.remove(9, hashes[9]);
    timeline.put(9, hashes[9]);
    assert_eq!(order(&timeline), [10, 4, 9, 7, 0, 13, 8, 1, 5, 6, 3, 12, 11]);
    assert_eq!(seen(&timeline), [9, 11, 1, 4, 5, 13, 10, 12, 0, 3, 6, 7, 8]);
    let entries: Vec<_> = timeline.iter().map(|number| (number, hashes[number as usize])).collect();
    assert_eq!(TimelineHashMap::listing(&entries).map(|listed| order(&listed)), Some(order(&timeline)));
    let backwards: Vec<_> = entries.into_iter().rev().collect();
    assert!(TimelineHashMap::listing(&backwards).is_none());
}

#[test]
fn sets_of_partitions() {
    let list = vec![32, 16, 0, 1, 17, 33, 48, 5, 21, 100, 40];
    assert_eq!(read_back(list.clone()), [32, 16, 0, 48, 1, 17, 33, 100, 5, 21, 40]);
    let mut set = IntSet::new();
    set.extend(list);
    set.extend([7]);
    set.extend([8]);
    assert_eq!(set.into_list(), [32, 0, 1, 33, 100, 5, 7, 40, 8, 16, 48, 17, 21]);
}

#[test]
fn short_cuts_of_sets_give_the_order_of_the_table() {
    fastrand::seed(848);
    for _ in 0..2_000 {
        let stride = 1 << fastrand::u32(0..8);
        let count = fastrand::u32(0..200);
        let mut list: Vec<u32> = (0..count).map(|number| number * stride + fastrand::u32(0..3) * 70_000).collect();
        if fastrand::bool() {
            fastrand::shuffle(&mut list);
        }
        list.sort_unstable();
        list.dedup();
        if fastrand::bool() {
            fastrand::shuffle(&mut list);
        }
        let table: Vec<u32> = HashMap::of_set(list.len(), list.iter().copied()).keys().collect();
        assert_eq!(read_back(list.clone()), table);
        assert_eq!(IntSet::Copied(list.clone()).into_list(), table);
        let capacity = fastrand::usize(1..300);
        let mut grown = HashMap::with_capacity(capacity);
        list.iter().for_each(|&partition| assert!(grown.put(partition)));
        let mut set = IntSet::with_capacity(capacity);
        set.extend(list.iter().copied());
        assert_eq!(set.clone().into_list(), grown.keys().collect::<Vec<_>>());
        for &partition in list.iter().step_by(3) {
            set.remove(partition);
            assert!(grown.remove(partition) && !grown.remove(partition));
        }
        assert_eq!((set.len(), set.into_list()), (grown.len(), grown.keys().collect::<Vec<_>>()));
    }
}

/// The polynomial by which the Java program summed up an order.
fn sum(keys: impl Iterator<Item = u32>) -> i64 {
    keys.fold(7i64, |sum, key| sum.wrapping_mul(1_000_003).wrapping_add(i64::from(key as i32)))
}

#[test]
fn crowded_bins_are_trees() {
    let wanted = [
        [5415685268472328055, 4841506084634267399, 2323874167792520959, 6916833389431655181, -1541169272350383705],
        [6822020799989739863, -6227323863069436057, -5857662915784236441, 5237892409733572597, -6137034993196975705],
        [-7071735832683508137, -115979409498217113, 2731332050753121077, -6741621420873261067, -2608802660532373081],
        [-4596304416871696265, 28754082951204967, -3449586094088560299, -2378343183762393075, 3341241782228688295],
        [2339893823884556023, 1281776651407225735, -699699925558268107, -4518035462226278289, -3439019846346237529],
        [5007860645454815063, 1908926534460889191, 1666236781191739807, 5355633094293923175, -7951911566821008985],
    ];
    for (seed, wanted) in (1u32..).zip(wanted) {
        let stride = 1 << (4 + seed % 4);
        let mut set = HashMap::new();
        let mut sums = Vec::new();
        (0..60).for_each(|i| _ = set.put((i * 37 + seed) % 61 * stride));
        sums.push(sum(set.keys()));
        (0..60).step_by(3).for_each(|i| _ = set.remove((i * 17 + seed) % 61 * stride));
        sums.push(sum(set.keys()));
        (0..30).for_each(|i| _ = set.put((i * 7 + 5 * seed) % 97 * stride));
        sums.push(sum(set.keys()));
        (0..97).filter(|i| i % 8 != 0).for_each(|i| _ = set.remove(i * stride));
        sums.push(sum(set.keys()));
        let mut mixed = HashMap::with_capacity(4);
        for i in 0..70 {
            let key = |i: u32| (i * 29 + seed) % 71 * 64 * stride;
            if i % 3 == 0 {
                mixed.put(key(i));
            } else {
                mixed.compute_if_absent(key(i));
            }
            if i % 5 == 4 {
                mixed.remove(key(i - 3));
            }
        }
        sums.push(sum(mixed.keys()));
        assert_eq!(sums, wanted, "seed {seed}");
    }
}

#[test]
fn trees_of_equal_hashes_are_in_order_of_the_keys() {
    let name = |i: usize| (0..4).map(|j| ["Aa", "BB"][i >> j & 1]).collect::<String>();
    let names: Vec<String> = (0..16).map(name).collect();
    let mut map = HashMap::<&str>::with_capacity(128);
    (0..16).for_each(|i| assert!(map.put(&names[i * 11 % 16])));
    let order = [
        "AaBBBBAa", "AaAaAaAa", "BBBBAaBB", "BBAaAaAa", "BBAaAaBB", "BBAaBBAa", "AaBBBBBB", "AaAaBBBB", "BBBBBBAa",
        "BBBBBBBB", "AaBBAaAa", "AaBBAaBB", "BBAaBBBB", "BBBBAaAa", "AaAaAaBB", "AaAaBBAa",
    ];
    assert_eq!(map.keys().collect::<Vec<_>>(), order);
    (0..8).for_each(|i| assert!(map.remove(&names[i * 3 % 16])));
    let left = ["AaBBBBBB", "BBBBAaBB", "BBAaAaAa", "BBBBBBAa", "AaBBAaBB", "BBAaBBBB", "AaAaAaBB", "AaAaBBAa"];
    assert_eq!(map.keys().collect::<Vec<_>>(), left);
}

fn group(assignor: Assignor, broker: &str, counts: [u32; 2]) -> ServerSideGroup {
    let mut group = ServerSideGroup::new(assignor, Release::parse(broker).unwrap());
    assert_eq!(group.grow("t1", counts[0], Some(t1()), When::Now), Ok(false));
    assert_eq!(group.grow("t2", counts[1], Some(t2()), When::Now), Ok(false));
    group
}

fn join(group: &mut ServerSideGroup, member: &str, names: &[&str], when: When) {
    let asked = Subscribing { names, expression: None };
    assert_eq!(group.join(member, None, asked, when), Ok(when == When::Now));
}

fn plan(group: &ServerSideGroup) -> String {
    let member = |id: &str| {
        let target = group.target(id).unwrap().map(|(topic, list)| {
            let list: Vec<String> = list.iter().map(u32::to_string).collect();
            format!(" {topic} {}", list.join(" "))
        });
        format!("{id}{}", target.collect::<Vec<_>>().join(","))
    };
    group.members().map(member).collect::<Vec<_>>().join("; ")
}

#[test]
fn uniform_with_equal_subscriptions() {
    let topics = ["t1", "t2"];
    for (broker, left, grown) in [
        ("4.3", "B t2 0, t1 0 1; C t1 2, t2 1 2 3", "B t2 0, t1 0 1 3 4; C t1 2 5, t2 1 2 3"),
        ("4.0.0", "B t2 0 1, t1 0 1; C t1 2, t2 2 3", "B t2 0 1, t1 0 1 3; C t1 2 4 5, t2 2 3"),
    ] {
        let mut group = group(Assignor::Uniform, broker, [3, 4]);
        join(&mut group, "A", &topics, When::Now);
        assert_eq!(plan(&group), "A t2 0 1 2 3, t1 0 1 2");
        join(&mut group, "B", &topics, When::Now);
        if broker == "4.3" {
            assert_eq!(plan(&group), "A t2 0 1 2 3; B t1 0 1 2");
            join(&mut group, "C", &topics, When::Now);
            assert_eq!(plan(&group), "A t2 0 1 2; B t1 0 1; C t1 2, t2 3");
        } else {
            join(&mut group, "C", &topics, When::Now);
        }
        assert_eq!(group.leave("A", false, When::Now), Ok(true));
        assert_eq!(plan(&group), left, "{broker}");
        assert_eq!(group.grow("t1", 6, None, When::Now), Ok(true));
        assert_eq!(plan(&group), grown, "{broker}");
    }
}

#[test]
fn an_empty_group_gives_the_extras_to_the_last() {
    for (broker, wanted) in [("4.4", "A t1 0 1; B t2 0, t1 2; C t2 1 2 3"), ("4.0.0", "A t1 0 1 2; B t2 0 1; C t2 2 3")]
    {
        let mut group = group(Assignor::Uniform, broker, [3, 4]);
        ["A", "B", "C"].iter().for_each(|id| join(&mut group, id, &["t1", "t2"], When::Later));
        assert!(group.is_pending());
        assert_eq!(group.plan(), Ok(true));
        assert_eq!(plan(&group), wanted, "{broker}");
        assert_eq!(group.plan(), Ok(false));
    }
}

#[test]
fn uniform_with_unequal_subscriptions() {
    let mut group = group(Assignor::Uniform, "4.0.0", [4, 6]);
    for (member, names) in [("A", &["t1"][..]), ("B", &["t1", "t2"]), ("C", &["t2"])] {
        join(&mut group, member, names, When::Later);
    }
    assert_eq!(group.plan(), Ok(true));
    assert_eq!(plan(&group), "A t1 0 1 2 3; B t2 0 2 4; C t2 1 3 5");
    join(&mut group, "D", &["t2"], When::Now);
    assert_eq!(plan(&group), "A t1 0 1 2; B t1 3, t2 0 2; C t2 1 3; D t2 4 5");
}

#[test]
fn range_by_instance_and_member_id() {
    let mut group = group(Assignor::Range, "4.3", [4, 6]);
    let names = ["t1", "t2"];
    join(&mut group, "A", &names, When::Later);
    join(&mut group, "B", &names, When::Later);
    let asked = Subscribing { names: &names, expression: None };
    assert_eq!(group.join("Z", Some("i1"), asked, When::Now), Ok(true));
    let of = |group: &ServerSideGroup, id: &str| {
        let mut lists: Vec<_> =
            group.target(id).unwrap().map(|(topic, list)| (topic.to_owned(), list.to_vec())).collect();
        lists.sort();
        lists.into_iter().map(|(_, list)| list).collect::<Vec<_>>()
    };
    assert_eq!(
        ["Z", "A", "B"].map(|id| of(&group, id)),
        [vec![vec![0, 1], vec![0, 1]], vec![vec![2], vec![2, 3]], vec![vec![3], vec![4, 5]]]
    );
    join(&mut group, "0", &names, When::Now);
    assert_eq!(
        ["Z", "0", "A", "B"].map(|id| of(&group, id)),
        [vec![vec![0], vec![0, 1]], vec![vec![1], vec![2, 3]], vec![vec![2], vec![4]], vec![vec![3], vec![5]]]
    );
}

#[test]
fn members_of_one_bin_and_one_slot() {
    for (joined, wanted) in [(["A", "Q"], "Q t1 0; A t1 1 2"), (["Q", "A"], "A t1 0; Q t1 1 2")] {
        let mut group = group(Assignor::Uniform, "4.3", [3, 1]);
        joined.iter().for_each(|id| join(&mut group, id, &["t1"], When::Later));
        assert_eq!(group.plan(), Ok(true));
        assert_eq!(plan(&group), wanted);
    }
    let mut group = group(Assignor::Uniform, "4.3", [3, 1]);
    join(&mut group, "A", &["t1"], When::Now);
    join(&mut group, "Q", &["t1"], When::Now);
    assert_eq!(plan(&group), "A t1 0 1; Q t1 2");
}

#[test]
fn static_members_return() {
    let mut group = group(Assignor::Uniform, "4.3", [4, 1]);
    let asked = Subscribing { names: &["t1"], expression: None };
    assert_eq!(group.join("A", Some("i1"), asked, When::Now), Ok(true));
    assert_eq!(group.join("B", Some("i2"), asked, When::Now), Ok(true));
    let taken = CoordinatorError::Instance { instance: "i1".to_owned(), holder: "A".to_owned() };
    assert_eq!(group.join("C", Some("i1"), asked, When::Now), Err(taken));
    assert_eq!(group.leave("A", true, When::Now), Ok(false));
    assert_eq!(group.join("C", Some("i1"), asked, When::Now), Ok(false));
    assert_eq!(plan(&group), "B t1 2 3; C t1 0 1");
    assert_eq!(group.leave("A", false, When::Now), Err(CoordinatorError::Member { member: "A".to_owned() }));
    // With another subscription the return is planned; the new member has the target of the member that left.
    assert_eq!(group.leave("C", true, When::Now), Ok(false));
    let both = Subscribing { names: &["t1", "t2"], expression: None };
    assert_eq!(group.join("D", Some("i1"), both, When::Now), Ok(true));
    assert_eq!(plan(&group), "B t1 2 3; D t2 0, t1 0 1");
}

#[test]
fn expressions_are_resolved_later() {
    let mut group = group(Assignor::Uniform, "4.3", [2, 2]);
    let asked = Subscribing { names: &[], expression: Some("t.*") };
    assert_eq!(group.join("A", None, asked, When::Now), Ok(true));
    assert_eq!(plan(&group), "A");
    assert_eq!(group.resolve("t.*", &["t1", "t2"], When::Now), Ok(true));
    assert_eq!(group.resolve("t.*", &["t2", "t1"], When::Now), Ok(false));
    assert_eq!(plan(&group), "A t2 0 1, t1 0 1");
    assert_eq!(group.expressions().collect::<Vec<_>>(), ["t.*"]);
    assert_eq!(group.delete("t2", When::Now), Ok(true));
    assert_eq!(plan(&group), "A t1 0 1");
    assert_eq!(group.leave("A", false, When::Now), Ok(false));
    assert_eq!(group.expressions().count(), 0);
}

#[test]
fn events_that_cannot_be() {
    let mut group = group(Assignor::Uniform, "4.3", [2, 2]);
    let asked = Subscribing { names: &["t1"], expression: None };
    assert!(group.join("", None, asked, When::Now).is_err());
    assert!(group.join("A", Some(""), asked, When::Now).is_err());
    assert!(group.subscribe("A", asked, When::Now).is_err());
    assert_eq!(group.join("A", None, asked, When::Now), Ok(true));
    assert!(group.leave("A", true, When::Now).is_err());
    assert!(group.join("A", Some("i1"), asked, When::Now).is_err());
    assert!(group.grow("t1", 1, None, When::Now).is_err());
    assert!(group.grow("t1", 2, Some(t2()), When::Now).is_err());
    assert!(group.grow("t3", 2, Some(t2()), When::Now).is_err());
    assert!(group.grow("t3", 0, None, When::Now).is_err());
    assert!(group.grow("", 1, None, When::Now).is_err());
    assert!(group.grow("t3", 100_000_000, None, When::Now).is_err());
    assert!(group.delete("t3", When::Now).is_err());
    assert_eq!(plan(&group), "A t1 0 1");
}

#[test]
fn releases() {
    assert_eq!(Release::parse("4.0.0"), Ok(Release::V4_0_0));
    for text in ["4.0", "4.0.1", "4.1.2", "4.3", "4.4.0"] {
        assert_eq!(Release::parse(text), Ok(Release::V4), "{text}");
    }
    for text in ["3.9", "3.9.2", "3.8.1", "", "4", "4.5", "5.0", "4.x", "4.0.0.0", "4.-1", "+4.1", "4.1 "] {
        assert!(Release::parse(text).is_err(), "{text}");
    }
    assert!(Release::parse("3.9.2").unwrap_err().to_string().contains("preview"));
}
