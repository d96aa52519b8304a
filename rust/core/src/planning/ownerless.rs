//! The expected time that partitions are without an owner in a rebalance, from the intervals of heartbeats.
//!
//! A member learns of a rebalance only from the answer to a heartbeat, so nearly all of that time is a wait for heartbeats. Times
//! are in milliseconds; sums are partitions × milliseconds. Expired sessions do not count: a member that leaves sends a request.

/// The protocol by which partitions go from one member to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handover {
    /// The classic protocol: members give up all partitions before a rebalance.
    Eager,
    /// The classic protocol: members give up the partitions that move after one rebalance, and a second one assigns them
    /// (KIP-429).
    Cooperative,
    /// The protocol in which the broker assigns (KIP-848).
    Consumer,
}

/// The intervals after which members learn of a rebalance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intervals {
    /// Between two heartbeats of a member of the classic protocol: `heartbeat.interval.ms`.
    pub heartbeat: f64,
    /// From the beginning of a generation to its first heartbeat.
    pub first_heartbeat: f64,
    /// Whether the members' heartbeats are independent of each other in time. At the start of a generation they begin together;
    /// with most clients they drift apart.
    pub apart: bool,
    /// Between two heartbeats of a member of the consumer protocol.
    pub consumer_heartbeat: f64,
    /// Between two heartbeats of such a member while it waits for partitions.
    pub waiting_heartbeat: f64,
    /// From a request until the application acts on its answer.
    pub round_trip: f64,
}

impl Default for Intervals {
    /// The defaults of librdkafka and of the broker.
    fn default() -> Self {
        Self {
            heartbeat: 3_000.0,
            first_heartbeat: 3_000.0,
            apart: false,
            consumer_heartbeat: 5_000.0,
            waiting_heartbeat: 5_000.0,
            round_trip: 5.0,
        }
    }
}

/// The changes of a rebalance. Only partitions that have an owner after it count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// The members that are in the group before and after the rebalance.
    pub staying: u32,
    /// The staying members that give a partition to another member.
    pub losing: u32,
    /// The members that are in the group only after the rebalance.
    pub joining: u32,
    /// The partitions that staying members had before the rebalance.
    pub held: u64,
    /// The partitions of staying members that get another owner.
    pub given_up: u64,
    /// The partitions of members that left, and those without an owner, that staying members get.
    pub taken: u64,
    /// The partitions of members that left, and those without an owner, that joining members get.
    pub taken_by_joining: u64,
}

impl Intervals {
    /// The sum over the partitions of the expected time that each is without an owner. O(1).
    #[must_use]
    pub fn ownerless(&self, handover: Handover, changes: &Changes) -> f64 {
        let [held, given_up] = [changes.held, changes.given_up].map(|count| count as f64);
        let [taken, by_joining] = [changes.taken, changes.taken_by_joining].map(|count| count as f64);
        // Two requests one after the other: JoinGroup and SyncGroup, or the acknowledgement and another member's heartbeat.
        let exchange = 2.0 * self.round_trip;
        let half = self.heartbeat / 2.0;
        let last = self.last_to_hear(changes.staying);
        match handover {
            Handover::Eager => {
                // A member stops when it learns of the rebalance, on average after half an interval, and goes on when the last
                // member has learned of it.
                let stopped = if changes.staying == 0 { 0.0 } else { last - half };
                held * (stopped + exchange) + (taken + by_joining) * (last + exchange)
            }
            Handover::Cooperative => {
                given_up * (self.second_rebalance(changes) + exchange) + (taken + by_joining) * (last + exchange)
            }
            Handover::Consumer => {
                // Free partitions are in the first answer to a member that joins.
                given_up * (self.waiting_heartbeat / 2.0 + exchange)
                    + taken * (self.consumer_heartbeat / 2.0 + self.round_trip)
                    + by_joining * self.round_trip
            }
        }
    }

    /// The time from a change until the last of this many members has learned of it, in the classic protocol.
    fn last_to_hear(&self, members: u32) -> f64 {
        let members = f64::from(members);
        match self.apart {
            _ if members == 0.0 => 0.0,
            false => self.heartbeat / 2.0,
            // The mean of the largest of `members` independent times, each of them uniform within the interval.
            true => self.heartbeat * members / (members + 1.0),
        }
    }

    /// The time from the end of a cooperative group's first rebalance until all members have learned of the second one. Members
    /// that lose partitions begin the second one themselves.
    fn second_rebalance(&self, changes: &Changes) -> f64 {
        let all_begin_it = changes.joining == 0 && changes.losing >= changes.staying;
        // The first rebalance has just begun a generation for all members.
        if all_begin_it { 0.0 } else { self.first_heartbeat.min(self.heartbeat) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Intervals = Intervals {
        heartbeat: 3_000.0,
        first_heartbeat: 3_000.0,
        apart: true,
        consumer_heartbeat: 5_000.0,
        waiting_heartbeat: 500.0,
        round_trip: 10.0,
    };
    const TOGETHER: Intervals = Intervals { first_heartbeat: 500.0, apart: false, ..APART };

    // Nine members have 10 partitions each. A tenth joins and gets 9: each of the nine gives one up.
    const JOIN: Changes =
        Changes { staying: 9, losing: 9, joining: 1, held: 90, given_up: 9, taken: 0, taken_by_joining: 0 };
    // One of ten leaves: nine members take one each.
    const LEAVE: Changes =
        Changes { staying: 9, losing: 0, joining: 0, held: 81, given_up: 0, taken: 9, taken_by_joining: 0 };

    fn close(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-6, "{found}, not {wanted}");
    }

    #[test]
    fn an_eager_group_waits_for_the_last_one() {
        // The last of nine learns of it after 2,700 ms, each after 1,500 ms on average.
        close(APART.ownerless(Handover::Eager, &JOIN), 90.0 * (1_200.0 + 20.0));
        close(APART.ownerless(Handover::Eager, &LEAVE), 81.0 * (1_200.0 + 20.0) + 9.0 * (2_700.0 + 20.0));
        // All learn of it at the same moment.
        close(TOGETHER.ownerless(Handover::Eager, &JOIN), 90.0 * 20.0);
        close(TOGETHER.ownerless(Handover::Eager, &LEAVE), 81.0 * 20.0 + 9.0 * (1_500.0 + 20.0));
    }

    #[test]
    fn a_cooperative_group_waits_for_members_that_lose_nothing() {
        close(APART.ownerless(Handover::Cooperative, &JOIN), 9.0 * (3_000.0 + 20.0));
        close(APART.ownerless(Handover::Cooperative, &Changes { joining: 0, ..JOIN }), 9.0 * 20.0);
        close(TOGETHER.ownerless(Handover::Cooperative, &JOIN), 9.0 * (500.0 + 20.0));
        close(APART.ownerless(Handover::Cooperative, &LEAVE), 9.0 * (2_700.0 + 20.0));
    }

    #[test]
    fn members_of_the_consumer_protocol_wait_half_an_interval() {
        close(APART.ownerless(Handover::Consumer, &JOIN), 9.0 * (250.0 + 20.0));
        close(APART.ownerless(Handover::Consumer, &LEAVE), 9.0 * (2_500.0 + 10.0));
        let first = Changes { taken_by_joining: 90, ..Changes::default() };
        close(APART.ownerless(Handover::Consumer, &first), 90.0 * 10.0);
    }

    #[test]
    fn nobody_waits_in_a_group_without_members() {
        let first = Changes { taken_by_joining: 5, ..Changes::default() };
        for intervals in [APART, TOGETHER] {
            close(intervals.ownerless(Handover::Eager, &first), 5.0 * 20.0);
            close(intervals.ownerless(Handover::Cooperative, &first), 5.0 * 20.0);
            close(intervals.ownerless(Handover::Eager, &Changes::default()), 0.0);
        }
    }
}
