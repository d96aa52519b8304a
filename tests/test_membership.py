"""`_core.Membership` without sockets, against the embedded Kafka's broker, driven as its docstring says."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka_assignors import MemberState, StickyAssignor, _core
from kafka_assignors.errors import OptionError

VERSIONS = {key: (least, most) for key, least, most in _core.protocol_versions().values()}
# Metadata 10 has ids of topics; the embedded broker's topics have none.
VERSIONS[3] = (0, 9)


def broker(**topics: int) -> _core.EmbeddedBroker:
    embedded = _core.EmbeddedBroker(
        cluster_id="c",
        racks=[],
        auto_create_topics=False,
        default_partitions=1,
        initial_rebalance_delay_ms=0,
        min_session_timeout_ms=6_000,
        max_session_timeout_ms=1_800_000,
        max_group_size=None,
        max_record_bytes=1_000_000,
        consumer_heartbeat_interval_ms=500,
        consumer_session_timeout_ms=45_000,
        consumer_assignors=["uniform", "range"],
        consumer_migration_policy="bidirectional",
        seed=1,
    )
    embedded.listen("b", 9092)
    for name, partitions in topics.items():
        embedded.create_topic(name, partitions, 1, [])
    return embedded


class Driver:
    """A host of the membership. It runs everything in one thread."""

    def __init__(self, broker: _core.EmbeddedBroker, number: int, **settings: Any) -> None:
        self.broker = broker
        self.number = number
        self.now = 0
        self.assignor = StickyAssignor()
        self.state = MemberState()
        self.seen: list[Any] = []
        self.closed = False
        self.member = _core.Membership(
            now_ms=0,
            bootstrap=[("b", 9092)],
            group_id="g",
            assignors=[("sticky", False, False, True)],
            client_id=f"c{number}",
            seed=number,
            **settings,
        )
        self.frames: deque[tuple[int, bytes]] = deque()

    def connection(self, conn: int) -> int:
        return self.number * 1_000 + conn

    def do(self, actions: list[Any]) -> None:
        for action in actions:
            self.seen.append(action)
            getattr(self, "on_" + action["action"].replace("-", "_"), lambda _: None)(action)

    def on_connect(self, action: Any) -> None:
        assert (action["host"], action["port"]) == ("b", 9092)
        assert action["role"] in ("bootstrap", "group", "offsets")
        self.do(self.member.connected(self.now, action["conn"], VERSIONS))

    def on_send(self, action: Any) -> None:
        frame = action["data"]
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        _, replies = self.broker.handle(self.now, self.connection(action["conn"]), frame[4:])
        GROUP.spread(replies)

    def on_close(self, action: Any) -> None:
        GROUP.spread(self.broker.disconnect(self.now, self.connection(action["conn"])))

    def on_plan(self, action: Any) -> None:
        topics = {name: count for name, (count, _) in action["topics"].items()}
        plan = self.assignor.perform_assignment(action["members"], topics, generation=action["generation"])
        self.do(self.member.planned(self.now, action["ticket"], plan))

    def on_notify(self, action: Any) -> None:
        if not self.member.begin(action["ticket"]):
            return
        protocols = []
        if action["kind"] == "prepare":
            protocols = [("sticky", self.assignor.metadata(action["topics"], self.state))]
        elif action["kind"] == "assign":
            self.assignor.on_assignment(action["assignment"], action["generation"], self.state)
        self.do(self.member.done(self.now, action["ticket"], protocols))

    def on_closed(self, _: Any) -> None:
        self.closed = True

    def receive(self) -> bool:
        busy = bool(self.frames)
        while self.frames:
            self.do(self.member.received(self.now, *self.frames.popleft()))
        return busy

    def of_kind(self, kind: str) -> list[Any]:
        return [action for action in self.seen if action["action"] == kind]


class Group:
    """The drivers of a test. It passes the broker's answers to them."""

    def __init__(self) -> None:
        self.drivers: list[Driver] = []

    def start(self, broker: _core.EmbeddedBroker, **settings: Any) -> Driver:
        driver = Driver(broker, len(self.drivers) + 1, **settings)
        self.drivers.append(driver)
        return driver

    def spread(self, replies: list[tuple[int, bytes]]) -> None:
        for connection, frame in replies:
            number, conn = divmod(connection, 1_000)
            self.drivers[number - 1].frames.append((conn, frame[4:]))

    def run(self, milliseconds: int) -> None:
        end = self.drivers[0].now + milliseconds
        while True:
            while sum(driver.receive() for driver in self.drivers):
                pass
            now = self.drivers[0].now
            if now >= end:
                return
            for driver in self.drivers:
                driver.now = now + 10
                self.spread(driver.broker.tick(now + 10))
                deadline = driver.member.next_deadline()
                if deadline is not None and deadline <= now + 10:
                    driver.do(driver.member.tick(now + 10))


GROUP = Group()


@pytest.fixture(autouse=True)
def group() -> Group:
    GROUP.drivers.clear()
    return GROUP


def owned(driver: Driver) -> list[tuple[str, int]]:
    return [(topic, number) for topic, numbers in driver.member.owned() for number in numbers]


def test_two_members_share_commit_and_leave(group: Group) -> None:
    kafka = broker(t=4)
    first = group.start(kafka)
    first.do(first.member.subscribe(0, ["t"]))
    group.run(100)
    assert first.member.state() == ("stable", first.member.state()[1], 1, True, "sticky")
    assert owned(first) == [("t", 0), ("t", 1), ("t", 2), ("t", 3)]
    assert first.member.rebalance_protocol == "eager"

    second = group.start(kafka)
    second.now = first.now
    second.do(second.member.subscribe(second.now, ["t"]))
    group.run(7_000)
    assert sorted(owned(first) + owned(second)) == [("t", number) for number in range(4)]
    assert len(owned(first)) == len(owned(second)) == 2
    assert [notice["kind"] for notice in first.of_kind("notify")] == ["prepare", "assign", "prepare", "assign"]
    assert first.of_kind("notify")[2]["revoked"] == [("t", [0, 1, 2, 3])]

    mine, theirs = owned(first)[0], owned(second)[0]
    offsets = [(*mine, 42, -1, "note"), (*theirs, 7, -1, None)]
    first.do(first.member.commit(first.now, 5, offsets, 1_000))
    first.do(first.member.fetch_offsets(first.now, 6, [(mine[0], [mine[1]])], 1_000))
    group.run(50)
    assert first.of_kind("commit-done") == [
        {"action": "commit-done", "id": 5, "error_code": 0, "partitions": [(*mine, 0)], "dropped": [theirs]}
    ]
    assert first.of_kind("offsets-fetched") == [
        {"action": "offsets-fetched", "id": 6, "error_code": 0, "offsets": [(*mine, 42, -1, "note", 0)]}
    ]

    first.do(first.member.close(first.now, 1_000))
    group.run(100)
    assert first.closed
    assert owned(first) == []
    assert first.member.next_deadline() is None
    group.run(5_000)
    assert len(owned(second)) == 4
    assert second.member.state()[3]


def courses(driver: Driver) -> list[tuple[str, int, int, int]]:
    """For each assignment: the trigger of the join, the attempts, and the times of the join and of its answer."""
    assigned = [notice for notice in driver.of_kind("notify") if notice["kind"] == "assign"]
    return [(each["trigger"], each["attempts"], each["began_ms"], each["joined_ms"]) for each in assigned]


def test_an_assignment_tells_the_course_of_its_rebalance(group: Group) -> None:
    kafka = broker(t=4, u=2)
    first = group.start(kafka)
    first.do(first.member.subscribe(0, ["t"]))
    group.run(100)
    # The request that only asks for a member id is no attempt.
    ((trigger, attempts, began, joined),) = courses(first)
    assert (trigger, attempts, began) == ("joined", 1, 0)
    assert 0 <= joined <= 100
    prepares = [notice for notice in first.of_kind("notify") if notice["kind"] == "prepare"]
    assert {(each["trigger"], each["began_ms"], each["attempts"]) for each in prepares} == {("group", None, 0)}

    second = group.start(kafka)
    second.now = first.now
    second.do(second.member.subscribe(second.now, ["t"]))
    joins_at = first.now
    group.run(7_000)
    (trigger, attempts, began, joined) = courses(first)[1]
    assert (trigger, attempts) == ("group", 1)
    assert joins_at < began <= joined
    assert courses(second)[0][:3] == ("joined", 1, joins_at)

    changes_at = second.now
    second.do(second.member.subscribe(second.now, ["t", "u"]))
    group.run(7_000)
    assert courses(second)[1][:3] == ("subscription", 1, changes_at)
    assert courses(first)[2][0] == "group"

    wanted_at = first.now
    first.do(first.member.rejoin(first.now, "the lags have changed"))
    group.run(7_000)
    assert courses(first)[3][:3] == ("asked", 1, wanted_at)


def test_a_member_whose_session_ends_tells_since_when_it_has_nothing(group: Group) -> None:
    member = group.start(broker(t=2), max_poll_interval_ms=1_000)
    member.do(member.member.subscribe(0, ["t"]))
    group.run(2_000)
    assert member.of_kind("max-poll-exceeded")
    member.do(member.member.poll(member.now))
    group.run(200)
    trigger, attempts, began, _ = courses(member)[-1]
    assert (trigger, attempts) == ("expelled", 1)
    assert 1_000 < began < 2_000


def test_a_notice_that_was_overtaken_is_refused(group: Group) -> None:
    member = group.start(broker(t=1))
    actions = member.member.subscribe(0, ["t"])
    (notice,) = [action for action in actions if action["action"] == "notify"]
    (again,) = [action for action in member.member.subscribe(0, ["t", "u"]) if action["action"] == "notify"]
    assert not member.member.begin(notice["ticket"])
    assert member.member.begin(again["ticket"])
    assert again["topics"] == ["t", "u"]


def test_refused_credentials_are_fatal_and_told_once(group: Group) -> None:
    member = group.start(broker()).member
    (connect,) = [action for action in member.subscribe(0, ["t"]) if action["action"] == "connect"]
    actions = member.disconnected(0, connect["conn"], "SASL said no", 58)
    assert [action["error_code"] for action in actions if action["action"] == "fatal"] == [58]
    assert member.state()[0] == "failed"
    assert member.disconnected(0, connect["conn"], "again", 58) == []
    assert member.close(0, 10) == [{"action": "closed"}]


def test_hostile_frames_close_the_connection(group: Group) -> None:
    member = group.start(broker()).member
    (connect,) = [action for action in member.subscribe(0, ["t"]) if action["action"] == "connect"]
    member.connected(0, connect["conn"], VERSIONS)
    actions = member.received(0, connect["conn"], b"\x7f\xff\xff\xff" * 3)
    assert [action["conn"] for action in actions if action["action"] == "close"] == [connect["conn"]]
    assert not [action for action in actions if action["action"] == "connect"], "not without a back-off"
    deadline = member.next_deadline()
    assert deadline is not None
    assert 80 <= deadline <= 120


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bootstrap": []}, "bootstrap.servers is empty"),
        ({"group_id": ""}, "group.id is empty"),
        ({"assignors": []}, "partition.assignment.strategy is empty"),
        ({"assignors": [("range", False, False, False)] * 2}, "'range' is listed twice"),
        ({"heartbeat_interval_ms": 45_000}, "heartbeat.interval.ms is 45000: give 1 to 44999"),
        ({"group_instance_id": "x" * 250}, "group.instance.id has 250 bytes: give at most 249"),
    ],
)
def test_settings_that_make_no_member(settings: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "now_ms": 0,
        "bootstrap": [("b", 1)],
        "group_id": "g",
        "assignors": [("range", False, False, False)],
    }
    with pytest.raises(OptionError, match=message):
        _core.Membership(**(good | settings))
