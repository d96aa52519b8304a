//! The invariants at any time, and the conditions at the end.

use crate::host::{Host, Key};
use crate::world::World;
use kafka_assignors_core::member::Stage;
use std::collections::{BTreeMap, BTreeSet};

impl World {
    /// A taken partition must not belong to another current member. Another owner is allowed only if the coordinator
    /// has removed it from the group: it will learn of that later.
    pub(crate) fn check_taken(&mut self, host: usize, generation: i32, key: &Key) {
        let others = self.owners.get(key).into_iter().flatten().any(|&other| other != host);
        let groups = if others { self.cluster.broker.groups() } else { Vec::new() };
        let counts = |id: &str| groups.iter().any(|group| group.members.iter().any(|member| member.member_id == id));
        for &other in self.owners.get(key).into_iter().flatten().filter(|&&other| other != host) {
            let (id, theirs) = self.hosts[other].member.identity();
            // A static member that missed the rebalance stays in the group until its session ends.
            let missed = theirs < generation && self.hosts[other].config.group_instance_id.is_some();
            if !missed && !id.is_empty() && theirs >= 0 && counts(id) && counts(self.hosts[host].member.identity().0) {
                self.faults.push(format!(
                    "{}: {key:?} is taken by {host} in generation {generation} while {other} in {theirs} has it",
                    self.now
                ));
            }
        }
        let life = self.hosts[host].life;
        let before = self.taken.insert((generation, key.clone()), (host, life));
        if let Some((other, _)) = before.filter(|&before| before != (host, life))
            && self.hosts[other].config.group_instance_id.is_none()
        {
            self.faults.push(format!("{}: {key:?} was given to {other} and {host} in {generation}", self.now));
        }
    }

    /// No host reads after the coordinator may have removed it.
    pub(crate) fn check_reading(&mut self, host: usize) {
        let process = &self.hosts[host];
        let session_ms = process.config.session_timeout_ms;
        if process.held.values().any(|held| held.position.is_some())
            && self.is_overdue((host, process.life), session_ms)
        {
            self.faults.push(format!("{}: {host} reads {:?} past its session", self.now, process.held.keys()));
        }
    }

    /// After its first generation a member always has an identity for transactions. Without one, a broker would not
    /// fence its offsets: it accepts offsets without a member id from any client.
    pub(crate) fn check_fencing(&mut self, host: usize) {
        let process = &self.hosts[host];
        let named = process.member.fencing().map(|(id, generation)| (id.to_owned(), generation));
        let life = (host, process.life);
        let was = self.fenced.get(&life).cloned();
        let (id, generation) = process.member.identity();
        let wrong = match &named {
            None => was.is_some() || generation >= 0,
            Some((named_id, named_in)) => {
                let current = generation < 0 || (named_id.as_str(), *named_in) == (id, generation);
                named_id.is_empty() || *named_in < 0 || !current
            }
        };
        if wrong {
            self.faults.push(format!("{}: {host} names {named:?} after {was:?} as {id:?} in {generation}", self.now));
        }
        if let Some(named) = named {
            self.fenced.insert(life, named);
        }
    }

    /// Whether all living members are stable and together own all partitions.
    pub(crate) fn settled(&self) -> bool {
        let live: Vec<&Host> =
            self.hosts.iter().filter(|host| host.alive && host.fatal.is_none() && !host.closed).collect();
        if live.iter().any(|host| host.member.stage() != Stage::Stable || host.work.is_some() || host.notice.is_some())
        {
            return false;
        }
        let mut wanted: BTreeSet<Key> = BTreeSet::new();
        let topics: BTreeMap<String, u32> = self.cluster.broker.topics().into_iter().collect();
        for topic in live.iter().flat_map(|host| &host.topics) {
            let count = topics.get(topic).copied().unwrap_or(0);
            wanted.extend((0..count as i32).map(|number| (topic.clone(), number)));
        }
        let held: Vec<&Key> = live.iter().flat_map(|host| host.held.keys()).collect();
        let distinct: BTreeSet<&Key> = held.iter().copied().collect();
        distinct.len() == held.len() && wanted.iter().eq(distinct.iter().copied())
    }

    /// The invariants that must hold at any time.
    #[track_caller]
    pub(crate) fn check(&self) {
        assert!(self.faults.is_empty(), "{:#?}\n{}", self.faults, self.describe());
        assert!(self.cluster.rewinds.is_empty(), "{:#?}\n{}", self.cluster.rewinds, self.describe());
        for (number, host) in self.hosts.iter().enumerate() {
            for (what, times, most) in [("requests", &host.sent, 60), ("connections", &host.connects, 20)] {
                let mut first = 0;
                for (at, &time) in times.iter().enumerate() {
                    while time - times[first] >= 1_000 {
                        first += 1;
                    }
                    assert!(at - first < most, "host {number}: {most} {what} in the second before {time}");
                }
            }
        }
    }

    pub(crate) fn describe(&self) -> String {
        let mut out =
            format!("at {}: {:?}\n{:?}\n", self.now, self.cluster.broker.groups(), self.cluster.broker.topics());
        for (number, host) in self.hosts.iter().enumerate() {
            out += &format!(
                "host {number} alive {} closed {} frozen {} polls {} {:?} {:?} {:?} held {:?} notice {:?} work {:?} fatal {:?} {:?}\n  {}\n",
                host.alive,
                host.closed,
                host.frozen,
                host.polls,
                host.member.stage(),
                host.member.identity(),
                host.topics,
                host.held.keys().collect::<Vec<_>>(),
                host.notice,
                host.work,
                host.fatal,
                host.counts,
                host.log.iter().rev().take(12).cloned().collect::<Vec<_>>().join("\n  "),
            );
        }
        out
    }
}
