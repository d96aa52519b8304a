"""All groups of live clusters: embedded and real brokers, both protocols, and clusters with incomplete answers."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import socket
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from typer.testing import CliRunner, Result

from kafka_assignors.cli.app import app
from kafka_assignors.cluster import Look, Missing, Snapshot, fleet, read_fleet, read_snapshot
from kafka_assignors.cluster import questions as requests
from kafka_assignors.cluster.questions import Question, Questions
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.errors import ClusterError, KafkaAssignorsError, NetworkError
from kafka_assignors.net import Address
from support.broker import Kafka, unique
from support.jars import DEFAULT_VERSION
from support.planned_group import commit, standing_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def run(*arguments: str | Path, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["fleet", *map(str, arguments)], env={"COLUMNS": "140"})
    assert result.exit_code == status, (result.output, result.exception)
    return result


def at(kafka: Kafka | EmbeddedKafka) -> dict[str, str]:
    return {"bootstrap.servers": kafka.bootstrap_servers}


def produce(kafka: Kafka | EmbeddedKafka, topic: str, partition: int, *ages_s: float) -> None:
    """Writes one record for each of these ages."""
    producer = confluent_kafka.Producer({**at(kafka), "log_level": 0})
    now = int(time.time() * 1000)
    for age in ages_s:
        producer.produce(topic, b"x", partition=partition, timestamp=now - int(age * 1000))
    assert producer.flush(30) == 0


def only(*groups: str) -> list[str]:
    return ["--filter", f"group~^({'|'.join(map(re.escape, groups))})$"]


def test_all_groups_are_read_and_compared(any_kafka: Kafka, tmp_path: Path) -> None:
    well, dead, waiting = unique("well"), unique("dead"), unique("waiting")
    topics = {name: any_kafka.create_topic(name, 4) for name in (unique("t"), unique("u"))}
    one, other = topics.values()
    produce(any_kafka, one, 0, *[1.0] * 30)
    produce(any_kafka, other, 1, 3_000, 3_000, 1_800, 1_800, 5, 5)
    commit(any_kafka.bootstrap_servers, dead, {(one, 0): 10})
    commit(any_kafka.bootstrap_servers, waiting, {(other, 1): 2})
    commit(any_kafka.bootstrap_servers, well, {(one, 0): 30})
    these = only(well, dead, waiting)
    address = ["--bootstrap-server", any_kafka.bootstrap_servers]
    with (
        standing_group(any_kafka.bootstrap_servers, well, {one: 4}, ("c0", "c1")),
        standing_group(any_kafka.bootstrap_servers, waiting, {other: 4}, ("c0",)),
    ):
        first = tmp_path / "first.json"
        found = json.loads(
            run(*address, *these, "--format", "json", "--save", first, "--html", tmp_path / "f.html", status=3).stdout
        )
        by_id = {each["group_id"]: each for each in found["groups"]}
        assert found["groups"][0]["group_id"] == dead
        assert (by_id[dead]["verdict"], by_id[dead]["lag"]) == ("dead", 20)
        assert (by_id[well]["verdict"], by_id[well]["lag"], by_id[well]["lag_seconds"]) == ("ok", 0, 0)
        assert (by_id[waiting]["lag"], by_id[waiting]["members"], by_id[waiting]["moves"]) == (4, 1, 2)
        # The oldest unread record is half an hour old. Between two times of the requests, the age is interpolated.
        assert 600 <= by_id[waiting]["lag_seconds"] <= 3_600
        assert dead in (tmp_path / "f.html").read_text()
        # The saved reading is a snapshot, equal to that of `snapshot --all` for these groups.
        kept = Snapshot.load(first)
        again = read_snapshot(at(any_kafka), [well, dead, waiting])
        assert {name: kept.groups[name] for name in again.groups} == dict(again.groups)
        # The file now says that it is a minute old. `waiting` has read nothing since, and one record has arrived.
        produce(any_kafka, other, 1, 0)
        aged = dataclasses.replace(kept, taken_ms=kept.taken_ms - 60_000)
        aged.save(first)
        later = json.loads(run(*address, *these, "--since", first, "--format", "json", status=3).stdout)
        changed = {each["group_id"]: each for each in later["groups"]}
        assert (changed[waiting]["verdict"], changed[waiting]["stuck"]) == ("stuck", 1)
        assert 0 < changed[waiting]["growth"] <= 0.017
        assert (changed[well]["growth"], changed[well]["rebalances"]) == (0, 0)
        text = run(*address, *these, "--interval", "0.3", status=3).stdout
        # Reading takes longer on a busy machine.
        assert re.search(r"compared with \d+\.\d s before", text)
        assert re.search(r"note: the readings are \d+\.\d+ s apart", text)


def test_a_group_that_the_broker_assigns(kafka_of_version: Callable[[str], Kafka]) -> None:
    kafka = kafka_of_version(DEFAULT_VERSION)
    topic, group = kafka.create_topic(unique("orders"), 4), unique("new")
    settings = {**at(kafka), "group.id": group, "group.protocol": "consumer", "log_level": 0}
    consumer = confluent_kafka.Consumer(settings)
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 60
        while len(consumer.assignment()) < 4:
            assert time.monotonic() < deadline, "the broker assigned nothing"
            consumer.poll(0.2)
        address = ["--bootstrap-server", kafka.bootstrap_servers]
        (found,) = json.loads(run(*address, *only(group), "--format", "json").stdout)["groups"]
        assert (found["protocol"], found["strategy"], found["kip848"]) == ("consumer", "uniform", "moved")
        assert (found["members"], found["partitions"], found["moves"], found["least_moves"]) == (1, 4, 2, 2)
    finally:
        consumer.close()


# ---- watching ----


@pytest.fixture
def busy() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"t": 4, "u": 2}) as kafka, ExitStack() as stack:
        commit(kafka.bootstrap_servers, "g0", {("t", 0): 0})
        for number in range(4):
            stack.enter_context(standing_group(kafka.bootstrap_servers, f"g{number}", {"t": 4}, ("a", "b")))
        yield kafka


def test_watch_looks_again_and_again(busy: EmbeddedKafka) -> None:
    arguments = ["--bootstrap-server", busy.bootstrap_servers, "--watch", "0.2", "--count", "3", "--format", "json"]
    text = run(*arguments).stdout
    decoder, documents = json.JSONDecoder(), []
    while text.strip():
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:].lstrip()
    assert [document["seconds"] is None for document in documents] == [True, False, False]
    # Each reading is compared with the first one until that is half a minute old.
    assert documents[1]["seconds"] < documents[2]["seconds"]
    assert {len(document["groups"]) for document in documents} == {4}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
def test_watch_redraws_in_place_and_ends_with_ctrl_c(busy: EmbeddedKafka) -> None:
    import fcntl
    import pty
    import signal
    import struct
    import subprocess
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    # If this test is a background job of a shell, it ignores Ctrl-C, and so would its children.
    program = ["env", "--default-signal=INT", sys.executable]
    command = [*program, "-m", "kafka_assignors.cli", "fleet", "--watch", "0.2"]
    environment |= {"TERM": "xterm", "KAFKA_ASSIGNORS_BOOTSTRAP_SERVERS": busy.bootstrap_servers}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment, start_new_session=True) as process:
        os.close(theirs)
        said = b""
        interrupted = False
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            said += part
            if not interrupted and said.count(b"4 groups as of") >= 3:
                process.send_signal(signal.SIGINT)
                interrupted = True
        assert process.wait(120) == 0
    os.close(ours)
    # The cursor moves up before each reading except the first.
    assert said.count(b"\x1b[1A") >= 2 * 5


# ---- incomplete answers ----


def missing(kafka: EmbeddedKafka, **options: Any) -> Look:
    return read_fleet(at(kafka), stable_within=0.3, **options)


def test_no_right_to_some_groups(busy: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    # A fault refuses a whole request. Therefore each request is for one group. test_fleet_rights.py has real rights.
    monkeypatch.setattr(requests, "_GROUPS_AT_ONCE", 1)
    busy.inject_fault("OffsetFetch", error="GROUP_AUTHORIZATION_FAILED", times=1)
    look = missing(busy)
    assert set(look.snapshot.groups) == {"g1", "g2", "g3"}
    assert look.missing == (Missing("group", "g0", "its offsets cannot be read: GROUP_AUTHORIZATION_FAILED (30)"),)
    busy.inject_fault("OffsetFetch", error="GROUP_AUTHORIZATION_FAILED", times=1)
    text = run("--bootstrap-server", busy.bootstrap_servers, status=3).stdout
    assert "3 groups as of" in text
    assert "not read: group g0: its offsets cannot be read: GROUP_AUTHORIZATION_FAILED (30)" in text


def test_errors_that_pass_are_waited_for(busy: EmbeddedKafka) -> None:
    for request in ("ListGroups", "DescribeGroups", "OffsetFetch"):
        busy.inject_fault(request, error="COORDINATOR_LOAD_IN_PROGRESS", times=1)
    look = missing(busy)
    assert (set(look.snapshot.groups), look.missing) == ({"g0", "g1", "g2", "g3"}, ())
    busy.inject_fault("DescribeGroups", error="NOT_COORDINATOR", times=1)
    assert missing(busy).missing == ()
    busy.inject_fault("DescribeGroups", error="COORDINATOR_LOAD_IN_PROGRESS", times=50)
    look = missing(busy)
    assert look.snapshot.groups == {}
    assert {each.kind for each in look.missing} == {"group"}


def test_groups_that_vanish_while_they_are_read(busy: EmbeddedKafka) -> None:
    """The first answer lists the groups. They are deleted before they are described."""

    def listed(group_id: str) -> bool:
        return True

    real = fleet._FleetReader.find_groups

    def with_another(self: Any, brokers: Any, wanted: Any) -> None:
        real(self, brokers, wanted)
        self._of_broker["gone"] = next(iter(self._of_broker.values()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet._FleetReader, "find_groups", with_another)
        look = missing(busy, wanted=listed)
        assert set(look.snapshot.groups) == {"g0", "g1", "g2", "g3"}
        assert look.missing == (Missing("gone", "gone", "it was deleted while it was read"),)
        # A deleted group is no reason for a deployment's check to fail.
        assert "not read: gone gone" in run("--bootstrap-server", busy.bootstrap_servers).stdout


def test_a_broker_that_is_down_costs_only_its_own_groups(busy: EmbeddedKafka) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        down = Address("127.0.0.1", closed.getsockname()[1])

    def with_another(questions: Questions) -> tuple[str, list[Address]]:
        return "c", [Address("127.0.0.1", busy.port), down]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet, "brokers_in", with_another)
        look = missing(busy)
        assert set(look.snapshot.groups) == {"g0", "g1", "g2", "g3"}
        ((kind, name, reason),) = [(each.kind, each.name, each.reason) for each in look.missing]
        assert (kind, name) == ("broker", str(down))
        assert "refused" in reason.lower()
        patch.setattr(fleet, "brokers_in", lambda _: ("c", [down]))
        with pytest.raises(NetworkError):
            missing(busy)


def test_offsets_of_a_leader_that_does_not_answer_are_unknown(busy: EmbeddedKafka) -> None:
    busy.inject_fault("ListOffsets", error="NOT_LEADER_OR_FOLLOWER", times=1)
    look = missing(busy)
    assert look.snapshot.topics["t"].begin == (None,) * 4
    busy.inject_fault("ListOffsets", close="before", times=1)
    look = missing(busy)
    assert look.snapshot.topics["t"].begin == (None,) * 4
    assert {each.kind for each in look.missing} == {"offsets"}
    assert run("--bootstrap-server", busy.bootstrap_servers).exit_code == 0


def test_a_silent_broker_costs_its_part_of_the_time(busy: EmbeddedKafka) -> None:
    """The silent broker accepts a connection, and never answers. Only the time to set up a connection is limited: the
    other limits are longer than pytest's.
    """
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address("127.0.0.1", silent.getsockname()[1])
        well = Address("127.0.0.1", busy.port)
        with Questions({**at(busy), "socket.connection.setup.timeout.ms": 3_000}, 10_000) as questions:
            asked = [Question(each, "ListGroups", ([],)) for each in (address, well, address)]
            one, other, third = questions.ask_each(asked, 10_000)
            assert isinstance(one, KafkaAssignorsError)
            assert one is third
            assert not isinstance(other, KafkaAssignorsError)
            assert len(other["groups"]) == 4
            assert questions.ask_each(asked, 10_000)[0] is one
        # The silent broker is not tried again.
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_a_slow_broker_is_given_up_in_time(busy: EmbeddedKafka) -> None:
    busy.inject_fault("ListGroups", delay=3, times=1)
    with Questions(at(busy), 20) as questions:
        well = Address("127.0.0.1", busy.port)
        (late,) = questions.ask_each([Question(well, "ListGroups", ([],))], 0.3)
        assert isinstance(late, ClusterError)
        assert str(late) == f"the broker at {well} has not answered in time"


def test_nothing_answers(busy: EmbeddedKafka) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    result = run("--bootstrap-server", f"127.0.0.1:{port}", "--timeout", "2", status=2)
    assert result.stderr.count("\n") == 1
    busy.inject_fault("ListGroups", error="CLUSTER_AUTHORIZATION_FAILED", times=1)
    result = run("--bootstrap-server", busy.bootstrap_servers, status=2)
    assert "cannot be listed: CLUSTER_AUTHORIZATION_FAILED (31)" in result.stderr


def test_commits_are_asked_for_by_broker_and_fifty_groups(busy: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    real = fleet._FleetReader._take_commits

    def take(self: Any, groups: Any, *rest: Any) -> None:
        asked.append(list(groups))
        real(self, groups, *rest)

    monkeypatch.setattr(fleet._FleetReader, "_take_commits", take)
    together = missing(busy)
    assert [sorted(each) for each in asked] == [["g0", "g1", "g2", "g3"]]
    # Before Kafka 3.0 an OffsetFetch request is for one group.
    asked.clear()
    monkeypatch.setitem(requests._MOST, "OffsetFetch", 7)
    one_by_one = missing(busy)
    assert sorted(asked) == [["g0"], ["g1"], ["g2"], ["g3"]]
    assert one_by_one.snapshot.groups == together.snapshot.groups
    assert read_snapshot(at(busy), ["g0", "g1"]).groups["g0"] == together.snapshot.groups["g0"]


def test_two_at_once(busy: EmbeddedKafka) -> None:
    found: list[Look] = []
    threads = [threading.Thread(target=lambda: found.append(missing(busy))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [set(look.snapshot.groups) for look in found] == [{"g0", "g1", "g2", "g3"}] * 4
