//! Hosts and brokers, driven by one queue of events.

mod heard;
mod network;

use crate::assignors;
use crate::cluster::Cluster;
use crate::host::{Host, Key, Work};
use crate::random::Random;
use heard::Heard;
use kafka_assignors_core::member::{Action, Config, Event};
use kafka_assignors_core::protocol::ErrorCode;
use network::{Link, is_state};
use std::collections::{BTreeMap, BTreeSet};

enum Happening {
    Connected(u64),
    Refused(u64),
    ToBroker(u64, Vec<u8>),
    ToHost(u64, Vec<u8>),
    /// The host, or the broker, learns that the connection is closed.
    HostLoses(u64),
    BrokerLoses(u64),
    Tick {
        host: usize,
        turn: u64,
    },
    App {
        host: usize,
        life: u32,
    },
    Planned {
        host: usize,
        life: u32,
        event: Event,
    },
    /// Another member of the process reports that the group rebalances.
    Heard {
        host: usize,
        generation: i32,
    },
}

/// The behaviour of the network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    /// The largest delay each way, in milliseconds.
    pub(crate) delay: u64,
    /// One in `cut` sends closes its connection: before the bytes arrive, after that, or long before; 0 is never.
    pub(crate) cut: u64,
}

pub(crate) const CALM: Weather = Weather { delay: 3, cut: 0 };

/// The hosts, the brokers, the network and the clock.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) cluster: Cluster,
    pub(crate) hosts: Vec<Host>,
    pub(crate) weather: Weather,
    /// Hosts whose packets are lost.
    pub(crate) unreachable: BTreeSet<usize>,
    pub(crate) poll_ms: u64,
    /// One in `commits` polls commits; 0 is never.
    pub(crate) commits: u64,
    /// Whether the hosts report a rebalance to each other, as the members of one process do.
    pub(crate) neighbours: bool,
    queue: BTreeMap<(u64, u64), Happening>,
    order: u64,
    links: BTreeMap<u64, Link>,
    heard: Heard,
    /// By host and life, the member's last identity for transactions.
    pub(crate) fenced: BTreeMap<(usize, u32), (String, i32)>,
    /// Their numbers by host, life and the host's own number.
    numbers: BTreeMap<(usize, u32, u64), u64>,
    next_link: u64,
    broker_deadline: Option<u64>,
    backlog: BTreeMap<usize, Vec<Happening>>,
    /// The hosts that may read a partition.
    pub(crate) owners: BTreeMap<Key, BTreeSet<usize>>,
    /// By generation and partition, the host (and its life) that took the partition.
    pub(crate) taken: BTreeMap<(i32, Key), (usize, u32)>,
    pub(crate) faults: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, nodes: i32, groups: kafka_assignors_core::embedded::coordinator::Config) -> Self {
        Self {
            now: 1_000,
            random: Random::new(seed),
            cluster: Cluster::new(nodes, groups),
            hosts: Vec::new(),
            weather: CALM,
            unreachable: BTreeSet::new(),
            poll_ms: 300,
            commits: 4,
            neighbours: false,
            queue: BTreeMap::new(),
            order: 0,
            links: BTreeMap::new(),
            heard: Heard::default(),
            fenced: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_link: 0,
            broker_deadline: None,
            backlog: BTreeMap::new(),
            owners: BTreeMap::new(),
            taken: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    fn at(&mut self, time: u64, happening: Happening) {
        self.order += 1;
        self.queue.insert((time.max(self.now), self.order), happening);
    }

    pub(crate) fn topic(&mut self, name: &str, partitions: i32) {
        self.cluster.broker.create_topic(name, partitions, 1, Vec::new()).unwrap();
    }

    /// Starts a process. Returns its number.
    pub(crate) fn start(&mut self, config: Config, topics: &[&str]) -> usize {
        let host = self.hosts.len();
        self.hosts.push(Host::new(config, self.now, topics));
        self.wake(host);
        host
    }

    /// As [`World::start`], subscribed to every topic with this prefix.
    pub(crate) fn start_prefix(&mut self, config: Config, prefix: &str) -> usize {
        let host = self.hosts.len();
        let mut process = Host::new(config, self.now, &[]);
        process.prefix = Some(prefix.to_owned());
        self.hosts.push(process);
        self.wake(host);
        host
    }

    fn wake(&mut self, host: usize) {
        if self.neighbours {
            let count = self.hosts.len() as u32;
            for place in 0..count {
                if !self.frozen(place as usize) {
                    self.handle(place as usize, Event::Neighbours { place, count });
                }
            }
        }
        let event =
            Event::Subscribe { topics: self.hosts[host].topics.clone(), all_topics: self.hosts[host].prefix.is_some() };
        self.handle(host, event);
        let life = self.hosts[host].life;
        let first = self.now + self.random.below(self.poll_ms);
        self.at(first, Happening::App { host, life });
    }

    pub(crate) fn subscribe(&mut self, host: usize, topics: &[&str]) {
        self.hosts[host].topics = topics.iter().map(|&topic| topic.to_owned()).collect();
        let topics = self.hosts[host].topics.clone();
        self.handle(host, Event::Subscribe { topics, all_topics: false });
    }

    /// kill -9.
    pub(crate) fn kill(&mut self, host: usize) {
        self.forget(host);
        self.hosts[host].alive = false;
        let links: Vec<u64> =
            self.links.iter().filter(|(_, link)| link.host == host).map(|(&number, _)| number).collect();
        for number in links {
            let later = self.now + self.delay();
            self.links.remove(&number);
            self.at(later, Happening::BrokerLoses(number));
        }
    }

    fn forget(&mut self, host: usize) {
        for owners in self.owners.values_mut() {
            owners.remove(&host);
        }
        self.backlog.remove(&host);
    }

    /// Starts the same process again, after [`World::kill`].
    pub(crate) fn restart(&mut self, host: usize) {
        self.forget(host);
        let now = self.now;
        self.hosts[host].restart(now);
        self.wake(host);
    }

    pub(crate) fn freeze(&mut self, host: usize) {
        self.hosts[host].frozen = true;
    }

    pub(crate) fn thaw(&mut self, host: usize) {
        self.hosts[host].frozen = false;
        for happening in self.backlog.remove(&host).unwrap_or_default() {
            let now = self.now;
            self.at(now, happening);
        }
    }

    pub(crate) fn close(&mut self, host: usize, timeout_ms: u64) {
        self.handle(host, Event::Close { timeout_ms });
    }

    pub(crate) fn node_down(&mut self, node: i32) {
        self.cluster.up.insert(node, false);
        self.cut(|_, other| other == node);
    }

    pub(crate) fn node_up(&mut self, node: i32) {
        self.cluster.up.insert(node, true);
    }

    /// Passes an event to a member, and carries out its actions.
    pub(crate) fn handle(&mut self, host: usize, event: Event) {
        if !self.hosts[host].alive {
            return;
        }
        let actions = self.hosts[host].member.handle(self.now, event);
        // A second call at the same time must have no effect.
        assert_eq!(self.hosts[host].member.handle(self.now, Event::Tick), []);
        for action in actions {
            self.act(host, action);
        }
        let process = &mut self.hosts[host];
        process.turn += 1;
        let turn = process.turn;
        self.check_fencing(host);
        let process = &self.hosts[host];
        if let Some(deadline) = process.member.next_deadline() {
            assert!(deadline > self.now, "a deadline in the past");
            self.at(deadline, Happening::Tick { host, turn });
        }
    }

    fn act(&mut self, host: usize, action: Action) {
        let life = self.hosts[host].life;
        match action {
            Action::Connect { conn, host: _, port, .. } => {
                self.hosts[host].connects.push(self.now);
                // The port identifies the node, also for a bootstrap server.
                let node = Cluster::node_at(port);
                self.next_link += 1;
                let number = self.next_link;
                self.numbers.insert((host, life, conn), number);
                let (up, down) = (self.now, self.now);
                self.links.insert(number, Link { host, life, conn, node, open: false, up, down, buffer: Vec::new() });
                if self.unreachable.contains(&host) {
                    return;
                }
                let later = self.now + self.delay() * 2;
                let happening =
                    if self.cluster.is_up(node) { Happening::Connected(number) } else { Happening::Refused(number) };
                self.at(later, happening);
            }
            Action::Send { conn, bytes } => {
                self.hosts[host].sent.push(self.now);
                if let Some(number) = self.link_of(host, conn) {
                    self.heard.asks(number, (host, life), &bytes, self.now);
                }
                self.send(host, conn, bytes);
            }
            Action::Close { conn, .. } => {
                if let Some(number) = self.link_of(host, conn) {
                    // Bytes that were sent before still arrive; then the broker learns of the close.
                    self.heard.ends(number, self.now);
                    let end = self.links.get(&number).map_or(self.now, |link| link.up).max(self.now) + self.delay();
                    if let Some(link) = self.links.get_mut(&number) {
                        link.conn = u64::MAX;
                    }
                    self.at(end, Happening::BrokerLoses(number));
                }
            }
            Action::Topics { topics } => {
                if let Some(prefix) = self.hosts[host].prefix.clone() {
                    let matched: Vec<String> = topics
                        .into_iter()
                        .filter(|(name, internal)| !internal && name.starts_with(&prefix))
                        .map(|(name, _)| name)
                        .collect();
                    self.hosts[host].topics.clone_from(&matched);
                    self.handle(host, Event::Matched { topics: matched });
                }
            }
            Action::Notify(notice) => {
                // Carrying out an earlier action may already have produced a list with a newer notice.
                let newest = self.hosts[host].notice.as_ref().is_none_or(|other| other.ticket < notice.ticket);
                if newest {
                    self.hosts[host].notice = Some(notice);
                }
            }
            Action::Plan { ticket, generation, protocol, members, topics } => {
                self.hosts[host].counts.plans += 1;
                let event = if self.hosts[host].plan_fails {
                    Event::PlanFailed { ticket, message: "it was told to".to_owned() }
                } else {
                    let assignments = assignors::plan(&protocol, &members, &topics, generation);
                    Event::Planned { ticket, assignments }
                };
                let later = self.now + self.hosts[host].plan_ms;
                self.at(later, Happening::Planned { host, life, event });
            }
            Action::CommitDone { id, code, partitions, dropped } => {
                let now = self.now;
                let process = &mut self.hosts[host];
                process.counts.committed += u32::from(code.is_none() && !partitions.is_empty());
                process.counts.dropped += dropped.len() as u32;
                process.results.insert(id, (code, dropped));
                process.commit_done(now, id);
            }
            action @ Action::OffsetsFetched { .. } => {
                if let Some(event) = self.hosts[host].offsets_fetched(action) {
                    self.handle(host, event);
                }
            }
            Action::Error { code, message, .. } => self.hosts[host].errors.push((code, message)),
            Action::Fatal { code, message } => {
                assert!(self.hosts[host].fatal.is_none(), "failed twice: {message}");
                self.hosts[host].fatal = Some((code, message));
            }
            Action::Log { level, message } => {
                let process = &mut self.hosts[host];
                process.counts.warnings += u32::from(level == kafka_assignors_core::member::Level::Warning);
                process.log.push(format!("{}: {message}", self.now));
            }
            Action::GroupRebalances { generation } => {
                let count = if self.neighbours { self.hosts.len() } else { 0 };
                for other in (0..count).filter(|&other| other != host) {
                    let later = self.now + self.random.below(20);
                    self.at(later, Happening::Heard { host: other, generation });
                }
            }
            Action::MaxPollExceeded { .. } => self.hosts[host].counts.poll_exceeded += 1,
            Action::ConvertedByBroker { .. } => self.hosts[host].converted += 1,
            Action::Closed => self.hosts[host].closed = true,
        }
    }

    /// Processes all events up to a time.
    pub(crate) fn run_until(&mut self, end: u64) {
        loop {
            let next = self.queue.first_key_value().map(|(&(time, _), _)| time);
            let broker = self.broker_deadline.map(|deadline| deadline.max(self.now));
            match (next, broker) {
                (_, Some(deadline)) if deadline <= end && next.is_none_or(|next| deadline <= next) => {
                    self.now = deadline;
                    let replies = self.cluster.tick(deadline);
                    self.deliver(replies);
                }
                (Some(next), _) if next <= end => {
                    self.now = next;
                    if let Some((_, happening)) = self.queue.pop_first() {
                        self.happen(happening);
                    }
                }
                _ => break,
            }
        }
        self.now = end;
    }

    pub(crate) fn run(&mut self, time: u64) {
        self.run_until(self.now + time);
    }

    /// Advances the time until the condition is true; panics after `most` milliseconds.
    #[track_caller]
    pub(crate) fn run_until_so(&mut self, most: u64, what: &str, so: impl Fn(&World) -> bool) {
        let end = self.now + most;
        while !so(self) {
            assert!(self.now < end, "not so after {most} ms: {what}\n{}", self.describe());
            self.run((most / 600).max(5));
        }
    }

    fn frozen(&self, host: usize) -> bool {
        self.hosts[host].frozen
    }

    fn happen(&mut self, happening: Happening) {
        let host = match &happening {
            Happening::Connected(number)
            | Happening::Refused(number)
            | Happening::ToHost(number, _)
            | Happening::HostLoses(number) => self.links.get(number).map(|link| link.host),
            Happening::Tick { host, .. }
            | Happening::App { host, .. }
            | Happening::Planned { host, .. }
            | Happening::Heard { host, .. } => Some(*host),
            Happening::ToBroker(..) | Happening::BrokerLoses(_) => None,
        };
        if let Some(host) = host.filter(|&host| self.frozen(host)) {
            // The kernel accepts the connection, even if the process is stopped.
            if let Happening::Connected(number) = &happening {
                self.accept(*number);
            }
            self.backlog.entry(host).or_default().push(happening);
            return;
        }
        match happening {
            Happening::Connected(number) => {
                self.accept(number);
                let versions = self.cluster.versions();
                self.tell_link(number, |conn| Event::Connected { conn, versions });
            }
            Happening::Refused(number) => {
                let reason = "connection refused".to_owned();
                self.tell_link(number, |conn| Event::Disconnected { conn, reason, fatal: None });
                self.links.remove(&number);
            }
            Happening::ToHost(number, frame) => {
                self.heard.hears(number, &frame, self.now);
                self.tell_link(number, |conn| Event::Received { conn, frame });
            }
            Happening::HostLoses(number) => {
                self.heard.ends(number, self.now);
                let reason = "connection reset".to_owned();
                self.tell_link(number, |conn| Event::Disconnected { conn, reason, fatal: None });
                if let Some(link) = self.links.get_mut(&number) {
                    link.open = false;
                    link.conn = u64::MAX;
                }
            }
            Happening::BrokerLoses(number) => {
                let replies = self.cluster.disconnect(self.now, number);
                if self.links.get(&number).is_some_and(|link| link.conn == u64::MAX) {
                    self.links.remove(&number);
                }
                self.deliver(replies);
            }
            Happening::ToBroker(number, bytes) => {
                if !is_state(&bytes) || self.links.get(&number).is_some_and(|link| link.open) {
                    self.reach_broker(number, &bytes);
                }
            }
            Happening::Tick { host, turn } => {
                if self.hosts[host].turn == turn {
                    self.handle(host, Event::Tick);
                }
            }
            Happening::Planned { host, life, event } => {
                if self.hosts[host].life == life {
                    self.handle(host, event);
                }
            }
            Happening::App { host, life } => self.app(host, life),
            Happening::Heard { host, generation } => self.handle(host, Event::GroupRebalances { generation }),
        }
    }

    /// One round of the application's thread.
    fn app(&mut self, host: usize, life: u32) {
        let process = &self.hosts[host];
        if !process.alive || process.life != life || process.closed {
            return;
        }
        let mut next = self.now + self.random.between(self.poll_ms / 2, self.poll_ms + self.poll_ms / 2);
        match self.hosts[host].work.clone() {
            Some(Work::Committing { .. }) => next = self.now + 5,
            Some(Work::Callback { until, .. }) if self.now < until => next = until,
            Some(Work::Callback { notice, .. }) => {
                self.hosts[host].work = None;
                self.finish(host, notice);
            }
            None if self.hosts[host].polls => self.poll(host),
            None => {}
        }
        if self.hosts[host].work.is_some() {
            next = next.min(self.now + 5.max(self.hosts[host].callback_ms));
        }
        self.at(next, Happening::App { host, life });
    }

    fn poll(&mut self, host: usize) {
        self.handle(host, Event::Poll);
        let now = self.now;
        if self.hosts[host].notice.is_some() {
            if let Some(event) = self.hosts[host].take_notice(now) {
                self.handle(host, event);
            }
            return;
        }
        // As the data path does, stop reading lost partitions even before on_lost is called.
        if self.hosts[host].member.is_lost() {
            return;
        }
        self.check_reading(host);
        let read = self.random.below(4) as i64;
        for held in self.hosts[host].held.values_mut() {
            if let Some(position) = &mut held.position {
                *position += read;
            }
        }
        if self.commits > 0 && self.random.one_in(self.commits) {
            let keys: Vec<Key> = self.hosts[host].held.keys().cloned().collect();
            if let Some((_, event)) = self.hosts[host].commit_event(keys.into_iter(), 20_000) {
                self.handle(host, event);
            }
        }
    }

    fn finish(&mut self, host: usize, notice: kafka_assignors_core::member::Notice) {
        let generation = notice.generation;
        let (gone, added, events) = self.hosts[host].finish(notice);
        for key in gone {
            self.owners.entry(key).or_default().remove(&host);
        }
        for key in added {
            self.check_taken(host, generation, &key);
            self.owners.entry(key).or_default().insert(host);
        }
        for event in events {
            self.handle(host, event);
        }
    }

    /// The coordinator's leader of the group.
    pub(crate) fn cluster_leader(&self) -> String {
        self.cluster.broker.groups()[0].leader.clone().unwrap_or_default()
    }

    /// The result of the commit with this id.
    pub(crate) fn result(&self, host: usize, id: u64) -> Option<ErrorCode> {
        self.hosts[host].results.get(&id).map(|(code, _)| *code)
    }

    pub(crate) fn is_overdue(&self, life: (usize, u32), session_ms: u64) -> bool {
        self.heard.is_overdue(life, session_ms, self.now)
    }
}
