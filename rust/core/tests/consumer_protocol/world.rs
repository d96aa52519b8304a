//! Members, their applications, a faulty network and two brokers with one group. Everything follows from the seed.

mod broker;

use crate::coordinator::{Coordinator, Rules};
use crate::random::Random;
use kafka_assignors_core::member::{
    Action, CommitOffset, ConsumerConfig, ConsumerMembership, Event, Notice, NoticeKind, Partitions, Stage,
};
use kafka_assignors_core::protocol::consumer_group_heartbeat::*;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

pub(crate) const GROUP: &str = "g";

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Connected(usize, u64),
    /// A request reaches its broker.
    Request(usize, u64, Vec<u8>),
    /// An answer reaches its member.
    Answer(usize, u64, Vec<u8>),
    Broken(usize, u64),
    Wake(usize),
    Poll(usize),
    /// The application has carried a notice out.
    Returned(usize, u64),
}

/// One process.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) member: ConsumerMembership,
    pub(crate) alive: bool,
    pub(crate) closed: bool,
    pub(crate) fatal: Option<(ErrorCode, String)>,
    /// The partitions that the application reads.
    pub(crate) holds: BTreeSet<(String, i32)>,
    /// The partitions that the application has given up and no heartbeat has acknowledged yet: their last commits are in flight.
    given_up: BTreeSet<(String, i32)>,
    notice: Option<Notice>,
    busy: bool,
    pub(crate) polls: bool,
    pub(crate) callback_ms: u64,
    conns: BTreeMap<u64, i32>,
    /// The arrival of the last frame of a connection: frames do not overtake each other.
    arrives: BTreeMap<u64, u64>,
    wake: Option<u64>,
    beats: VecDeque<u64>,
    pub(crate) heartbeats: u64,
    /// The last epoch sent.
    epoch: i32,
    commits: u64,
    pub(crate) commit_codes: Vec<ErrorCode>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) errors: Vec<ErrorCode>,
    pub(crate) overruns: u32,
    pub(crate) tells_neighbours: bool,
    /// Its heartbeats, as sent.
    pub(crate) sent: Vec<ConsumerGroupHeartbeatRequest>,
}

pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) random: Random,
    events: BinaryHeap<Reverse<(u64, u64, Happens)>>,
    sequence: u64,
    pub(crate) hosts: Vec<Host>,
    pub(crate) group: Coordinator,
    /// Which of the brokers 1 and 2 is the coordinator.
    pub(crate) coordinator: i32,
    pub(crate) loading_until: u64,
    /// The longest delay of a frame.
    pub(crate) delay: u64,
    /// One in this many frames breaks its connection; 0 for none.
    pub(crate) cut_one_in: u64,
    /// One in this many answers is spoiled; 0 for none.
    pub(crate) spoiled_one_in: u64,
    /// The hosts that reach no broker.
    pub(crate) unreachable: BTreeSet<usize>,
    /// Names of topics that were deleted and created again: the two topics of such a name may have two owners.
    pub(crate) anew: BTreeSet<String>,
    /// The error codes that answer the next heartbeats.
    pub(crate) whims: VecDeque<ErrorCode>,
    /// The number of the next commits that are refused because of their epoch.
    pub(crate) refused_commits: u32,
    pub(crate) heartbeat_versions: (i16, i16),
    /// The answers to the next heartbeats, in place of the group's.
    pub(crate) script: VecDeque<ConsumerGroupHeartbeatResponse>,
    /// The number of heartbeats whose answers will be lost with their connection.
    pub(crate) lost_answers: u32,
    /// Until this time answers to Metadata do not contain the newest topics: brokers learn of topics late.
    pub(crate) stale_metadata_until: u64,
    /// By partition, the time at which it was given up; and the lengths of the times without an owner.
    gave_up: BTreeMap<(String, i32), u64>,
    pub(crate) without_owner: Vec<u64>,
}

pub(crate) fn config(number: usize) -> ConsumerConfig {
    ConsumerConfig {
        bootstrap: vec![("b1".to_owned(), 9092), ("b2".to_owned(), 9092)],
        group_id: GROUP.to_owned(),
        member_id: format!("m{number}"),
        session_timeout_ms: 10_000,
        max_poll_interval_ms: 20_000,
        request_timeout_ms: 5_000,
        connect_timeout_ms: 3_000,
        seed: number as u64,
        ..Default::default()
    }
}

impl World {
    pub(crate) fn new(seed: u64, rules: Rules) -> Self {
        Self {
            now: 1_000,
            random: Random::new(seed),
            events: BinaryHeap::new(),
            sequence: 0,
            hosts: Vec::new(),
            group: Coordinator::new(rules),
            coordinator: 1,
            loading_until: 0,
            delay: 5,
            cut_one_in: 0,
            spoiled_one_in: 0,
            unreachable: BTreeSet::new(),
            anew: BTreeSet::new(),
            whims: VecDeque::new(),
            refused_commits: 0,
            heartbeat_versions: (0, 1),
            script: VecDeque::new(),
            lost_answers: 0,
            stale_metadata_until: 0,
            gave_up: BTreeMap::new(),
            without_owner: Vec::new(),
        }
    }

    fn happens(&mut self, at: u64, event: Happens) {
        self.sequence += 1;
        self.events.push(Reverse((at.max(self.now), self.sequence, event)));
    }

    pub(crate) fn start(&mut self, config: ConsumerConfig, topics: &[&str], expression: Option<&str>) -> usize {
        let host = self.hosts.len();
        self.hosts.push(Host {
            member: ConsumerMembership::new(config, self.now).unwrap(),
            alive: true,
            closed: false,
            fatal: None,
            holds: BTreeSet::new(),
            given_up: BTreeSet::new(),
            notice: None,
            busy: false,
            polls: true,
            callback_ms: 10,
            conns: BTreeMap::new(),
            arrives: BTreeMap::new(),
            wake: None,
            beats: VecDeque::new(),
            heartbeats: 0,
            epoch: 0,
            commits: 0,
            commit_codes: Vec::new(),
            notices: Vec::new(),
            errors: Vec::new(),
            overruns: 0,
            tells_neighbours: false,
            sent: Vec::new(),
        });
        self.subscribe(host, topics, expression);
        self.happens(self.now + 10, Happens::Poll(host));
        host
    }

    pub(crate) fn subscribe(&mut self, host: usize, topics: &[&str], expression: Option<&str>) {
        let topics = topics.iter().map(|&topic| topic.to_owned()).collect();
        let now = self.now;
        let actions = self.hosts[host].member.subscribe(now, topics, expression.map(str::to_owned));
        self.obey(host, actions);
    }

    pub(crate) fn handle(&mut self, host: usize, event: Event) {
        let now = self.now;
        let actions = self.hosts[host].member.handle(now, event);
        self.obey(host, actions);
    }

    pub(crate) fn kill(&mut self, host: usize) {
        self.hosts[host].alive = false;
        let gone = std::mem::take(&mut self.hosts[host].holds);
        for partition in gone {
            self.gave_up.insert(partition, self.now);
        }
    }

    pub(crate) fn close(&mut self, host: usize) {
        if self.hosts[host].alive && !self.hosts[host].closed {
            self.hosts[host].polls = true;
            self.handle(host, Event::Close { timeout_ms: 5_000 });
        }
    }

    /// Breaks connections.
    pub(crate) fn cut(&mut self, which: impl Fn(usize, i32) -> bool) {
        for host in 0..self.hosts.len() {
            let conns: Vec<u64> =
                self.hosts[host].conns.iter().filter(|&(_, &node)| which(host, node)).map(|(&conn, _)| conn).collect();
            for conn in conns {
                self.happens(self.now, Happens::Broken(host, conn));
            }
        }
    }

    fn obey(&mut self, host: usize, actions: Vec<Action>) {
        let alive = self.hosts[host].alive;
        for action in actions {
            assert!(!self.hosts[host].closed, "an action after the last one: {action:?}");
            match action {
                Action::Connect { conn, host: address, .. } => {
                    let node = if address == "b2" { 2 } else { 1 };
                    self.hosts[host].conns.insert(conn, node);
                    let at = self.now + self.random.between(1, self.delay + 1);
                    let reachable = alive && !self.unreachable.contains(&host);
                    self.happens(
                        at,
                        if reachable { Happens::Connected(host, conn) } else { Happens::Broken(host, conn) },
                    );
                }
                Action::Send { conn, bytes } => {
                    assert_eq!(bytes[..4], ((bytes.len() - 4) as u32).to_be_bytes());
                    self.check_request(host, &bytes[4..]);
                    let at = self.arrival(host, conn);
                    self.happens(at, Happens::Request(host, conn, bytes[4..].to_vec()));
                }
                Action::Close { conn, .. } => {
                    self.hosts[host].conns.remove(&conn);
                }
                Action::Notify(notice) => self.hosts[host].notice = Some(notice),
                Action::CommitDone { code, .. } => self.hosts[host].commit_codes.push(code),
                Action::Fatal { code, message } => self.hosts[host].fatal = Some((code, message)),
                Action::Error { code, .. } => self.hosts[host].errors.push(code),
                Action::MaxPollExceeded { .. } => self.hosts[host].overruns += 1,
                Action::Closed => self.hosts[host].closed = true,
                Action::GroupRebalances { generation } if self.hosts[host].tells_neighbours => {
                    for other in (0..self.hosts.len()).filter(|&other| other != host) {
                        if self.hosts[other].alive && self.hosts[other].tells_neighbours && !self.hosts[other].closed {
                            self.handle(other, Event::GroupRebalances { generation });
                        }
                    }
                }
                _ => {}
            }
        }
        if let Some(at) = self.hosts[host].member.next_deadline()
            && self.hosts[host].wake.is_none_or(|wake| wake > at || wake <= self.now)
        {
            assert!(at > self.now, "a deadline in the past is a hot loop");
            self.hosts[host].wake = Some(at);
            self.happens(at, Happens::Wake(host));
        }
    }

    fn arrival(&mut self, host: usize, conn: u64) -> u64 {
        let at = self.now + self.random.between(1, self.delay + 1);
        let last = self.hosts[host].arrives.entry(conn).or_default();
        *last = at.max(*last);
        *last
    }

    /// Runs for this long.
    pub(crate) fn run(&mut self, millis: u64) {
        let end = self.now + millis;
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= end) {
            let Reverse((at, _, event)) = self.events.pop().unwrap();
            self.now = at;
            self.happen(event);
        }
        self.now = end;
    }

    #[track_caller]
    pub(crate) fn run_until(&mut self, millis: u64, what: &str, is: impl Fn(&World) -> bool) -> u64 {
        let began = self.now;
        while !is(self) {
            assert!(self.now < began + millis, "not within {millis} ms: {what}\n{}", self.describe());
            self.run(10);
        }
        self.now - began
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = format!("epoch {} topics {:?}\n", self.group.group_epoch, self.group.topics);
        for (at, host) in self.hosts.iter().enumerate() {
            text += &format!(
                "{at}: alive {} closed {} polls {} fatal {:?} {:?} {:?} holds {:?}\n",
                host.alive,
                host.closed,
                host.polls,
                host.fatal,
                host.member.identity(),
                host.member.stage(),
                host.holds
            );
        }
        for (id, member) in &self.group.members {
            text += &format!(
                "{id}: epoch {} {:?} assigned {:?} pending {:?}\n",
                member.epoch, member.state, member.assigned, member.pending
            );
        }
        text
    }

    fn happen(&mut self, event: Happens) {
        match event {
            Happens::Connected(host, conn) if self.live(host, conn) => {
                let versions = BTreeMap::from([
                    (ApiKey::ConsumerGroupHeartbeat.code(), self.heartbeat_versions),
                    (ApiKey::Metadata.code(), (0, 12)),
                    (ApiKey::FindCoordinator.code(), (0, 4)),
                    (ApiKey::OffsetCommit.code(), (2, 10)),
                    (ApiKey::OffsetFetch.code(), (1, 10)),
                ]);
                self.handle(host, Event::Connected { conn, versions });
            }
            // A request that was sent arrives, even if its sender is gone.
            Happens::Request(host, conn, frame) => self.serve(host, conn, &frame),
            Happens::Answer(host, conn, frame) if self.live(host, conn) => {
                self.handle(host, Event::Received { conn, frame });
            }
            Happens::Broken(host, conn) if self.live(host, conn) => {
                self.hosts[host].conns.remove(&conn);
                self.handle(host, Event::Disconnected { conn, reason: "cut".to_owned(), fatal: None });
            }
            Happens::Wake(host) if self.hosts[host].alive && !self.hosts[host].closed => {
                if self.hosts[host].wake == Some(self.now) {
                    self.hosts[host].wake = None;
                }
                self.handle(host, Event::Tick);
            }
            Happens::Poll(host) if self.hosts[host].alive && !self.hosts[host].closed => self.poll(host),
            Happens::Returned(host, ticket) if self.hosts[host].alive => self.returned(host, ticket),
            _ => {}
        }
    }

    fn live(&self, host: usize, conn: u64) -> bool {
        self.hosts[host].alive && self.hosts[host].conns.contains_key(&conn)
    }

    /// Whether the application may deliver records of its partitions. An application that does not poll delivers none.
    fn reads(&self, host: usize) -> bool {
        let host = &self.hosts[host];
        host.alive
            && (host.polls || host.busy)
            && !host.member.is_lost()
            && host.member.session_end().is_none_or(|end| self.now < end)
    }

    fn poll(&mut self, host: usize) {
        let again = self.now + self.random.between(5, 60);
        self.happens(again, Happens::Poll(host));
        if !self.hosts[host].polls {
            return;
        }
        if self.hosts[host].busy {
            return;
        }
        self.handle(host, Event::Poll);
        if let Some(notice) = self.hosts[host].notice.take()
            && self.hosts[host].member.begin(notice.ticket)
        {
            self.begin(host, notice);
        } else if self.random.one_in(20) {
            let held: Vec<_> = self.hosts[host].holds.iter().cloned().collect();
            self.commit(host, held);
        }
    }

    fn commit(&mut self, host: usize, partitions: Vec<(String, i32)>) {
        self.hosts[host].commits += 1;
        let id = self.hosts[host].commits;
        let offset = |(topic, partition)| CommitOffset {
            topic,
            partition,
            offset: self.now as i64,
            leader_epoch: -1,
            metadata: None,
        };
        let offsets = partitions.into_iter().map(offset).collect();
        self.handle(host, Event::Commit { id, offsets, timeout_ms: 3_000 });
    }

    fn begin(&mut self, host: usize, notice: Notice) {
        let flat = |partitions: &Partitions| -> BTreeSet<(String, i32)> {
            partitions
                .iter()
                .flat_map(|(topic, numbers)| numbers.iter().map(|&number| (topic.clone(), number)))
                .collect()
        };
        let (revoked, added, owned) = (flat(&notice.revoked), flat(&notice.added), flat(&notice.owned));
        let holds = &self.hosts[host].holds;
        assert!(revoked.is_subset(holds), "revoked what was not held: {notice:?} {holds:?}");
        let left: BTreeSet<_> = holds.difference(&revoked).cloned().collect();
        assert!(added.is_disjoint(&left), "added what was held: {notice:?} {holds:?}");
        assert_eq!(owned, left.union(&added).cloned().collect(), "{notice:?}");
        if notice.lost {
            assert!(added.is_empty() && notice.kind == NoticeKind::Leave && notice.generation < 0, "{notice:?}");
        }
        for partition in &added {
            for other in (0..self.hosts.len()).filter(|&other| other != host) {
                let two = self.hosts[other].holds.contains(partition) && self.reads(other);
                assert!(
                    !two || self.anew.contains(&partition.0),
                    "{partition:?} has the owners {other} and {host} at {}\n{}",
                    self.now,
                    self.describe()
                );
            }
        }
        for partition in &added {
            if let Some(at) = self.gave_up.remove(partition) {
                self.without_owner.push(self.now - at);
            }
        }
        self.hosts[host].holds.extend(added);
        self.hosts[host].busy = true;
        self.hosts[host].notices.push(notice.clone());
        if !notice.lost {
            self.commit(host, revoked.into_iter().collect());
        }
        let callback = self.hosts[host].callback_ms;
        let at = self.now + if callback == 0 { 0 } else { self.random.below(callback) };
        self.happens(at, Happens::Returned(host, notice.ticket));
    }

    fn returned(&mut self, host: usize, ticket: u64) {
        let notice = self.hosts[host].notices.last().cloned().unwrap();
        assert_eq!(notice.ticket, ticket);
        for (topic, numbers) in &notice.revoked {
            for &number in numbers {
                self.hosts[host].holds.remove(&(topic.clone(), number));
                if !notice.lost {
                    self.hosts[host].given_up.insert((topic.clone(), number));
                }
                self.gave_up.insert((topic.clone(), number), self.now);
            }
        }
        self.hosts[host].busy = false;
        if !self.hosts[host].closed {
            self.handle(host, Event::Done { ticket, protocols: Vec::new() });
        }
    }

    /// Whether every partition that a live member subscribes to has one owner that reads it, and no member holds any other
    /// partition.
    pub(crate) fn settled(&self, wanted: &BTreeSet<(String, i32)>) -> bool {
        let mut held = BTreeSet::new();
        for (at, host) in self.hosts.iter().enumerate() {
            if !host.alive || host.closed || host.fatal.is_some() {
                continue;
            }
            if host.member.stage() != Stage::Stable || !self.reads(at) || host.busy {
                return false;
            }
            for partition in &host.holds {
                if !held.insert(partition.clone()) {
                    return false;
                }
            }
        }
        held == *wanted
    }

    /// All partitions of these topics.
    pub(crate) fn all(&self, topics: &[&str]) -> BTreeSet<(String, i32)> {
        let of = |(name, &(_, partitions)): (&String, &(_, i32))| -> Vec<(String, i32)> {
            (0..partitions).map(|number| (name.clone(), number)).collect()
        };
        self.group.topics.iter().filter(|(name, _)| topics.contains(&name.as_str())).flat_map(of).collect()
    }
}
