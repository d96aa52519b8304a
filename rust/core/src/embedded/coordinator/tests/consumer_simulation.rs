//! Random histories of KIP-848 groups: members that join, leave, restart, crash, are slow and lose answers, on topics that grow
//! and are deleted. At each step no partition has two readers, and in the end the members have their targets.

use super::consumer::{Consumer, Held, cluster_with};
use super::harness::{Cluster, GROUP, topics};
use crate::embedded::coordinator::{Config, ConsumerGroupState};
use crate::protocol::ErrorCode;
use crate::split_mix::SplitMix64;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&str; 4] = ["orders", "payments", "parcels", "refunds"];

/// A client with a member.
struct Client {
    consumer: Consumer,
    /// The partitions that it reads: more than it is assigned, until its application has finished a revocation.
    reads: BTreeSet<(u8, i32)>,
    /// Whether the next request must have all fields, because an answer may be lost.
    unsure: bool,
    /// Whether the application is still busy with a revocation.
    busy: bool,
}

struct Simulation {
    cluster: Cluster,
    random: SplitMix64,
    clients: Vec<Client>,
    counts: BTreeMap<&'static str, i32>,
    /// Whether all members subscribe to the same topics.
    equal: bool,
    started: usize,
    /// Whether every answer arrives.
    reliable: bool,
    /// The highest epoch of the group so far.
    epoch: i32,
}

fn one_by_one(held: &Held) -> BTreeSet<(u8, i32)> {
    held.iter().flat_map(|(&topic, list)| list.iter().map(move |&partition| (topic, partition))).collect()
}

impl Simulation {
    fn new(seed: u64, equal: bool, assignment_interval_ms: u64) -> Self {
        let config = Config { consumer_assignment_interval_ms: assignment_interval_ms, seed, ..Config::default() };
        let mut simulation = Self {
            cluster: cluster_with(config, &[]),
            random: SplitMix64::new(seed),
            clients: Vec::new(),
            counts: NAMES.map(|name| (name, 3)).into(),
            equal,
            started: 0,
            reliable: false,
            epoch: 0,
        };
        simulation.set_topics();
        simulation
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.random.below(chances) == 0
    }

    /// The id of a topic is the place of its name in `NAMES`, so that the id stays the same.
    fn set_topics(&mut self) {
        let known = topics(&NAMES.map(|name| (name, self.counts.get(name).copied().unwrap_or(0))));
        let existing = known.into_iter().filter(|(_, topic)| topic.partitions > 0);
        self.cluster.coordinator.set_topics(existing.collect());
    }

    fn subscription(&mut self) -> (Vec<&'static str>, Option<&'static str>) {
        if self.equal {
            return (vec!["orders", "payments"], None);
        }
        let names = NAMES.into_iter().filter(|_| self.random.below(2) == 0).collect();
        let expression = ["", "p.*", ".*s", "nothing"][self.random.below(4) as usize];
        (names, Some(expression))
    }

    fn start(&mut self, instance: Option<String>) {
        self.started += 1;
        let (names, expression) = self.subscription();
        let consumer = Consumer { names, expression, instance, ..Consumer::new(&format!("m{}", self.started), &[]) };
        self.clients.push(Client { consumer, reads: BTreeSet::new(), unsure: true, busy: false });
    }

    fn beat(&mut self, at: usize) {
        let lost = self.one_in(8) && !self.reliable;
        let client = &mut self.clients[at];
        // A busy application still reads the partitions to give up, so its request must not name the owned partitions.
        let full = client.unsure || client.consumer.epoch == 0;
        let mut request = if full { client.consumer.full() } else { client.consumer.steady() };
        if request.member_epoch == 0 {
            request.topic_partitions = Some(Vec::new());
        } else if client.busy {
            request.topic_partitions = None;
        } else if !full {
            request.topic_partitions = client.consumer.full().topic_partitions;
        }
        let response = self.cluster.beat(&request);
        let client = &mut self.clients[at];
        if lost {
            client.unsure = true;
            return;
        }
        match response.error_code {
            ErrorCode::NONE => {
                let before = client.consumer.epoch;
                client.consumer.take(&response);
                assert!(client.consumer.epoch >= before, "an epoch went back");
                client.unsure = false;
                let given = one_by_one(&client.consumer.held);
                client.busy |= client.reads.difference(&given).next().is_some();
                client.reads.extend(given);
            }
            ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::UNKNOWN_MEMBER_ID => {
                client.consumer.epoch = 0;
                client.consumer.held.clear();
                client.reads.clear();
                (client.unsure, client.busy) = (true, false);
            }
            ErrorCode::UNRELEASED_INSTANCE_ID => {}
            other => panic!("{other}: {:?}", response.error_message),
        }
    }

    /// The application has finished the revocation.
    fn revoke(&mut self, at: usize) {
        let client = &mut self.clients[at];
        client.reads = one_by_one(&client.consumer.held);
        client.busy = false;
    }

    fn leave(&mut self, at: usize) {
        let client = self.clients.swap_remove(at);
        let instance = client.consumer.instance.clone();
        let epoch = if instance.is_some() && self.one_in(2) { -2 } else { -1 };
        let request = Consumer { epoch, ..client.consumer }.steady();
        let code = self.cluster.beat(&request).error_code;
        let expected = [
            ErrorCode::NONE,
            ErrorCode::UNKNOWN_MEMBER_ID,
            ErrorCode::GROUP_ID_NOT_FOUND,
            ErrorCode::FENCED_INSTANCE_ID,
        ];
        assert!(expected.contains(&code), "{code}");
        if epoch == -2 {
            self.start(instance);
        }
    }

    fn step(&mut self) {
        let count = self.clients.len() as u64;
        let at = if count == 0 { 0 } else { self.random.below(count) as usize };
        match self.random.below(40) {
            _ if count == 0 => self.start(None),
            0 | 1 if count < 8 => {
                let instance = self.one_in(3).then(|| format!("i{}", self.started));
                self.start(instance);
            }
            2 => self.leave(at),
            // The client crashes, so its session has to end.
            3 => drop(self.clients.swap_remove(at)),
            4 if !self.equal => {
                let (names, expression) = self.subscription();
                let consumer = &mut self.clients[at].consumer;
                (consumer.names, consumer.expression) = (names, expression);
                self.clients[at].unsure = true;
            }
            5 => {
                let name = NAMES[self.random.below(4) as usize];
                let more = 1 + self.random.below(3) as i32;
                self.counts.entry(name).and_modify(|count| *count += more);
                self.set_topics();
            }
            6 if !self.equal => {
                self.counts.remove(NAMES[2]);
                self.set_topics();
            }
            7..=9 => {
                let ms = self.random.below(20_000);
                self.cluster.pass(ms);
            }
            10..=18 => self.revoke(at),
            _ => self.beat(at),
        }
        self.check();
    }

    /// No partition has two owners, and no member of the group reads a partition of another member.
    fn check(&mut self) {
        let Some(view) = self.cluster.coordinator.consumer_groups().into_iter().find(|view| view.group_id == GROUP)
        else {
            return;
        };
        assert!(view.epoch >= self.epoch && view.assignment_epoch <= view.epoch);
        self.epoch = view.epoch;
        let mut held = BTreeMap::new();
        for member in &view.members {
            for (topic, list) in member.assigned.iter().chain(&member.pending) {
                for &partition in list {
                    let other = held.insert((topic[0], partition), &member.member_id);
                    assert_eq!(other, None, "two members hold {partition} of {topic:?}: {view:?}");
                }
            }
        }
        for client in &self.clients {
            // A member that is not in the group any more reads on until an answer fences it.
            if view.members.iter().any(|member| member.member_id == client.consumer.id && member.epoch >= 0)
                && client.consumer.epoch > 0
            {
                for one in &client.reads {
                    let exists = self.counts.get(NAMES[usize::from(one.0) - 1]).is_some_and(|&count| one.1 < count);
                    let holder = held.get(one).copied();
                    assert!(
                        !exists || holder == Some(&client.consumer.id),
                        "{} reads {one:?} of {holder:?}: {view:?}",
                        client.consumer.id
                    );
                }
            }
        }
    }

    /// Lets the sessions of crashed members end, while all clients send heartbeats. In the second half no answer is lost: a
    /// static member whose answer to a join was lost may join again only after a whole session.
    fn come_to_rest(&mut self) {
        for round in 0..40 {
            self.reliable = round >= 20;
            self.cluster.pass(5_000);
            for at in 0..self.clients.len() {
                self.revoke(at);
                self.beat(at);
                self.check();
            }
        }
        let view = self.cluster.consumers();
        if self.clients.is_empty() {
            assert_eq!(view.state, ConsumerGroupState::Empty);
            return;
        }
        assert_eq!(view.state, ConsumerGroupState::Stable, "{view:?}");
        assert_eq!(view.members.len(), self.clients.len());
        let mut given = BTreeSet::new();
        for member in &view.members {
            let assigned = member.assigned.iter().map(|(topic, list)| (NAMES[usize::from(topic[0]) - 1], list.clone()));
            let target = member.target.iter().map(|(name, list)| (name.as_str(), list.clone()));
            assert_eq!(assigned.collect::<BTreeMap<_, _>>(), target.collect());
            for (name, list) in &member.target {
                given.extend(list.iter().map(|&partition| (name.clone(), partition)));
            }
        }
        let mut wanted = BTreeSet::new();
        for client in &self.clients {
            let matches = |name: &str| match client.consumer.expression {
                Some("p.*") => name.starts_with('p'),
                Some(".*s") => name.ends_with('s'),
                _ => false,
            };
            for (&name, &count) in &self.counts {
                if client.consumer.names.contains(&name) || matches(name) {
                    wanted.extend((0..count).map(|partition| (name.to_owned(), partition)));
                }
            }
        }
        assert_eq!(given, wanted, "{view:?}");
        if self.equal {
            let sizes = view.members.iter().map(|member| member.target.values().map(Vec::len).sum::<usize>());
            let sizes: Vec<usize> = sizes.collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
        for client in &self.clients {
            let member = view.members.iter().find(|member| member.member_id == client.consumer.id).expect("a member");
            let assigned = member.assigned.iter().map(|(topic, list)| (topic[0], list.clone())).collect::<Held>();
            assert!(client.unsure || one_by_one(&client.consumer.held) == one_by_one(&assigned));
        }
    }
}

fn simulate(seed: u64, equal: bool, assignment_interval_ms: u64) {
    let mut simulation = Simulation::new(seed, equal, assignment_interval_ms);
    for _ in 0..300 {
        simulation.step();
    }
    if !simulation.cluster.coordinator.consumer_groups().is_empty() {
        simulation.come_to_rest();
    }
}

/// The answers to the joins of three static members are lost, one of them three times.
#[test]
fn lost_answers_to_static_members_delay_the_group_and_no_more() {
    simulate(5_042_398_270_707_798_307, true, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_partition_has_two_owners_and_members_reach_their_targets(
        seed in any::<u64>(),
        equal in any::<bool>(),
        interval in prop_oneof![Just(0u64), Just(1_000)],
    ) {
        simulate(seed, equal, interval);
    }
}
