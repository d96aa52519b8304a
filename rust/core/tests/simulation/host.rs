//! The process around a member: the application's thread, which polls, reads, commits and runs callbacks.

use crate::assignors::Memory;
use kafka_assignors_core::member::{
    Action, CommitOffset, Config, Event, Membership, Notice, NoticeKind, Partitions, RebalanceProtocol,
};
use kafka_assignors_core::protocol::ErrorCode;
use std::collections::BTreeMap;

/// One partition.
pub(crate) type Key = (String, i32);

/// A partition that the application may read.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// Unknown until the committed offset was fetched.
    pub(crate) position: Option<i64>,
    /// The ticket of the notice that added the partition.
    pub(crate) ticket: u64,
}

/// The current task of the application's thread.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// It waits for this commit before it revokes the partitions of the notice.
    Committing { notice: Notice, id: u64 },
    /// It runs callbacks until this time.
    Callback { notice: Notice, until: u64 },
}

/// The result of a commit: its error code, and the dropped partitions.
pub(crate) type Outcome = (ErrorCode, Vec<Key>);

/// The counters of the tests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) assigned: u32,
    pub(crate) revoked: u32,
    pub(crate) lost: u32,
    pub(crate) plans: u32,
    pub(crate) committed: u32,
    pub(crate) dropped: u32,
    pub(crate) warnings: u32,
    pub(crate) poll_exceeded: u32,
}

/// A process.
pub(crate) struct Host {
    pub(crate) config: Config,
    pub(crate) member: Membership,
    /// Counts restarts.
    pub(crate) life: u32,
    pub(crate) alive: bool,
    /// Stopped as by SIGSTOP: neither the application nor the member runs.
    pub(crate) frozen: bool,
    /// Whether the application polls.
    pub(crate) polls: bool,
    pub(crate) topics: Vec<String>,
    /// Set for a subscription by expression: every topic with this prefix.
    pub(crate) prefix: Option<String>,
    pub(crate) memory: Memory,
    pub(crate) held: BTreeMap<Key, Held>,
    pub(crate) notice: Option<Notice>,
    pub(crate) work: Option<Work>,
    pub(crate) callback_ms: u64,
    pub(crate) plan_ms: u64,
    pub(crate) plan_fails: bool,
    pub(crate) turn: u64,
    pub(crate) next_id: u64,
    fetching: BTreeMap<u64, (u64, Partitions)>,
    pub(crate) results: BTreeMap<u64, Outcome>,
    pub(crate) fatal: Option<(ErrorCode, String)>,
    pub(crate) errors: Vec<(ErrorCode, String)>,
    pub(crate) converted: u32,
    pub(crate) closed: bool,
    pub(crate) counts: Counts,
    pub(crate) log: Vec<String>,
    /// The times of requests and of opened connections, to check the rates.
    pub(crate) sent: Vec<u64>,
    pub(crate) connects: Vec<u64>,
}

pub(crate) fn flat(partitions: &Partitions) -> impl Iterator<Item = Key> + '_ {
    partitions.iter().flat_map(|(topic, numbers)| numbers.iter().map(|&number| (topic.clone(), number)))
}

impl Host {
    pub(crate) fn new(config: Config, now: u64, topics: &[&str]) -> Self {
        Self {
            member: Membership::new(config.clone(), now).unwrap(),
            config,
            life: 0,
            alive: true,
            frozen: false,
            polls: true,
            topics: topics.iter().map(|&topic| topic.to_owned()).collect(),
            prefix: None,
            memory: Memory::default(),
            held: BTreeMap::new(),
            notice: None,
            work: None,
            callback_ms: 5,
            plan_ms: 1,
            plan_fails: false,
            turn: 0,
            next_id: 1,
            fetching: BTreeMap::new(),
            results: BTreeMap::new(),
            fatal: None,
            errors: Vec::new(),
            converted: 0,
            closed: false,
            counts: Counts::default(),
            log: Vec::new(),
            sent: Vec::new(),
            connects: Vec::new(),
        }
    }

    /// The process restarts with empty memory.
    pub(crate) fn restart(&mut self, now: u64) {
        let topics: Vec<String> = self.topics.clone();
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        let mut config = self.config.clone();
        config.seed = config.seed.wrapping_add(1);
        let fresh = Self::new(config, now, &topics);
        *self = Self {
            life: self.life + 1,
            turn: self.turn + 1,
            prefix: self.prefix.take(),
            callback_ms: self.callback_ms,
            plan_ms: self.plan_ms,
            ..fresh
        };
    }

    pub(crate) fn commit_event(&mut self, keys: impl Iterator<Item = Key>, timeout_ms: u64) -> Option<(u64, Event)> {
        let offsets: Vec<CommitOffset> = keys
            .filter_map(|(topic, partition)| {
                let offset = self.held.get(&(topic.clone(), partition))?.position?;
                Some(CommitOffset { topic, partition, offset, leader_epoch: -1, metadata: None })
            })
            .collect();
        if offsets.is_empty() {
            return None;
        }
        self.next_id += 1;
        Some((self.next_id, Event::Commit { id: self.next_id, offsets, timeout_ms }))
    }

    /// Begins the waiting notice, if it is still valid. Returns an event for the member if the callback commits.
    pub(crate) fn take_notice(&mut self, now: u64) -> Option<Event> {
        let notice = self.notice.take()?;
        if !self.member.begin(notice.ticket) {
            return None;
        }
        if !notice.lost && !notice.revoked.is_empty() {
            let keys: Vec<Key> = flat(&notice.revoked).collect();
            if let Some((id, event)) = self.commit_event(keys.into_iter(), 3_000) {
                self.work = Some(Work::Committing { notice, id });
                return Some(event);
            }
        }
        self.work = Some(Work::Callback { notice, until: now + self.callback_ms });
        None
    }

    /// The commit for which a callback waited has ended.
    pub(crate) fn commit_done(&mut self, now: u64, id: u64) {
        if let Some(Work::Committing { notice, id: waited }) = &self.work
            && *waited == id
        {
            self.work = Some(Work::Callback { notice: notice.clone(), until: now + self.callback_ms });
        }
    }

    /// The callbacks have ended. Returns the released partitions, the added partitions, and the events for the member.
    pub(crate) fn finish(&mut self, notice: Notice) -> (Vec<Key>, Vec<Key>, Vec<Event>) {
        let gone: Vec<Key> = flat(&notice.revoked).collect();
        for key in &gone {
            assert!(self.held.remove(key).is_some(), "{key:?} is given up but was not held");
        }
        if !gone.is_empty() {
            if notice.lost {
                self.counts.lost += 1;
            } else {
                self.counts.revoked += 1;
            }
        }
        let added: Vec<Key> = flat(&notice.added).collect();
        for key in &added {
            let fresh = self.held.insert(key.clone(), Held { position: None, ticket: notice.ticket });
            assert!(fresh.is_none(), "{key:?} is given but was held");
        }
        let mut events = Vec::new();
        match notice.kind {
            NoticeKind::Assign => {
                self.counts.assigned += 1;
                self.memory.owned.clone_from(&notice.owned);
                self.memory.generation = Some(notice.generation);
                let held: Vec<Key> = self.held.keys().cloned().collect();
                assert_eq!(held, flat(&notice.owned).collect::<Vec<_>>(), "what is held is what is owned");
                if !notice.added.is_empty() {
                    self.next_id += 1;
                    self.fetching.insert(self.next_id, (notice.ticket, notice.added.clone()));
                    let partitions = notice.added.clone();
                    events.push(Event::FetchOffsets { id: self.next_id, partitions, timeout_ms: 60_000 });
                }
                events.push(Event::Done { ticket: notice.ticket, protocols: Vec::new() });
            }
            NoticeKind::Prepare => {
                if notice.lost && self.config.rebalance_protocol() == RebalanceProtocol::Cooperative {
                    self.memory = Memory::default();
                }
                let protocols = self.config.assignors.iter().map(|assignor| {
                    let bytes = crate::assignors::metadata(&assignor.name, &notice.topics, &notice.owned, &self.memory);
                    (assignor.name.clone(), bytes)
                });
                events.push(Event::Done { ticket: notice.ticket, protocols: protocols.collect() });
            }
            NoticeKind::Leave => events.push(Event::Done { ticket: notice.ticket, protocols: Vec::new() }),
        }
        (gone, added, events)
    }

    pub(crate) fn offsets_fetched(&mut self, action: Action) -> Option<Event> {
        let Action::OffsetsFetched { id, code, offsets } = action else { return None };
        let (ticket, partitions) = self.fetching.remove(&id)?;
        if code == ErrorCode::REQUEST_TIMED_OUT && !self.held.is_empty() && !self.closed {
            self.next_id += 1;
            self.fetching.insert(self.next_id, (ticket, partitions.clone()));
            return Some(Event::FetchOffsets { id: self.next_id, partitions, timeout_ms: 60_000 });
        }
        for offset in offsets {
            assert_eq!(offset.code, ErrorCode::NONE, "{}-{}", offset.topic, offset.partition);
            let held = self.held.get_mut(&(offset.topic, offset.partition));
            if let Some(held) = held.filter(|held| held.ticket == ticket) {
                held.position.get_or_insert(offset.offset.max(0));
            }
        }
        None
    }
}
