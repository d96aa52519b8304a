//! A simulation from a seed: many simple members over a slow network, with restarts, silence and lost connections.

use crate::embedded::coordinator::{ClassicGroupState, Config, Coordinator, Reply};
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::join_group::{JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse};
use crate::protocol::leave_group::{LeaveGroupMember, LeaveGroupRequest};
use crate::protocol::sync_group::{SyncGroupAssignment, SyncGroupRequest, SyncGroupResponse};
use crate::protocol::{ApiKey, Body, ErrorCode, RequestHeader, read_response, write_request};
use crate::split_mix::SplitMix64;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SESSION_MS: u64 = 10_000;
const REBALANCE_MS: u64 = 20_000;
const HEARTBEAT_MS: u64 = 3_000;

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

enum SimulatedEvent {
    Arrive {
        connection: u64,
        frame: Vec<u8>,
    },
    Deliver {
        connection: u64,
        frame: Vec<u8>,
    },
    Lose {
        connection: u64,
    },
    /// A member carries out a planned action, unless it has started another one since.
    Act {
        member: usize,
        turn: u64,
        act: Act,
    },
}

enum Act {
    Join,
    Sync(Vec<SyncGroupAssignment>),
    Heartbeat,
}

struct Member {
    alive: bool,
    connection: u64,
    turn: u64,
    version: i16,
    id: String,
    instance: Option<String>,
    generation: i32,
    metadata: u64,
    in_generation: bool,
}

impl Member {
    /// The identity of the member across restarts.
    fn identity(&self) -> &str {
        self.instance.as_deref().unwrap_or(&self.id)
    }
}

/// The contents of the responses about one generation.
#[derive(Default)]
struct Generation {
    leader: String,
    protocol: Option<String>,
    /// The members in the leader's JoinGroup response.
    members: Option<BTreeSet<String>>,
    joined: BTreeSet<String>,
}

struct Simulation {
    coordinator: Coordinator,
    now: u64,
    sequence: u64,
    random: Random,
    events: BTreeMap<(u64, u64), SimulatedEvent>,
    members: Vec<Member>,
    connections: u64,
    /// By connection: the member, and its unanswered request.
    pending: BTreeMap<u64, (usize, RequestHeader)>,
    generations: BTreeMap<i32, Generation>,
    requests: u64,
    replies: u64,
    latency_ms: u64,
}

fn identity(member_id: &str) -> &str {
    // A UUID and its hyphen have 37 bytes.
    if member_id.starts_with("static") { &member_id[..member_id.len() - 37] } else { member_id }
}

impl Simulation {
    fn new(seed: u64, latency_ms: u64, initial_rebalance_delay_ms: u64) -> Self {
        Self {
            coordinator: Coordinator::new(Config { initial_rebalance_delay_ms, seed, ..Config::default() }),
            now: 0,
            sequence: 0,
            random: Random(SplitMix64::new(seed)),
            events: BTreeMap::new(),
            members: Vec::new(),
            connections: 0,
            pending: BTreeMap::new(),
            generations: BTreeMap::new(),
            requests: 0,
            replies: 0,
            latency_ms,
        }
    }

    fn after(&mut self, ms: u64, event: SimulatedEvent) {
        self.sequence += 1;
        self.events.insert((self.now + ms, self.sequence), event);
    }

    fn plan(&mut self, member: usize, ms: u64, act: Act) {
        self.members[member].turn += 1;
        let turn = self.members[member].turn;
        self.after(ms, SimulatedEvent::Act { member, turn, act });
    }

    fn start(&mut self) -> usize {
        let number = self.members.len();
        self.connections += 1;
        self.members.push(Member {
            alive: true,
            connection: self.connections,
            turn: 0,
            version: [3, 5, 7, 9][self.random.below(4) as usize],
            id: String::new(),
            instance: None,
            generation: -1,
            metadata: 0,
            in_generation: false,
        });
        if self.members[number].version >= 5 && self.random.one_in(3) {
            self.members[number].instance = Some(format!("static{number}"));
        }
        self.plan(number, 0, Act::Join);
        number
    }

    fn send<B: Body>(&mut self, member: usize, version: i16, body: &B) {
        self.requests += 1;
        let connection = self.members[member].connection;
        let header = RequestHeader {
            api: B::KEY,
            version,
            correlation_id: self.requests as i32,
            client_id: Some("client".to_owned()),
        };
        let frame = write_request(&header, body).expect("a request that fits");
        assert!(self.pending.insert(connection, (member, header)).is_none(), "one request of a connection at a time");
        let latency = self.random.below(self.latency_ms + 1);
        self.after(latency, SimulatedEvent::Arrive { connection, frame });
    }

    fn act(&mut self, member: usize, act: Act) {
        let this = &self.members[member];
        let group_id = "group".to_owned();
        match act {
            Act::Join => {
                let metadata = this.metadata.to_be_bytes().to_vec();
                let mut protocols = vec![JoinGroupProtocol { name: "common".to_owned(), metadata }];
                if member.is_multiple_of(2) {
                    protocols.insert(0, JoinGroupProtocol { name: "rare".to_owned(), metadata: Vec::new() });
                }
                let request = JoinGroupRequest {
                    group_id,
                    session_timeout_ms: SESSION_MS as i32,
                    rebalance_timeout_ms: REBALANCE_MS as i32,
                    member_id: this.id.clone(),
                    group_instance_id: this.instance.clone(),
                    protocol_type: "consumer".to_owned(),
                    protocols,
                    reason: None,
                };
                let version = this.version;
                self.members[member].in_generation = false;
                self.send(member, version, &request);
            }
            Act::Sync(assignments) => {
                let request = SyncGroupRequest {
                    group_id,
                    generation_id: this.generation,
                    member_id: this.id.clone(),
                    group_instance_id: this.instance.clone(),
                    assignments,
                    ..Default::default()
                };
                self.send(member, 3, &request);
            }
            Act::Heartbeat => {
                let request = HeartbeatRequest {
                    group_id,
                    generation_id: this.generation,
                    member_id: this.id.clone(),
                    group_instance_id: this.instance.clone(),
                };
                self.send(member, 3, &request);
            }
        }
    }

    fn receive(&mut self, replies: Vec<Reply>) {
        for Reply { connection, frame } in replies {
            self.replies += 1;
            let latency = self.random.below(self.latency_ms + 1);
            self.after(latency, SimulatedEvent::Deliver { connection, frame });
        }
    }

    fn deliver(&mut self, connection: u64, frame: &[u8]) {
        // The correlation id is checked below: only the one pending request may be answered.
        let Some((member, header)) = self.pending.remove(&connection) else {
            panic!("connection {connection} was answered twice");
        };
        let current = self.members[member].alive && self.members[member].connection == connection;
        match header.api {
            ApiKey::JoinGroup => {
                let response = read_response(&header, frame).expect("a JoinGroup response");
                if current {
                    self.joined(member, response);
                }
            }
            ApiKey::SyncGroup => {
                let response: SyncGroupResponse = read_response(&header, frame).expect("a SyncGroup response");
                if current && response.error_code.is_none() {
                    let this = &mut self.members[member];
                    let expected = format!("{}:{}", this.generation, this.identity());
                    assert_eq!(String::from_utf8_lossy(&response.assignment), expected, "somebody else's assignment");
                    this.in_generation = true;
                    self.plan(member, HEARTBEAT_MS, Act::Heartbeat);
                } else if current {
                    self.recover(member, response.error_code);
                }
            }
            ApiKey::Heartbeat => {
                let response: HeartbeatResponse = read_response(&header, frame).expect("a Heartbeat response");
                if current && response.error_code.is_none() {
                    self.plan(member, HEARTBEAT_MS, Act::Heartbeat);
                } else if current {
                    self.recover(member, response.error_code);
                }
            }
            _ => {}
        }
    }

    fn recover(&mut self, member: usize, code: ErrorCode) {
        let this = &mut self.members[member];
        match code {
            ErrorCode::UNKNOWN_MEMBER_ID => this.id.clear(),
            ErrorCode::REBALANCE_IN_PROGRESS | ErrorCode::ILLEGAL_GENERATION => {}
            ErrorCode::FENCED_INSTANCE_ID => panic!("{} was fenced by nobody", this.id),
            other => panic!("unexpected {other}"),
        }
        this.in_generation = false;
        self.plan(member, 0, Act::Join);
    }

    fn joined(&mut self, member: usize, response: JoinGroupResponse) {
        let this = &mut self.members[member];
        if response.error_code == ErrorCode::MEMBER_ID_REQUIRED {
            assert!(this.version >= 4 && this.instance.is_none());
            this.id = response.member_id;
            return self.plan(member, 0, Act::Join);
        }
        if !response.error_code.is_none() {
            return self.recover(member, response.error_code);
        }
        assert!(response.generation_id >= this.generation, "generations never decrease");
        this.generation = response.generation_id;
        this.id.clone_from(&response.member_id);

        let leader = identity(&response.leader).to_owned();
        let generation = self.generations.entry(response.generation_id).or_default();
        if generation.leader.is_empty() {
            generation.leader.clone_from(&leader);
            generation.protocol.clone_from(&response.protocol_name);
        }
        assert_eq!(generation.leader, leader, "one leader a generation");
        assert_eq!(generation.protocol, response.protocol_name, "one protocol a generation");
        generation.joined.insert(this.identity().to_owned());
        let mut plan = Vec::new();
        if !response.members.is_empty() {
            assert_eq!(response.leader, response.member_id, "only the leader sees the members");
            let members: BTreeSet<_> =
                response.members.iter().map(|member| identity(&member.member_id).to_owned()).collect();
            assert_eq!(generation.members.get_or_insert_with(|| members.clone()), &members);
            if !response.skip_assignment {
                plan.extend(response.members.iter().map(|member| SyncGroupAssignment {
                    member_id: member.member_id.clone(),
                    assignment: format!("{}:{}", response.generation_id, identity(&member.member_id)).into_bytes(),
                }));
            }
        }
        if let Some(members) = &generation.members {
            assert!(generation.joined.is_subset(members), "the leader knows everyone in its generation");
        }
        let thinking = if plan.is_empty() { 10 } else { 2_000 };
        let thinking = self.random.below(thinking);
        self.plan(member, thinking, Act::Sync(plan));
    }

    /// A random disturbance of a random member.
    fn disturb(&mut self) {
        let alive: Vec<_> = (0..self.members.len()).filter(|&member| self.members[member].alive).collect();
        if alive.len() < 12 && self.random.one_in(2) || alive.is_empty() {
            self.start();
            return;
        }
        let member = alive[self.random.below(alive.len() as u64) as usize];
        let old = self.members[member].connection;
        let idle = !self.pending.contains_key(&old);
        match self.random.below(5) {
            // The member dies without LeaveGroup.
            0 => {
                self.members[member].alive = false;
                self.after(0, SimulatedEvent::Lose { connection: old });
            }
            // The member leaves.
            1 if idle && !self.members[member].id.is_empty() => {
                self.members[member].alive = false;
                let this = &self.members[member];
                let leaving = LeaveGroupMember {
                    member_id: this.id.clone(),
                    group_instance_id: this.instance.clone(),
                    reason: None,
                };
                let request =
                    LeaveGroupRequest { group_id: "group".to_owned(), members: vec![leaving], ..Default::default() };
                self.send(member, 3, &request);
            }
            // The member loses its connection, keeps its member id and joins again.
            2 => self.reconnect(member),
            // A static member is replaced by another process.
            3 if self.members[member].instance.is_some() => {
                self.members[member].id.clear();
                self.reconnect(member);
            }
            // The member is silent, possibly for longer than its session timeout.
            _ if idle => {
                let pause = self.random.below(2 * SESSION_MS);
                self.members[member].metadata += self.random.below(2);
                self.plan(member, pause, Act::Join);
            }
            _ => {}
        }
    }

    fn reconnect(&mut self, member: usize) {
        let connection = self.members[member].connection;
        self.after(0, SimulatedEvent::Lose { connection });
        self.connections += 1;
        self.members[member].connection = self.connections;
        self.members[member].in_generation = false;
        let pause = self.random.below(1_000);
        // Join only after every message of the old connection has arrived.
        self.plan(member, 2 * self.latency_ms + 1 + pause, Act::Join);
    }

    fn run(&mut self, until: u64) {
        loop {
            let event = self.events.first_key_value().map(|(&(at, _), _)| at);
            let deadline = self.coordinator.next_deadline();
            let Some(next) = event.into_iter().chain(deadline).min().filter(|&next| next <= until) else { break };
            assert!(next >= self.now, "time never runs backwards");
            self.now = next;
            if deadline == Some(next) {
                let replies = self.coordinator.tick(next);
                self.receive(replies);
                assert!(self.coordinator.next_deadline().is_none_or(|deadline| deadline > next), "a hot loop");
                continue;
            }
            let Some((_, event)) = self.events.pop_first() else { break };
            match event {
                SimulatedEvent::Arrive { connection, frame } => {
                    // A request on a lost connection never arrives.
                    if self.pending.contains_key(&connection) {
                        let replies = self.coordinator.handle(self.now, connection, &frame).expect("readable");
                        self.receive(replies);
                    }
                }
                SimulatedEvent::Deliver { connection, frame } => {
                    if self.pending.contains_key(&connection) {
                        self.deliver(connection, &frame);
                    }
                }
                SimulatedEvent::Lose { connection } => {
                    self.pending.remove(&connection);
                    let replies = self.coordinator.disconnect(self.now, connection);
                    assert!(replies.iter().all(|reply| reply.connection != connection));
                    self.receive(replies);
                }
                SimulatedEvent::Act { member, turn, act } => {
                    let this = &self.members[member];
                    if this.alive && this.turn == turn {
                        self.act(member, act);
                    }
                }
            }
        }
        self.now = until;
    }

    /// After a time without disturbance: the group consists of the living members, all have an assignment of one
    /// generation, and no request is unanswered.
    fn check_at_rest(&mut self) {
        let quiet = self.now + 20 * (SESSION_MS + REBALANCE_MS);
        self.run(quiet);
        // Wait for the responses to the last heartbeats.
        for _ in 0..100 {
            if self.pending.is_empty() {
                break;
            }
            self.run(self.now + 101);
        }
        assert!(self.pending.is_empty(), "requests without an answer: {:?}", self.pending);
        let view = self.coordinator.groups().into_iter().next().expect("the group");
        let living: BTreeSet<_> = self.members.iter().filter(|member| member.alive).map(|m| m.id.clone()).collect();
        let members: BTreeSet<_> = view.members.iter().map(|member| member.member_id.clone()).collect();
        assert_eq!(members, living);
        assert_eq!(view.state, if living.is_empty() { ClassicGroupState::Empty } else { ClassicGroupState::Stable });
        for member in self.members.iter().filter(|member| member.alive) {
            assert_eq!((member.generation, member.in_generation), (view.generation, true), "{}", member.id);
        }
        assert!(self.replies <= self.requests, "{} replies to {} requests", self.replies, self.requests);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_come_to_rest_whatever_happened(seed: u64, latency_ms in 0..50u64, delay_ms in prop_oneof![Just(0), Just(3_000u64)]) {
        let mut simulation = Simulation::new(seed, latency_ms, delay_ms);
        for _ in 0..150 {
            let pause = simulation.random.below(2_000);
            simulation.run(simulation.now + pause);
            simulation.disturb();
        }
        simulation.check_at_rest();
        prop_assert!(simulation.generations.len() > 5);
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let history = || {
        let mut simulation = Simulation::new(42, 20, 0);
        for _ in 0..60 {
            let pause = simulation.random.below(2_000);
            simulation.run(simulation.now + pause);
            simulation.disturb();
        }
        (simulation.coordinator.groups(), simulation.requests, simulation.replies)
    };
    assert_eq!(history(), history());
}

#[test]
fn a_thousand_members_join_and_settle_in_few_generations() {
    let mut simulation = Simulation::new(7, 20, 3_000);
    for _ in 0..1_000 {
        simulation.start();
    }
    simulation.check_at_rest();
    assert!(simulation.generations.len() <= 3, "{} generations", simulation.generations.len());
}
