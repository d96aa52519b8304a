//! A member with arbitrary brokers and an arbitrary application: no sequence of events makes it panic, send on a closed
//! connection, or have two commits in flight.

use std::collections::{BTreeMap, VecDeque};

use kafka_assignors_core::embedded::broker::Broker;
use kafka_assignors_core::member::{Action, Assignor, CommitOffset, Config, Event, Membership};
use kafka_assignors_core::protocol::reader::Reader;
use kafka_assignors_core::protocol::{ApiKey, RequestHeader};

struct Host {
    member: Membership,
    now: u64,
    /// Connections, each with its unanswered requests.
    conns: BTreeMap<u64, VecDeque<RequestHeader>>,
    opening: VecDeque<u64>,
    ticket: u64,
    plan: u64,
    fatal: u32,
    closed: u32,
    fenced: bool,
}

impl Host {
    fn handle(&mut self, event: Event) {
        for action in self.member.handle(self.now, event) {
            match action {
                Action::Connect { conn, .. } => {
                    assert!(self.conns.insert(conn, VecDeque::new()).is_none(), "a number used twice");
                    self.opening.push_back(conn);
                }
                Action::Send { conn, bytes } => {
                    let header =
                        RequestHeader::read(&mut Reader::new(&bytes[4..])).expect("a request that can be read");
                    self.conns.get_mut(&conn).expect("an open connection").push_back(header);
                }
                Action::Close { conn, .. } => {
                    self.conns.remove(&conn);
                }
                Action::Notify(notice) => self.ticket = notice.ticket,
                Action::Plan { ticket, .. } => self.plan = ticket,
                Action::Fatal { .. } => self.fatal += 1,
                Action::Closed => self.closed += 1,
                _ => {}
            }
        }
        let commits = self.conns.values().flatten().filter(|header| header.api == ApiKey::OffsetCommit).count();
        assert!(commits <= 1 && self.fatal <= 1 && self.closed <= 1);
        let named = self.member.fencing();
        assert!(named.is_some() || !self.fenced, "a transaction would not be fenced any more");
        assert!(named.is_none_or(|(id, generation)| !id.is_empty() && generation >= 0));
        self.fenced = named.is_some();
        assert!(self.member.session_end().is_none_or(|end| end > self.now), "a member past its session");
        assert!(self.conns.len() <= 4, "more connections than roles, and one that is retired");
        assert!(self.member.next_deadline().is_none_or(|deadline| deadline > self.now));
    }

    fn pick(&self, which: u8) -> Option<u64> {
        let open: Vec<u64> = self.conns.keys().copied().collect();
        open.get(usize::from(which) % open.len().max(1)).copied()
    }

    /// A response to the oldest request on a connection: a valid header, and any body.
    fn answer(&mut self, which: u8, body: &[u8]) {
        let waiting: Vec<u64> =
            self.conns.iter().filter(|(_, pending)| !pending.is_empty()).map(|(&conn, _)| conn).collect();
        let Some(&conn) = waiting.get(usize::from(which) % waiting.len().max(1)) else { return };
        let Some(header) = self.conns.get_mut(&conn).and_then(VecDeque::pop_front) else { return };
        let mut frame = header.correlation_id.to_be_bytes().to_vec();
        if header.api.is_flexible(header.version) && header.api != ApiKey::ApiVersions {
            frame.push(0);
        }
        frame.extend_from_slice(body);
        self.handle(Event::Received { conn, frame });
    }
}

/// Each step is a byte for the event, a byte for its object, a byte for the length, and that many bytes of data.
pub(crate) fn check(bytes: &[u8]) {
    let assignor = |name: &str, cooperative| Assignor {
        name: name.to_owned(),
        cooperative,
        settles_claims: false,
        uses_racks: true,
    };
    let kinds =
        [vec![assignor("s", false)], vec![assignor("s", true)], vec![assignor("s", true), assignor("e", false)]];
    let (&kind, mut rest) = bytes.split_first().unwrap_or((&0, &[]));
    let config = Config {
        bootstrap: vec![("b".to_owned(), 1)],
        group_id: "g".to_owned(),
        group_instance_id: (kind & 4 != 0).then(|| "i".to_owned()),
        assignors: kinds[usize::from(kind & 3) % 3].clone(),
        ..Config::default()
    };
    let names: Vec<String> = config.assignors.iter().map(|assignor| assignor.name.clone()).collect();
    let member = Membership::new(config, 0).expect("good settings");
    let (conns, opening) = (BTreeMap::new(), VecDeque::new());
    let mut host = Host { member, now: 0, conns, opening, ticket: 0, plan: 0, fatal: 0, closed: 0, fenced: false };
    let versions: BTreeMap<i16, (i16, i16)> = Broker::apis().map(|api| (api.code(), api.versions())).collect();
    host.handle(Event::Subscribe { topics: vec!["t".to_owned()], all_topics: kind & 8 != 0 });
    while let [what, which, length, tail @ ..] = rest {
        let (body, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        match what % 18 {
            0 => {
                host.now += u64::from(*which) * 200;
                host.handle(Event::Tick);
            }
            1 => {
                if let Some(conn) = host.opening.pop_front() {
                    host.handle(Event::Connected { conn, versions: versions.clone() });
                }
            }
            2 => host.answer(*which, body),
            3 => {
                if let Some(conn) = host.pick(*which) {
                    host.handle(Event::Received { conn, frame: body.to_vec() });
                }
            }
            4 => {
                if let Some(conn) = host.pick(*which) {
                    host.conns.remove(&conn);
                    host.handle(Event::Disconnected { conn, reason: "gone".to_owned(), fatal: None });
                }
            }
            5 => {
                host.member.begin(host.ticket);
            }
            6 => {
                let protocols = names.iter().map(|name| (name.clone(), body.to_vec())).collect();
                host.handle(Event::Done { ticket: host.ticket, protocols });
            }
            7 => {
                let assignments = vec![("m".to_owned(), body.to_vec())];
                host.handle(Event::Planned { ticket: host.plan, assignments });
            }
            8 => host.handle(Event::PlanFailed { ticket: host.plan, message: "no".to_owned() }),
            9 => {
                let offset = |number: &u8| CommitOffset {
                    topic: "t".to_owned(),
                    partition: i32::from(*number),
                    offset: 1,
                    leader_epoch: -1,
                    metadata: None,
                };
                host.handle(Event::Commit { id: 1, offsets: body.iter().map(offset).collect(), timeout_ms: 9_000 });
            }
            10 => {
                let numbers = body.iter().map(|&number| i32::from(number)).collect();
                let partitions = vec![("t".to_owned(), numbers)];
                host.handle(Event::FetchOffsets { id: 2, partitions, timeout_ms: 9_000 });
            }
            11 => {
                let topics = [&["t"][..], &["t", "u"], &["u"], &[]][usize::from(*which % 4)];
                let topics = topics.iter().map(|&topic| topic.to_owned()).collect();
                host.handle(match which & 8 {
                    0 => Event::Subscribe { topics, all_topics: which & 4 != 0 },
                    _ => Event::Matched { topics },
                });
            }
            12 => host.handle(Event::Unsubscribe),
            13 => host.handle(Event::Rejoin { reason: String::from_utf8_lossy(body).into_owned() }),
            14 => host.handle(Event::Poll),
            15 => host.handle(Event::GroupRebalances { generation: i32::from(*which) - 1 }),
            16 => host.handle(Event::Neighbours { place: u32::from(*which), count: u32::from(*length) }),
            _ => host.handle(Event::Close { timeout_ms: u64::from(*which) * 100 }),
        }
    }
}
