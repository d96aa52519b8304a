//! Kafka's range and round robin assignors: KIP-54's examples, KIP-881's racks, static members, and random groups,
//! compared with a literal implementation of the rules.

use crate::oracle::{GroupDef, MemberDef, Random, TopicDef, member, seeds, show};
use kafka_assignors_core::planning::group::{Group, NONE};
use kafka_assignors_core::planning::plan::Plan;
use kafka_assignors_core::planning::{range, round_robin};

fn shown(def: &GroupDef, assign: fn(&Group) -> Plan) -> String {
    let group = def.build();
    show(&group, &assign(&group))
}

fn example_1() -> GroupDef {
    let topics = ["t0", "t1", "t2", "t3"];
    let members = ["C0", "C1", "C2"].map(|id| member(id, &topics));
    GroupDef::new(&topics.map(|topic| (topic, 2)), members.into())
}

fn example_2() -> GroupDef {
    let members = vec![member("C0", &["t0"]), member("C1", &["t0", "t1"]), member("C2", &["t0", "t1", "t2"])];
    GroupDef::new(&[("t0", 1), ("t1", 2), ("t2", 3)], members)
}

fn example_3() -> GroupDef {
    let members = ["C0", "C1"].map(|id| member(id, &["t0", "t1"]));
    GroupDef::new(&[("t0", 2), ("t1", 2)], members.into())
}

#[test]
fn kip_54_example_1() {
    let mut def = example_1();
    assert_eq!(shown(&def, round_robin::assign), "C0: t0p0 t1p1 t3p0; C1: t0p1 t2p0 t3p1; C2: t1p0 t2p1");
    def.members.remove(1);
    assert_eq!(shown(&def, round_robin::assign), "C0: t0p0 t1p0 t2p0 t3p0; C2: t0p1 t1p1 t2p1 t3p1");
}

#[test]
fn kip_54_example_2() {
    let mut def = example_2();
    assert_eq!(shown(&def, round_robin::assign), "C0: t0p0; C1: t1p0; C2: t1p1 t2p0 t2p1 t2p2");
    def.members.remove(0);
    assert_eq!(shown(&def, round_robin::assign), "C1: t0p0 t1p1; C2: t1p0 t2p0 t2p1 t2p2");
}

#[test]
fn kip_54_example_3() {
    let mut def = example_3();
    assert_eq!(shown(&def, round_robin::assign), "C0: t0p0 t1p0; C1: t0p1 t1p1");
    assert_eq!(shown(&def, range::assign), "C0: t0p0 t1p0; C1: t0p1 t1p1");
    def.members.push(member("C2", &["t0", "t1"]));
    assert_eq!(shown(&def, round_robin::assign), "C0: t0p0 t1p1; C1: t0p1; C2: t1p0");
    assert_eq!(shown(&def, range::assign), "C0: t0p0 t1p0; C1: t0p1 t1p1; C2:");
}

#[test]
fn range_gives_contiguous_runs_and_the_first_members_one_more() {
    let def = GroupDef::new(&[("t", 8)], ["a", "b", "c"].map(|id| member(id, &["t"])).into());
    assert_eq!(shown(&def, range::assign), "a: tp0 tp1 tp2; b: tp3 tp4 tp5; c: tp6 tp7");
}

#[test]
fn static_members_come_first_in_order_of_their_instance_ids() {
    let members = vec![
        member("a", &["t"]),
        member("b", &["t"]).instance("z"),
        member("c", &["t"]),
        member("d", &["t"]).instance("y"),
    ];
    let def = GroupDef::new(&[("t", 6)], members);
    assert_eq!(shown(&def, range::assign), "a: tp4; b: tp2 tp3; c: tp5; d: tp0 tp1");
    assert_eq!(shown(&def, round_robin::assign), "a: tp2; b: tp1 tp5; c: tp3; d: tp0 tp4");
}

#[test]
fn a_restarted_static_member_keeps_its_partitions_under_its_new_id() {
    let with = |first: &str, second: &str| {
        let members = vec![member(first, &["t"]).instance("i1"), member(second, &["t"]).instance("i2")];
        let group = GroupDef::new(&[("t", 3)], members).build();
        let instances = |plan: Plan| -> Vec<String> {
            let instance = |owner: &u32| group.instance_id(*owner).expect("both members are static").to_owned();
            plan.owner.iter().map(instance).collect()
        };
        (instances(range::assign(&group)), instances(round_robin::assign(&group)))
    };
    assert_eq!(with("c1", "c2"), with("c4", "c3"));
    assert_eq!(with("c4", "c3").0, ["i1", "i1", "i2"]);
}

#[test]
fn nobody_and_nothing_are_no_error() {
    for def in [
        GroupDef::default(),
        GroupDef::new(&[("t", 3)], vec![]),
        GroupDef::new(&[], vec![member("a", &["gone"])]),
        GroupDef::new(&[("t", 3), ("u", 0)], vec![member("a", &["u"]), member("b", &[])]),
    ] {
        let group = def.build();
        assert!(range::assign(&group).owner.iter().all(|&owner| owner == NONE));
        assert!(round_robin::assign(&group).owner.iter().all(|&owner| owner == NONE));
    }
}

fn on_racks(id: &str, topics: &[&str], rack: &str) -> MemberDef {
    member(id, topics).on_rack(rack)
}

#[test]
fn range_takes_partitions_on_the_members_racks() {
    let members = [("a", "y"), ("b", "x")].map(|(id, rack)| on_racks(id, &["t"], rack));
    let def = GroupDef::new(&[("t", 4)], members.into()).racks("t", "x x y y");
    assert_eq!(shown(&def, range::assign), "a: tp2 tp3; b: tp0 tp1");
}

#[test]
fn range_does_not_trade_balance_for_racks() {
    let members = [("a", "x"), ("b", "y")].map(|(id, rack)| on_racks(id, &["t"], rack));
    let def = GroupDef::new(&[("t", 4)], members.into()).racks("t", "x x x y");
    assert_eq!(shown(&def, range::assign), "a: tp0 tp1; b: tp2 tp3");
    // The extra partition goes to the first member on its rack, not to the first member.
    let members = [("a", "x"), ("b", "y")].map(|(id, rack)| on_racks(id, &["t"], rack));
    let def = GroupDef::new(&[("t", 3)], members.into()).racks("t", "y y x");
    assert_eq!(shown(&def, range::assign), "a: tp2; b: tp0 tp1");
}

#[test]
fn racks_that_say_nothing_do_not_count() {
    let plain = "a: tp0 tp1; b: tp2 tp3";
    for (racks, at) in
        [("xy xy xy xy", ("y", "x")), ("x x y y", ("v", "w")), ("- - - -", ("y", "x")), ("x x x x", ("y", "x"))]
    {
        let def = GroupDef::new(&[("t", 4)], vec![on_racks("a", &["t"], at.0), on_racks("b", &["t"], at.1)]);
        assert_eq!(shown(&def.racks("t", racks), range::assign), plain, "{racks}");
    }
}

#[test]
fn topics_with_the_same_subscribers_and_size_stay_co_partitioned() {
    let topics = ["t", "u"];
    let members = [("a", "y"), ("b", "x")].map(|(id, rack)| on_racks(id, &topics, rack));
    let def = GroupDef::new(&[("t", 4), ("u", 4)], members.into()).racks("t", "x x y y").racks("u", "x y y x");
    // Number 0 is on x and number 2 on y in both; 1 and 3 agree on no rack and follow in order.
    assert_eq!(shown(&def, range::assign), "a: tp1 tp2 up1 up2; b: tp0 tp3 up0 up3");
    // Another size: each topic for itself.
    let members = [("a", "y"), ("b", "x")].map(|(id, rack)| on_racks(id, &topics, rack));
    let def = GroupDef::new(&[("t", 4), ("u", 2)], members.into()).racks("t", "x y x y").racks("u", "x y");
    assert_eq!(shown(&def, range::assign), "a: tp1 tp3 up1; b: tp0 tp2 up0");
}

/// A literal implementation of KIP-881: it tries every member for every partition. Returns owners by flat partition.
fn range_word_by_word(group: &Group) -> Vec<u32> {
    let racks = group.topics().racks();
    let mut owner = vec![NONE; group.topics().partitions()];
    let mut order: Vec<u32> = (0..group.members() as u32).collect();
    order.sort_by(|&a, &b| match (group.instance_id(a), group.instance_id(b)) {
        (Some(x), Some(y)) => x.cmp(y),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => a.cmp(&b),
    });
    let members = |topic: u32| -> Vec<u32> { order.iter().copied().filter(|&m| group.subscribes(m, topic)).collect() };
    let at_home = |member: u32, partition: u32| {
        let rack = group.racks()[member as usize];
        let set = racks.of_partition.get(partition as usize).map_or(&[][..], |&set| racks.sets.row(set));
        rack == NONE || set.contains(&rack)
    };
    let room = |owner: &[u32], topic: u32, member: u32| -> u32 {
        let range = group.topics().range(topic);
        let (count, many) = (range.len() as u32, members(topic).len() as u32);
        let mine = |member: u32| range.clone().filter(|&p| owner[p as usize] == member).count() as u32;
        let extras = count % many - members(topic).into_iter().filter(|&m| mine(m) > count / many).count() as u32;
        (count / many + u32::from(extras > 0)).saturating_sub(mine(member))
    };
    let informative = |topic: u32| {
        let sets: Vec<&[u32]> = group
            .topics()
            .range(topic)
            .map(|p| racks.of_partition.get(p as usize).map_or(&[][..], |&set| racks.sets.row(set)))
            .collect();
        let mut all: Vec<u32> = sets.concat();
        all.sort_unstable();
        all.dedup();
        members(topic).into_iter().any(|m| all.contains(&group.racks()[m as usize]))
            && sets.iter().any(|&set| set != all)
    };
    let topics: Vec<u32> =
        (0..group.topics().len() as u32).filter(|&t| !members(t).is_empty() && group.topics().count(t) > 0).collect();
    if topics.iter().any(|&topic| informative(topic)) {
        for &topic in &topics {
            let alike = |&&other: &&u32| {
                group.topics().count(other) == group.topics().count(topic) && members(other) == members(topic)
            };
            let together: Vec<u32> = topics.iter().filter(alike).copied().collect();
            if together.len() == 1 && informative(topic) {
                for member in members(topic) {
                    for partition in group.topics().range(topic) {
                        let free = owner[partition as usize] == NONE && at_home(member, partition);
                        if free && room(&owner, topic, member) > 0 {
                            owner[partition as usize] = member;
                        }
                    }
                }
            } else if together.len() > 1
                && together[0] == topic
                && members(topic).iter().any(|&m| group.racks()[m as usize] != NONE)
            {
                for number in 0..group.topics().count(topic) {
                    let flat = |topic: u32| group.topics().range(topic).start + number;
                    let fits = |m: &u32| together.iter().all(|&t| at_home(*m, flat(t)) && room(&owner, t, *m) > 0);
                    if let Some(member) = members(topic).into_iter().find(fits) {
                        together.iter().for_each(|&t| owner[flat(t) as usize] = member);
                    }
                }
            }
        }
    }
    for &topic in &topics {
        for member in members(topic) {
            let many = room(&owner, topic, member) as usize;
            let free: Vec<u32> = group.topics().range(topic).filter(|&p| owner[p as usize] == NONE).collect();
            free.into_iter().take(many).for_each(|p| owner[p as usize] = member);
        }
    }
    owner
}

fn round_robin_word_by_word(group: &Group) -> Vec<u32> {
    let mut ring: Vec<u32> = (0..group.members() as u32).collect();
    ring.sort_by_key(|&m| group.instance_id(m).map_or((1, "", m), |instance| (0, instance, 0)));
    let mut owner = vec![NONE; group.topics().partitions()];
    for (partition, topic) in group.topics().of_partitions().into_iter().enumerate() {
        if ring.iter().any(|&m| group.subscribes(m, topic)) {
            while !group.subscribes(ring[0], topic) {
                ring.rotate_left(1);
            }
            owner[partition] = ring[0];
            ring.rotate_left(1);
        }
    }
    owner
}

fn random_group(random: &mut Random) -> GroupDef {
    let names: Vec<String> = (0..1 + random.below(5)).map(|i| format!("t{i}")).collect();
    let mut def = GroupDef::default();
    let sizes = [random.below(7), random.below(12)];
    for name in &names {
        let partitions = sizes[random.below(2)] as u32;
        let set =
            |random: &mut Random| ["x", "y", "z"].into_iter().filter(|_| random.chance(40)).map(String::from).collect();
        let racks = random.chance(80).then(|| (0..partitions).map(|_| set(random)).collect());
        def.topics.insert(name.clone(), TopicDef { partitions, racks });
    }
    let everything = random.chance(50);
    for i in 0..1 + random.below(6) {
        let topics: Vec<&str> = names.iter().filter(|_| everything || random.chance(60)).map(String::as_str).collect();
        let mut one = member(&format!("m{i}"), &topics);
        if random.chance(30) {
            one.instance = format!("i{}", 9 - i);
        }
        if random.chance(80) {
            one.rack = ["x", "y", "z", "w"][random.below(4)].to_owned();
        }
        def.members.push(one);
    }
    random.shuffle(&mut def.members);
    def
}

#[test]
fn random_groups_as_the_rules_say() {
    let mut racks_mattered = 0;
    for seed in seeds(3000) {
        let mut def = random_group(&mut Random::new(seed));
        let group = def.build();
        let with_racks = range::assign(&group).owner;
        assert_eq!(with_racks, range_word_by_word(&group), "range, seed {seed}");
        assert_eq!(round_robin::assign(&group).owner, round_robin_word_by_word(&group), "round robin, seed {seed}");
        for member in &mut def.members {
            member.rack.clear();
        }
        racks_mattered += u32::from(range::assign(&def.build()).owner != with_racks);
    }
    assert!(racks_mattered > 300, "only {racks_mattered} groups show what racks do");
}
