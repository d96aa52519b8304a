//! A member of a consumer group: events in, actions out as dicts. Sockets, time and threads are Python's.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kafka_assignors_core::membership::{
    Action, Assignor, CommitOffset, Config, Converted, Event, Level, Membership as Core, Notice, NoticeKind,
    Partitions, RackSet, RebalanceProtocol,
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
/// (`time.monotonic`). Every method that takes `now_ms` returns a list of actions: dicts with the key `"action"`. Whoever
/// called must see that they are carried out **in the order of the list, and lists in the order of the calls** (the
/// application's thread hands its list to the membership thread under the lock under which it made the call). Any thread
/// may call any method; calls take turns and never wait for I/O. After each call look at `next_deadline()` and call `tick`
/// then; `None` means that only an event can change anything.
///
/// Actions for the membership thread:
/// - `connect` (`conn`, `node_id`, `host`, `port`, `role`): open a connection, TCP, TLS, ApiVersions and SASL included, and
///   call `connected(conn, versions)` with ApiVersions' ranges, or `disconnected(conn, reason, fatal_code)`. `fatal_code`
///   (58, 33, 34) only where trying again is no use: wrong credentials, a certificate that is refused. The member gives a
///   connection `connect_timeout_ms`, then says `close`. Renewing an authentication (KIP-368) is the transport's business.
/// - `send` (`conn`, `data`): send the bytes, a frame with its length. Each frame that comes back goes to `received(conn,
///   frame)`, without its length. Correlation ids are checked by the member.
/// - `close` (`conn`, `reason`): close it, or stop opening it. It needs no `disconnected`, and gets nothing any more.
/// - `topics` (`topics`: (name, is internal)): for a subscription by expression, all topics of the cluster. Match, then
///   `subscribe` again (no change, no effect), before the actions behind it in the list are carried out.
/// - `plan` (`ticket`, `generation`, `protocol`, `members`, `topics`): this member leads. Compute, on a third thread, since
///   heartbeats must go on, and answer `planned(ticket, assignments)` or `plan_failed(ticket, message)`. `members` is what
///   `perform_assignment` takes; `topics` maps each existing topic to its partition count and, for each partition, the racks
///   of its replicas (empty where no broker has a rack). An answer that comes too late is ignored.
/// - `group-rebalances` (`generation`): the coordinator has just said so. To be handed to the other members of the group in
///   this process, as `group_rebalances(generation)`: they ask at once instead of at their next heartbeat. Told once a
///   generation. `neighbours(place, count)` spreads their heartbeats over the interval, so that one of them hears soon.
/// - `log` (`level`: "info" or "warning", `message`).
///
/// Actions for the application's thread:
/// - `notify`: a change of what is owned, to be carried out inside `poll`, `consume`, `close` or `unsubscribe`. Keep the
///   one with the highest ticket: it replaces all before. First `begin(ticket)`: **if false, drop it** (overtaken). Then, by `kind`:
///   - `"prepare"`: commit if wanted, call on_revoke (or, if `lost`, on_lost without any commit) for `revoked` where it is
///     not empty, stop reading them, then `done(ticket, protocols)` with `(name, metadata)` for **every assignor in the
///     order given to the constructor**. Metadata is written for `topics`, with `owned` as the owned partitions. If
///     `revoked` is empty, any thread may answer at once. In an eager group `revoked` is everything: stop delivering, but
///     keep positions and fetched records until the next `"assign"`, which mostly brings the same partitions back.
///   - `"assign"`: call on_revoke for `revoked` (commit first if wanted), let go of them, remember `owned` and `generation`
///     (the assignor's `on_assignment(assignment, generation, state)`), call on_assign for `added`, then `done(ticket)`.
///     Starting offsets come from `fetch_offsets`. Both lists may be empty.
///   - `"leave"`: before leaving, or after `fatal`: as "prepare", but `done(ticket)` without metadata.
///   Callbacks that raise are the host's to handle: `done` must come in any case. While a callback runs, heartbeats go on.
///   Lists of partitions are `[(topic, [numbers])]`, ascending.
/// - `commit-done` (`id`, `error_code`, `partitions`: (topic, partition, error code), `dropped`: (topic, partition)):
///   answers `commit(id, …)`; exactly one for each. `error_code` is 0 where the broker answered for each partition. 7: not
///   in time. 27: refused, since the callback that waits for it holds up the rebalance. 22 or 25: the member is out of its
///   generation. `dropped` were not owned any more, or not owned without a break since the commit was asked for.
/// - `offsets-fetched` (`id`, `error_code`, `offsets`: (topic, partition, offset or -1, leader epoch or -1, metadata, error
///   code)): answers `fetch_offsets(id, …)`; exactly one for each. Goes on across rebalances: whether the partition is
///   still owned when it comes is the host's to check (remember the ticket of the notice).
/// - `error` (`error_code`, `message`): raise it once from poll; the member carries on.
/// - `fatal` (`error_code`, `message`): raise it from poll; the member is out of the group for good, and only `close` does
///   anything. A "leave" notice with `lost` follows if it owned anything.
/// - `max-poll-exceeded` (`interval_ms`): the application did not poll; the next `poll` brings a "prepare" with `lost`.
/// - `converted-by-broker` (`message`): the brokers' own assignor serves the group (KIP-848); followed by `fatal` unless
///   `carry_on_when_converted`.
/// - `closed`: nothing more comes, and all connections were closed before.
///
/// The application's thread calls `poll(now_ms)` whenever it asks for records. `close(now_ms, timeout_ms)` brings the
/// "leave" notice, LeaveGroup and `closed`, the latter at the latest when the time is over and the notice is done.
/// Until a subscription is made, commits go without member and generation, as for a consumer that is assigned by hand.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Membership(Mutex<Core>);

macro_rules! dict {
    ($py:expr, $($key:literal: $value:expr),* $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item($key, $value)?;)*
        dict
    }};
}

impl Membership {
    /// The core keeps its invariants between calls, so a panic in another thread's call leaves nothing to repair.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle<'py>(&self, py: Python<'py>, now_ms: u64, event: Event) -> PyResult<Bound<'py, PyList>> {
        // Nobody waits for the lock while it holds the interpreter, so neither can wait for the other.
        let actions = py.detach(|| self.core().handle(now_ms, event));
        let list = PyList::empty(py);
        for action in actions {
            list.append(to_dict(py, action)?)?;
        }
        Ok(list)
    }
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
    ))
}

/// A set of racks as a frozenset. Partitions that share a set in the core share the frozenset, which takes 216 bytes. `sets` is by
/// address in the core; the action keeps the core's sets alive, so no address is used twice.
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
            let row = |offset: kafka_assignors_core::membership::FetchedOffset| {
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
        max_poll_interval_ms = 300_000, request_timeout_ms = 60_000, connect_timeout_ms = 30_000,
        metadata_refresh_ms = 300_000, backoff_ms = 100, max_backoff_ms = 1_000, max_frame_bytes = 104_857_600,
        carry_on_when_converted = false, seed = 0,
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
        request_timeout_ms: u64,
        connect_timeout_ms: u64,
        metadata_refresh_ms: u64,
        backoff_ms: u64,
        max_backoff_ms: u64,
        max_frame_bytes: usize,
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
            request_timeout_ms,
            connect_timeout_ms,
            metadata_refresh_ms,
            backoff_ms,
            max_backoff_ms,
            max_frame_bytes,
            converted: if carry_on_when_converted { Converted::CarryOn } else { Converted::Fail },
            seed,
        };
        let core = Core::new(config, now_ms).map_err(|error| OptionError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(core)))
    }

    /// The connection is open and authenticated; its broker speaks these versions.
    fn connected<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        conn: u64,
        versions: BTreeMap<i16, (i16, i16)>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Connected { conn, versions })
    }

    /// The connection could not be made, or is gone. `fatal_code` where trying again is no use.
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

    /// A frame came, without its length.
    fn received<'py>(&self, py: Python<'py>, now_ms: u64, conn: u64, frame: &[u8]) -> PyResult<Bound<'py, PyList>> {
        // A length that does not fit is as impossible as one that is too long: the member closes the connection.
        let length = i32::try_from(frame.len()).unwrap_or(i32::MAX);
        let mut bytes = Vec::with_capacity(frame.len() + 4);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(frame);
        self.handle(py, now_ms, Event::Received { conn, bytes })
    }

    /// Only time has passed.
    fn tick<'py>(&self, py: Python<'py>, now_ms: u64) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Tick)
    }

    /// The application asked for records.
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

    /// The topics that a subscription by expressions stands for now.
    fn matched<'py>(&self, py: Python<'py>, now_ms: u64, topics: Vec<String>) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Matched { topics })
    }

    /// The application gives its subscription up.
    fn unsubscribe<'py>(&self, py: Python<'py>, now_ms: u64) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Unsubscribe)
    }

    /// Takes a notice; false where it has been overtaken.
    fn begin(&self, py: Python<'_>, ticket: u64) -> bool {
        py.detach(|| self.core().begin(ticket))
    }

    /// A notice has been obeyed.
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

    /// The plan that was asked for.
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

    /// Committed offsets wanted.
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

    /// Which of the members of the group in this process this one is, from 0, and how many they are.
    fn neighbours<'py>(&self, py: Python<'py>, now_ms: u64, place: u32, count: u32) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Neighbours { place, count })
    }

    /// A neighbour's action `group-rebalances`.
    fn group_rebalances<'py>(&self, py: Python<'py>, now_ms: u64, generation: i32) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::GroupRebalances { generation })
    }

    /// The group is to be planned anew.
    fn rejoin<'py>(&self, py: Python<'py>, now_ms: u64, reason: String) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Rejoin { reason })
    }

    /// The application goes.
    fn close<'py>(&self, py: Python<'py>, now_ms: u64, timeout_ms: u64) -> PyResult<Bound<'py, PyList>> {
        self.handle(py, now_ms, Event::Close { timeout_ms })
    }

    /// When to call `tick` if nothing happens.
    fn next_deadline(&self, py: Python<'_>) -> Option<u64> {
        py.detach(|| self.core().next_deadline())
    }

    /// What the member owns, as far as its application has taken it.
    fn owned(&self, py: Python<'_>) -> Partitions {
        py.detach(|| self.core().owned())
    }

    /// Stage, member id, generation, whether it leads, and the assignor of the generation, all of one moment.
    fn state(&self, py: Python<'_>) -> (&'static str, String, i32, bool, String) {
        py.detach(|| {
            let core = self.core();
            let (member_id, generation) = core.identity();
            (core.stage().name(), member_id.to_owned(), generation, core.leads(), core.protocol().to_owned())
        })
    }

    /// Whether the member's partitions may belong to another member already, so that the application must not read on; and when
    /// its session ends unless a request is answered before, `None` outside a session.
    fn standing(&self, py: Python<'_>) -> (bool, Option<u64>) {
        py.detach(|| {
            let core = self.core();
            (core.is_lost(), core.session_end())
        })
    }

    /// Member id and generation to name in a transaction: those of the last generation, also after the member has left it. `None`
    /// before the first.
    fn fencing(&self, py: Python<'_>) -> Option<(String, i32)> {
        py.detach(|| self.core().fencing().map(|(member_id, generation)| (member_id.to_owned(), generation)))
    }

    /// Whether there is a subscription.
    fn is_subscribed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.core().is_subscribed())
    }

    /// `"eager"` or `"cooperative"`: the highest that all assignors have in common.
    #[getter]
    fn rebalance_protocol(&self, py: Python<'_>) -> &'static str {
        match py.detach(|| self.core().rebalance_protocol()) {
            RebalanceProtocol::Eager => "eager",
            RebalanceProtocol::Cooperative => "cooperative",
        }
    }
}
