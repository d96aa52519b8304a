//! A member of a consumer group: events in, actions out as dicts. Sockets, time and threads are Python's.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kafka_assignors_core::member::{
    Action, Assignor, CommitOffset, Config, ConsumerConfig, ConsumerMembership, Converted, Event, Level,
    Membership as Classic, Notice, NoticeKind, Partitions, RackSet, RebalanceProtocol,
};
use kafka_assignors_core::protocol::ErrorCode;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyList};

use crate::errors::OptionError;

/// Wire name, cooperative, settles claims, uses racks.
type AssignorRow = (String, bool, bool, bool);

/// Topic, partition, offset, leader epoch, metadata.
type OffsetRow = (String, i32, i64, i32, Option<String>);

/// A member of a consumer group without I/O: events in, actions out. It has no socket, thread, clock or randomness.
///
/// # Driving it
/// One thread (the membership thread) owns the sockets. `now_ms` is any clock in milliseconds that never runs backwards
/// (`time.monotonic`). Every method that takes `now_ms` returns a list of actions: dicts with the key `"action"`. The
/// caller carries them out **in the order of the list, and lists in the order of the calls**. Therefore the
/// application's thread passes its list to the membership thread while it still holds the lock of the call. Any thread
/// may call any method; a lock serializes the calls, and no call waits for I/O. After each call read `next_deadline()`
/// and call `tick` at that time; `None` means that only an event can cause an action.
///
/// Actions for the membership thread:
/// - `connect` (`conn`, `node_id`, `host`, `port`, `role`): open a connection, TCP, TLS, ApiVersions and SASL included,
///   and call `connected(conn, versions)` with ApiVersions' ranges, or `disconnected(conn, reason, fatal_code)`. Pass
///   `fatal_code` (58, 33, 34) only if every retry would fail too: wrong credentials, a refused certificate. A
///   connection that is not open after `connect_timeout_ms` gets the action `close`. The transport renews the
///   authentication (KIP-368).
/// - `send` (`conn`, `data`): send the bytes, a frame with its length. Pass each complete response frame, without its
///   length, to `received(conn, frame)`. The transport limits the length; the member checks the correlation id.
/// - `close` (`conn`, `reason`): close the connection, or stop opening it. Do not call `disconnected` for it. No `send`
///   for this connection follows.
/// - `topics` (`topics`: (name, is internal)): all topics of the cluster, for a subscription by expression. Match them
///   and call `matched` with the result before the next action of the list is carried out. An unchanged result has no
///   effect.
/// - `plan` (`ticket`, `generation`, `protocol`, `members`, `topics`): this member is the leader. Compute the
///   assignment on a third thread, because the membership thread must continue to send heartbeats. Then call
///   `planned(ticket, assignments)` or `plan_failed(ticket, message)`; a late call is ignored. `members` is the
///   argument of `perform_assignment`. `topics` maps each existing topic to its partition count and, for each
///   partition, the racks of its replicas (empty if no broker has a rack).
/// - `group-rebalances` (`generation`): the coordinator reported a rebalance. Call `group_rebalances(generation)` on
///   the other members of the group in this process: they send a heartbeat at once. At most one for each generation.
///   `neighbours(place, count)` spreads the heartbeats of these members over the interval, so that one of them learns
///   of a rebalance early.
/// - `log` (`level`: "info" or "warning", `message`).
///
/// Actions for the application's thread:
/// - `notify`: a change of the owned partitions. Carry it out inside `poll`, `consume`, `close` or `unsubscribe`. Keep
///   only the notice with the highest ticket: it replaces the earlier ones. First call `begin(ticket)`. **If it returns
///   false, drop the notice**: a later one has replaced it. Otherwise, by `kind`:
///   - `"prepare"`: commit if auto-commit is on; call on_revoke for `revoked` unless it is empty (if `lost`: on_lost,
///     without a commit); stop reading these partitions. Then call `done(ticket, protocols)` with `(name, metadata)`
///     for **every assignor in the order given to the constructor**. The metadata contains `topics`, and `owned` as the
///     owned partitions. If `revoked` is empty, any thread may call `done` at once. In an eager group `revoked`
///     contains all partitions: stop delivering, but keep positions and fetched records until the next `"assign"`,
///     because it usually assigns the same partitions again.
///   - `"assign"`: call on_revoke for `revoked` (after the commit, if auto-commit is on) and release them; store
///     `owned` and `generation` (the assignor's `on_assignment(assignment, generation, state)`); call on_assign for
///     `added`; then call `done(ticket)`. Starting offsets come from `fetch_offsets`. Both lists may be empty.
///     `began_ms`, `joined_ms`, `attempts` and `trigger` describe the rebalance, for a report.
///   - `"leave"`: before leaving, or after `fatal`: as "prepare", but `done(ticket)` without metadata.
///   Call `done` even if a callback raises: without it the rebalance waits. Heartbeats continue during a callback.
///   Lists of partitions are `[(topic, [numbers])]`, ascending.
/// - `commit-done` (`id`, `error_code`, `partitions`: (topic, partition, error code), `dropped`: (topic, partition)):
///   the result of `commit(id, …)`; exactly one for each call. `error_code` 0: the codes of the partitions count. 7:
///   timeout. 27: refused, because the callback that waits for the commit delays the rebalance. 22 or 25: the member is
///   no longer in its generation. `dropped`: partitions that the member has not owned continuously since the call.
/// - `offsets-fetched` (`id`, `error_code`, `offsets`: (topic, partition, offset or -1, leader epoch or -1, metadata,
///   error code)): the result of `fetch_offsets(id, …)`; exactly one for each call. A rebalance does not cancel a
///   fetch: the host stores the ticket of the notice and checks whether the partition is still owned.
/// - `error` (`error_code`, `message`): raise it once from poll; the member stays in the group.
/// - `fatal` (`error_code`, `message`): raise it from poll. The member has left the group for good; every call except
///   `close` has no effect. A "leave" notice with `lost` follows if the member owned partitions.
/// - `max-poll-exceeded` (`interval_ms`): the application did not poll; after the next `poll` a "prepare" with `lost`
///   follows.
/// - `converted-by-broker` (`message`): the broker assigns the partitions of the group (KIP-848); `fatal` follows
///   unless `carry_on_when_converted`.
/// - `closed`: the last action; the connections were closed before.
///
/// The application's thread calls `poll(now_ms)` each time it requests records. `close(now_ms, timeout_ms)` causes the
/// "leave" notice, LeaveGroup and `closed`; `closed` comes at the latest when the timeout is over and the notice is
/// done. Before the first subscription, commits carry no member and no generation, as those of a consumer with manual
/// assignment.
///
/// # The consumer protocol
/// `Membership.consumer` makes a member of KIP-848's protocol, in which the broker plans, with the same methods and
/// actions. Its generation is the member's epoch. It has no `plan`, `topics` and `converted-by-broker`, and no notice
/// of the kind `"prepare"`; lost partitions come with `"leave"`, `lost` and the generation -1, and the member joins
/// again after their `done`. `group-rebalances` may come several times for a generation. Of the methods, `matched`,
/// `planned`, `plan_failed` and `rejoin` have no effect.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Membership(Mutex<Core>);

/// The member of either protocol.
#[expect(clippy::large_enum_variant, reason = "one value for each consumer")]
enum Core {
    Classic(Classic),
    Consumer(ConsumerMembership),
}

macro_rules! either {
    ($core:expr, $member:ident => $value:expr) => {
        match &mut *$core {
            Core::Classic($member) => $value,
            Core::Consumer($member) => $value,
        }
    };
}

macro_rules! dict {
    ($py:expr, $($key:literal: $value:expr),* $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item($key, $value)?;)*
        dict
    }};
}

impl Membership {
    /// Ignores the poison of a panic in another thread's call: the core's invariants hold between calls.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle<'py>(&self, py: Python<'py>, now_ms: u64, event: Event) -> PyResult<Bound<'py, PyList>> {
        // Detach before taking the lock. A thread that waited for the lock while attached to the interpreter could
        // deadlock with the owner of the lock.
        let actions = py.detach(|| either!(self.core(), member => member.handle(now_ms, event)));
        action_list(py, actions)
    }
}

fn action_list(py: Python<'_>, actions: Vec<Action>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for action in actions {
        list.append(to_dict(py, action)?)?;
    }
    Ok(list)
}

fn notice_dict(py: Python<'_>, notice: Notice) -> PyResult<Bound<'_, PyDict>> {
    let kind = match notice.kind {
        NoticeKind::Prepare => "prepare",
        NoticeKind::Assign => "assign",
        NoticeKind::Leave => "leave",
    };
    Ok(dict!(py,
        "action": "notify",
        "ticket": notice.ticket,
        "kind": kind,
        "lost": notice.lost,
        "revoked": notice.revoked,
        "added": notice.added,
        "owned": notice.owned,
        "generation": notice.generation,
        "member_id": notice.member_id,
        "protocol": notice.protocol,
        "assignment": PyBytes::new(py, &notice.assignment),
        "topics": notice.topics,
        "began_ms": notice.course.began_at,
        "joined_ms": notice.course.joined_at,
        "attempts": notice.course.attempts,
        "trigger": notice.course.trigger.name(),
    ))
}

/// A set of racks as a frozenset. Partitions that share a set in the core share the frozenset, because each takes 216
/// bytes. The key in `sets` is the address of the core's set. The action keeps the core's sets alive, so two sets never
/// have the same address.
fn rack_set<'py>(
    py: Python<'py>,
    sets: &mut HashMap<*const Arc<str>, Bound<'py, PyFrozenSet>>,
    set: &RackSet,
) -> PyResult<Bound<'py, PyFrozenSet>> {
    Ok(match sets.entry(set.as_ptr()) {
        Entry::Occupied(made) => made.get().clone(),
        Entry::Vacant(place) => place.insert(PyFrozenSet::new(py, set.iter().map(|rack| &**rack))?).clone(),
    })
}

fn to_dict(py: Python<'_>, action: Action) -> PyResult<Bound<'_, PyDict>> {
    Ok(match action {
        Action::Connect { conn, node_id, host, port, role } => dict!(py,
            "action": "connect", "conn": conn, "node_id": node_id, "host": host, "port": port, "role": role.name(),
        ),
        Action::Send { conn, bytes } => dict!(py, "action": "send", "conn": conn, "data": PyBytes::new(py, &bytes)),
        Action::Close { conn, reason } => dict!(py, "action": "close", "conn": conn, "reason": reason),
        Action::Topics { topics } => dict!(py, "action": "topics", "topics": topics),
        Action::Notify(notice) => notice_dict(py, notice)?,
        Action::Plan { ticket, generation, protocol, members, topics } => {
            let rows = PyList::empty(py);
            for member in members {
                rows.append((member.member_id, member.group_instance_id, PyBytes::new(py, &member.metadata)))?;
            }
            let counts = PyDict::new(py);
            let mut sets = HashMap::new();
            for topic in topics {
                let racks = PyList::empty(py);
                for set in &topic.racks {
                    racks.append(rack_set(py, &mut sets, set)?)?;
                }
                counts.set_item(topic.name, (topic.partitions, racks))?;
            }
            dict!(py,
                "action": "plan", "ticket": ticket, "generation": generation, "protocol": protocol, "members": rows,
                "topics": counts,
            )
        }
        Action::CommitDone { id, code, partitions, dropped } => {
            let partitions: Vec<_> =
                partitions.into_iter().map(|(topic, number, code)| (topic, number, code.0)).collect();
            dict!(py,
                "action": "commit-done", "id": id, "error_code": code.0, "partitions": partitions, "dropped": dropped,
            )
        }
        Action::OffsetsFetched { id, code, offsets } => {
            let row = |offset: kafka_assignors_core::member::FetchedOffset| {
                (offset.topic, offset.partition, offset.offset, offset.leader_epoch, offset.metadata, offset.code.0)
            };
            let offsets: Vec<_> = offsets.into_iter().map(row).collect();
            dict!(py, "action": "offsets-fetched", "id": id, "error_code": code.0, "offsets": offsets)
        }
        Action::MaxPollExceeded { interval_ms } => {
            dict!(py, "action": "max-poll-exceeded", "interval_ms": interval_ms)
        }
        Action::GroupRebalances { generation } => dict!(py, "action": "group-rebalances", "generation": generation),
        Action::ConvertedByBroker { message } => dict!(py, "action": "converted-by-broker", "message": message),
        Action::Error { code, topic, message } => {
            dict!(py, "action": "error", "error_code": code.0, "topic": topic, "message": message)
        }
        Action::Fatal { code, message } => {
            dict!(py, "action": "fatal", "error_code": code.0, "message": message)
        }
        Action::Log { level, message } => {
            let level = match level {
                Level::Info => "info",
                Level::Warning => "warning",
            };
            dict!(py, "action": "log", "level": level, "message": message)
        }
        Action::Closed => dict!(py, "action": "closed"),
    })
}

fn to_partitions(given: Vec<(String, Vec<i32>)>) -> Partitions {
    let mut merged: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for (topic, numbers) in given {
        merged.entry(topic).or_default().extend(numbers);
    }
    for numbers in merged.values_mut() {
        numbers.sort_unstable();
        numbers.dedup();
    }
    merged.into_iter().collect()
}

#[pymethods]
impl Membership {
    #[new]
    #[pyo3(signature = (
        *, now_ms, bootstrap, group_id, assignors, client_id = None, group_instance_id = None,
        session_timeout_ms = 45_000, heartbeat_interval_ms = 3_000, early_heartbeat_ms = 500,
        max_poll_interval_ms = 300_000, rebalance_timeout_ms = None, request_timeout_ms = 60_000, connect_timeout_ms = 30_000,
        metadata_refresh_ms = 300_000, backoff_ms = 100, max_backoff_ms = 1_000, carry_on_when_converted = false, seed = 0,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, one for each setting")]
    fn new(
        now_ms: u64,
        bootstrap: Vec<(String, i32)>,
        group_id: String,
        assignors: Vec<AssignorRow>,
        client_id: Option<String>,
        group_instance_id: Option<String>,
        session_timeout_ms: u64,
        heartbeat_interval_ms: u64,
        early_heartbeat_ms: u64,
        max_poll_interval_ms: u64,
        rebalance_timeout_ms: Option<u64>,
        request_timeout_ms: u64,
        connect_timeout_ms: u64,
        metadata_refresh_ms: u64,
        backoff_ms: u64,
        max_backoff_ms: u64,
        carry_on_when_converted: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let assignor = |(name, cooperative, settles_claims, uses_racks)| Assignor {
            name,
            cooperative,
            settles_claims,
            uses_racks,
        };
        let config = Config {
            bootstrap,
            client_id,
            group_id,
            group_instance_id,
            assignors: assignors.into_iter().map(assignor).collect(),
            session_timeout_ms,
            heartbeat_interval_ms,
            early_heartbeat_ms,
            max_poll_interval_ms,
            rebalance_timeout_ms,
            request_timeout_ms,
            connect_timeout_ms,
            metadata_refresh_ms,
            backoff_ms,
            max_backoff_ms,
            converted: if carry_on_when_converted { Converted::CarryOn } else { Converted::Fail },
            seed,
        };
        let core = Classic::new(config, now_ms).map_err(|error| OptionError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(Core::Classic(core))))
    }

    /// A member of the consumer protocol (KIP-848). `member_id` is its own, for the life of the process.
    #[staticmethod]
    #[pyo3(signature = (
        *, now_ms, bootstrap, group_id, member_id, client_id = None, group_instance_id = None, rack = None,
        remote_assignor = None, session_timeout_ms = 45_000, longest_heartbeat_ms = 300, max_poll_interval_ms = 300_000,
        request_timeout_ms = 60_000, connect_timeout_ms = 30_000, backoff_ms = 100, max_backoff_ms = 1_000, seed = 0,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, one for each setting")]
    fn consumer(
        now_ms: u64,
        bootstrap: Vec<(String, i32)>,
        group_id: String,
        member_id: String,
        client_id: Option<String>,
        group_instance_id: Option<String>,
        rack: Option<String>,
        remote_assignor: Option<String>,
        session_timeout_ms: u64,
        longest_heartbeat_ms: u64,
        max_poll_interval_ms: u64,
        request_timeout_ms: u64,
        connect_timeout_ms: u64,
        backoff_ms: u64,
        max_backoff_ms: u64,
        seed: u64,
    ) -> PyResult<Self> {
        let config = ConsumerConfig {
            bootstrap,
            client_id,
            group_id,
            member_id,
            group_instance_id,
            rack,
            remote_assignor,
            max_poll_interval_ms,
            session_timeout_ms,
            longest_heartbeat_ms,
            request_timeout_ms,
            connect_timeout_ms,
            backoff_ms,
            max_backoff_ms,
            seed,
        };
        let core = ConsumerMembership::new(config, now_ms).map_err(|error| OptionError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(Core::Consumer(core))))
    }

    /// The connection is open and authenticated; the broker supports these versions.
    fn connected<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        conn: u64,
        versions: BTreeMap<i16, (i16, i16)>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Connected { conn, versions })
    }

    /// The connection failed or is closed. Pass `fatal_code` if every retry would fail too.
    #[pyo3(signature = (now_ms, conn, reason, fatal_code = None))]
    fn disconnected<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        conn: u64,
        reason: String,
        fatal_code: Option<i16>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Disconnected { conn, reason, fatal: fatal_code.map(ErrorCode) })
    }

    /// A frame was received; `frame` is without its length.
    fn received<'py>(&self, py: Python<'py>, now_ms: u64, conn: u64, frame: &[u8]) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Received { conn, frame: frame.to_vec() })
    }

    /// The time of `next_deadline` has come.
    fn tick<'py>(&self, py: Python<'py>, now_ms: u64) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Tick)
    }

    /// The application polled.
    fn poll<'py>(&self, py: Python<'py>, now_ms: u64) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Poll)
    }

    /// The application subscribes.
    #[pyo3(signature = (now_ms, topics, all_topics = false))]
    fn subscribe<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        topics: Vec<String>,
        all_topics: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Subscribe { topics, all_topics })
    }

    /// In the consumer protocol: subscribes to topics by name, and to those that a regular expression (RE2/J) of the
    /// broker matches with their whole names.
    #[pyo3(signature = (now_ms, topics, expression))]
    fn subscribe_expression<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        topics: Vec<String>,
        expression: Option<String>,
    ) -> PyResult<Bound<'py, PyList>> {
        let actions = py.detach(|| match &mut *self.core() {
            Core::Consumer(member) => Some(member.subscribe(now_ms, topics, expression)),
            Core::Classic(_) => None,
        });
        let actions = actions.ok_or_else(|| {
            OptionError::new_err("the classic protocol has no expressions: match them, and subscribe to the names")
        })?;
        action_list(py, actions)
    }

    /// The topics that match the expressions of the subscription now.
    fn matched<'py>(&self, py: Python<'py>, now_ms: u64, topics: Vec<String>) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Matched { topics })
    }

    /// The application unsubscribes.
    fn unsubscribe<'py>(&self, py: Python<'py>, now_ms: u64) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Unsubscribe)
    }

    /// Begins to carry out a notice; false if a later notice has replaced it.
    fn begin(&self, py: Python<'_>, ticket: u64) -> bool {
        py.detach(|| either!(self.core(), member => member.begin(ticket)))
    }

    /// A notice has been carried out.
    #[pyo3(signature = (now_ms, ticket, protocols = Vec::new()))]
    fn done<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        ticket: u64,
        protocols: Vec<(String, Vec<u8>)>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Done { ticket, protocols })
    }

    /// The result of the action `plan`.
    fn planned<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        ticket: u64,
        assignments: BTreeMap<String, Vec<u8>>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Planned { ticket, assignments: assignments.into_iter().collect() })
    }

    /// The assignor failed.
    fn plan_failed<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        ticket: u64,
        message: String,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::PlanFailed { ticket, message })
    }

    /// Offsets to commit.
    fn commit<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        id: u64,
        offsets: Vec<OffsetRow>,
        timeout_ms: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        let offset = |(topic, partition, offset, leader_epoch, metadata)| CommitOffset {
            topic,
            partition,
            offset,
            leader_epoch,
            metadata,
        };
        let offsets = offsets.into_iter().map(offset).collect();
        self.handle(py, now_ms, Event::Commit { id, offsets, timeout_ms })
    }

    /// Requests committed offsets.
    fn fetch_offsets<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        id: u64,
        partitions: Vec<(String, Vec<i32>)>,
        timeout_ms: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::FetchOffsets { id, partitions: to_partitions(partitions), timeout_ms })
    }

    /// The index of this member among the members of the group in this process, from 0, and their number.
    fn neighbours<'py>(&self, py: Python<'py>, now_ms: u64, place: u32, count: u32) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Neighbours { place, count })
    }

    /// Another member of the group in this process got the action `group-rebalances`.
    fn group_rebalances<'py>(&self, py: Python<'py>, now_ms: u64, generation: i32) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::GroupRebalances { generation })
    }

    /// The host wants a rebalance.
    fn rejoin<'py>(&self, py: Python<'py>, now_ms: u64, reason: String) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Rejoin { reason })
    }

    /// The application closes.
    fn close<'py>(&self, py: Python<'py>, now_ms: u64, timeout_ms: u64) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Close { timeout_ms })
    }

    /// The time to call `tick` if no other event comes before.
    fn next_deadline(&self, py: Python<'_>) -> Option<u64> {
        py.detach(|| either!(self.core(), member => member.next_deadline()))
    }

    /// The partitions that the application owns: those of the last notice that it carried out.
    fn owned(&self, py: Python<'_>) -> Partitions {
        py.detach(|| either!(self.core(), member => member.owned()))
    }

    /// Stage, member id, generation, whether the member leads, and the assignor of the generation, all of one moment.
    fn state(&self, py: Python<'_>) -> (&'static str, String, i32, bool, String) {
        py.detach(|| {
            let mut core = self.core();
            let (leads, protocol) = match &*core {
                Core::Classic(member) => (member.leads(), member.protocol().to_owned()),
                Core::Consumer(_) => (false, String::new()),
            };
            let (stage, (member_id, generation)) = either!(core, member => (member.stage().name(), member.identity()));
            (stage, member_id.to_owned(), generation, leads, protocol)
        })
    }

    /// Two values. Whether another member may own the member's partitions already: then the application must stop
    /// reading. And the time at which the session ends unless a response comes before; `None` without a session.
    fn session_state(&self, py: Python<'_>) -> (bool, Option<u64>) {
        py.detach(|| either!(self.core(), member => (member.is_lost(), member.session_end())))
    }

    /// Member id and generation for a transaction's offset commit: those of the last generation, also after the member
    /// has left it. `None` before the first generation.
    fn fencing(&self, py: Python<'_>) -> Option<(String, i32)> {
        py.detach(|| {
            let mut core = self.core();
            let fencing = either!(core, member => member.fencing());
            fencing.map(|(member_id, generation)| (member_id.to_owned(), generation))
        })
    }

    /// Whether there is a subscription.
    fn is_subscribed(&self, py: Python<'_>) -> bool {
        py.detach(|| either!(self.core(), member => member.is_subscribed()))
    }

    /// `"eager"` or `"cooperative"`: the highest protocol that all assignors support. The consumer protocol is
    /// `"cooperative"`.
    #[getter]
    fn rebalance_protocol(&self, py: Python<'_>) -> &'static str {
        let protocol = py.detach(|| match &*self.core() {
            Core::Classic(member) => member.rebalance_protocol(),
            Core::Consumer(_) => RebalanceProtocol::Cooperative,
        });
        match protocol {
            RebalanceProtocol::Eager => "eager",
            RebalanceProtocol::Cooperative => "cooperative",
        }
    }
}
