//! The connections between hosts and brokers, and the delivery or loss of their bytes.

use super::{Happening, World};
use kafka_assignors_core::member::Event;
use kafka_assignors_core::protocol::ApiKey;

/// A connection.
pub(super) struct Link {
    pub(super) host: usize,
    pub(super) life: u32,
    /// The host's number of the connection.
    pub(super) conn: u64,
    pub(super) node: i32,
    pub(super) open: bool,
    /// The time at which the last bytes arrive, each way: later bytes must not arrive earlier.
    pub(super) up: u64,
    pub(super) down: u64,
    /// The bytes of an incomplete frame for the broker.
    pub(super) buffer: Vec<u8>,
}

/// The largest delay of bytes on a connection that the host has closed.
const LATE_MS: u64 = 3_000;

impl World {
    /// Breaks every connection of a node, or of a host.
    pub(crate) fn cut(&mut self, which: impl Fn(usize, i32) -> bool) {
        let links: Vec<u64> =
            self.links.iter().filter(|(_, link)| which(link.host, link.node)).map(|(&number, _)| number).collect();
        for number in links {
            self.break_link(number);
        }
    }

    pub(super) fn break_link(&mut self, number: u64) {
        let (host_at, broker_at) = (self.now + self.delay(), self.now + self.delay());
        if let Some(link) = self.links.get_mut(&number) {
            link.open = false;
            self.at(host_at, Happening::HostLoses(number));
            self.at(broker_at, Happening::BrokerLoses(number));
        }
    }

    pub(super) fn delay(&mut self) -> u64 {
        // Usually 1 ms, sometimes the configured delay.
        if self.random.one_in(8) { self.random.between(1, self.weather.delay.max(1)) } else { 1 }
    }

    pub(super) fn link_of(&self, host: usize, conn: u64) -> Option<u64> {
        let number = *self.numbers.get(&(host, self.hosts[host].life, conn))?;
        self.links.get(&number).is_some_and(|link| link.conn == conn).then_some(number)
    }

    pub(super) fn send(&mut self, host: usize, conn: u64, bytes: Vec<u8>) {
        let Some(number) = self.link_of(host, conn) else { panic!("sent on a connection that is closed") };
        if self.unreachable.contains(&host) {
            return;
        }
        let delay = self.delay();
        let Some(link) = self.links.get_mut(&number).filter(|link| link.open) else { return };
        link.up = link.up.max(self.now + delay);
        let arrives = link.up;
        match self.weather.cut {
            cut if cut > 0 && self.random.one_in(cut) => {
                let late = self.random.between(1, LATE_MS);
                match self.random.below(3) {
                    // The response is lost.
                    0 => self.arrive_without_answer(number, bytes, arrives, arrives + 1),
                    // The host closes the connection and repeats the request on another one, and the first copy arrives
                    // later: a duplicate, out of order.
                    1 => self.arrive_without_answer(number, bytes, arrives + late, self.now + 1),
                    // The request is lost.
                    _ => self.break_link(number),
                }
            }
            _ => self.at(arrives, Happening::ToBroker(number, bytes)),
        }
    }

    fn arrive_without_answer(&mut self, number: u64, bytes: Vec<u8>, arrives: u64, host_loses: u64) {
        self.at(arrives, Happening::ToBroker(number, bytes));
        self.at(host_loses, Happening::HostLoses(number));
        self.at(arrives.max(host_loses) + 1, Happening::BrokerLoses(number));
    }

    pub(super) fn deliver(&mut self, replies: Vec<(u64, Vec<u8>)>) {
        for (number, frame) in replies {
            let delay = self.delay();
            let Some(link) = self.links.get_mut(&number).filter(|link| link.open) else { continue };
            link.down = link.down.max(self.now + delay);
            let (arrives, host) = (link.down, link.host);
            if self.unreachable.contains(&host) {
                continue;
            }
            self.at(arrives, Happening::ToHost(number, frame));
        }
        let deadline = self.cluster.broker.next_deadline();
        self.broker_deadline = deadline;
    }

    pub(super) fn accept(&mut self, number: u64) {
        if let Some(link) = self.links.get_mut(&number).filter(|link| !link.open && link.conn != u64::MAX) {
            link.open = true;
            let node = link.node;
            self.cluster.open(number, node);
        }
    }

    pub(super) fn tell_link(&mut self, number: u64, event: impl FnOnce(u64) -> Event) {
        let Some(link) = self.links.get(&number) else { return };
        let (host, life, conn) = (link.host, link.life, link.conn);
        if conn != u64::MAX && self.hosts[host].life == life {
            self.handle(host, event(conn));
        }
    }

    pub(super) fn reach_broker(&mut self, number: u64, bytes: &[u8]) {
        let Some(link) = self.links.get_mut(&number) else { return };
        link.buffer.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Some(length) = link.buffer.first_chunk::<4>().map(|length| u32::from_be_bytes(*length) as usize) {
            if link.buffer.len() < 4 + length {
                break;
            }
            frames.push(link.buffer[4..4 + length].to_vec());
            link.buffer.drain(..4 + length);
        }
        for frame in frames {
            match self.cluster.arrive(self.now, number, frame) {
                Ok(replies) => self.deliver(replies),
                Err(()) => self.break_link(number),
            }
        }
    }
}

/// Whether a frame (with its length) replaces the member's claims or offsets on the coordinator. The protocol has no
/// order of such requests, so no client can repair the effect of a late one.
pub(super) fn is_state(bytes: &[u8]) -> bool {
    [ApiKey::JoinGroup, ApiKey::OffsetCommit].iter().any(|api| bytes[4..6] == api.code().to_be_bytes())
}
