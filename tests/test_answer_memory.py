"""The memory of a decoded answer, relative to its bytes. A small answer of a broker must not fill a client's memory.

Each measurement runs in a process of its own and reads the kernel's high-water mark of that process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_assignors import _core
from kafka_assignors.errors import ProtocolError
from support import answers

pytestmark = pytest.mark.needs("memory")

MOST = 8
"""The limit: so many times the bytes of the frame. The frame itself is one of them."""

PRELUDE = """
import subprocess, sys, tempfile
from kafka_assignors import _core
from kafka_assignors.cluster import live
from support import answers

def made(frame: str) -> bytes:
    # Another process makes the frames: memory that this process has used and kept would hide the first allocations.
    with tempfile.NamedTemporaryFile() as file:
        code = f"import sys; sys.path[:0] = {sys.path!r}; from support import answers; sys.stdout.buffer.write({frame})"
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
        return open(file.name, "rb").read()

def measure(frames, work) -> None:
    # Sets the high-water mark to the present memory.
    open("/proc/self/clear_refs", "w").write("5")
    already = list(frames)
    before = high_water()
    kept = work()
    taken = high_water() - before + sum(map(len, already))
    print(taken / sum(map(len, frames)))

def high_water() -> int:
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
"""


def times(script: str) -> float:
    """The memory during a script's `measure`, with the frames, divided by the bytes of the frames."""
    tests = Path(__file__).parent
    paths = [str(tests), *(path for path in sys.path if path)]
    begin = f"import sys; sys.path[:0] = {paths!r}"
    done = subprocess.run(
        [sys.executable, "-c", f"{begin}\n{PRELUDE}\n{script}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


ROUND = """
def everything(value):
    if hasattr(value, "items"):
        for each in value.values():
            everything(each)
    elif not isinstance(value, (str, bytes)) and hasattr(value, "__len__"):
        for each in value:
            everything(each)
"""


@pytest.mark.parametrize(
    ("request_name", "version", "frame"),
    [
        ("metadata", 9, "answers.metadata({'t': 600_000})"),
        ("metadata", 9, "answers.metadata({f'topic-{n}': 1 for n in range(300_000)})"),
        ("list_offsets", 4, "answers.list_offsets('t', range(600_000))"),
        ("offset_fetch", 5, "answers.offset_fetch('t', 750_000)"),
        ("list_groups", 5, "answers.list_groups(350_000)"),
        ("describe_groups", 0, "answers.describe_groups(180_000)"),
        ("consumer_group_describe", 0, "answers.consumer_group_describe([20_000] * 90)"),
    ],
)
def test_an_answer_of_15_mb_takes_at_most_8_times_its_bytes(request_name: str, version: int, frame: str) -> None:
    script = f"""
frame = made({frame!r})
assert 12 << 20 < len(frame) < 20 << 20, len(frame)
def work():
    read = _core.decode_{request_name}({version}, answers.CORRELATION, frame)
    everything(read)
    return read
measure([frame], work)
"""
    assert times(ROUND + script) <= MOST


def test_a_snapshot_takes_at_most_8_times_the_answers_that_it_is_made_of() -> None:
    script = """
COUNT = 600_000
METADATA, COMMITS = made("answers.metadata({'t': 600_000})"), made("answers.offset_fetch('t', 600_000)")

class Broker:
    left = 30.0
    def __init__(self, *_): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def patiently(self, work): return work()
    def speaks(self, *_): return True
    def ask(self, request, *fields, address=None):
        return self.ask_all([live.Question(address, request, fields)])[0]
    def ask_all(self, questions, progress=None):
        return [getattr(self, question.request)(*question.fields) for question in questions]
    def Metadata(self, topics):
        return _core.decode_metadata(9, answers.CORRELATION, METADATA if topics else answers.metadata({}))
    def FindCoordinator(self, group):
        return {"error_code": 0, "error_message": None, "host": "b", "port": 9092}
    def DescribeGroups(self, groups):
        return _core.decode_describe_groups(0, answers.CORRELATION, answers.describe_groups(1))
    def offset_fetches(self, groups):
        return [live.Question(address, "OffsetFetch", ([(group, None)], False)) for group, address in groups.items()]
    def OffsetFetch(self, *_):
        return _core.decode_offset_fetch(5, answers.CORRELATION, COMMITS)
    def ListOffsets(self, topics, isolation):
        (topic, asked), = topics
        numbers = range(asked[0][0], asked[-1][0] + 1, 6)
        assert len(numbers) == len(asked)
        return _core.decode_list_offsets(4, answers.CORRELATION, answers.list_offsets(topic, numbers))
    def DescribeConfigs(self, *_):
        return {"error_code": 0, "configs": {}}

live.Questions = Broker
def work():
    found = live.read_snapshot({}, ["g"], topics=["t"])
    topic = found.topics["t"]
    assert topic.partitions == COUNT and topic.racks[1] == {"rack-1"}
    assert topic.begin[-1] == topic.end[-1] == found.groups["g"].committed["t"][-1] == 10**10 + COUNT - 1
    return found
# Offsets come twice, for the first and for the next.
measure([METADATA, COMMITS, bytes(26 * COUNT), bytes(26 * COUNT)], work)
"""
    assert times(script) <= MOST


def test_a_member_takes_at_most_8_times_the_metadata_that_it_leads_with() -> None:
    script = """
import struct
from kafka_assignors import MemberState, StickyAssignor
from test_membership import VERSIONS, broker

embedded = broker(t=4)
member = _core.Membership(now_ms=0, bootstrap=[("b", 9092)], group_id="g", assignors=[("sticky", False, False, True)],
                          client_id="c", seed=1)
assignor, state = StickyAssignor(), MemberState()
planned, frames = [], []

def drive():
    waiting = member.subscribe(0, ["t"], False)
    now = 0
    while not planned:
        if not waiting:
            now += 100
            assert now < 60_000
            waiting = list(member.tick(now))
            for number, frame in embedded.tick(now):
                waiting += member.received(now, number, frame[4:])
            continue
        action = waiting.pop(0)
        kind = action["action"]
        if kind == "connect":
            waiting += member.connected(now, action["conn"], VERSIONS)
        elif kind == "send":
            data = action["data"]
            key, _, correlation = struct.unpack_from(">hhi", data, 4)
            if key == 3:
                frames.append(made(f"answers.metadata({{'t': 500_000}}, correlation={correlation})"))
                waiting += member.received(now, action["conn"], frames[-1])
            else:
                for number, frame in embedded.handle(now, action["conn"], data[4:])[1]:
                    waiting += member.received(now, number, frame[4:])
        elif kind == "notify" and member.begin(action["ticket"]):
            protocols = [("sticky", assignor.metadata(action["topics"], state))] if action["kind"] == "prepare" else []
            waiting += member.done(now, action["ticket"], protocols)
        elif kind == "plan":
            planned.append(action)
    return planned[0]

def work():
    plan = drive()
    count, racks = plan["topics"]["t"]
    assert count == 500_000 and racks[1] == {"rack-1"}
    return plan
measure(frames, work)
"""
    assert times(script) <= MOST


def test_what_would_become_larger_than_any_honest_answer_is_refused() -> None:
    # The largest factor of a regular answer: a partition without replicas, whose 18 bytes become 88. A topic without a
    # name and without partitions is similar, from 10 bytes.
    with pytest.raises(ProtocolError, match="the decoded message needs more than 6 times its bytes"):
        _core.decode_metadata(9, answers.CORRELATION, answers.metadata({"": 0}, repeat=50_000))


def test_one_member_with_more_partitions_than_any_group_is_refused() -> None:
    with pytest.raises(ProtocolError, match="gives one member 1000001 partitions; at most 1000000"):
        _core.decode_consumer_group_describe(0, answers.CORRELATION, answers.consumer_group_describe([1_000_001]))


def test_rows_are_a_sequence() -> None:
    topics = _core.decode_metadata(9, answers.CORRELATION, answers.metadata({"a": 2, "b": 0}))["topics"]
    assert [len(topics), [each["name"] for each in topics], topics[-1]["name"]] == [2, ["a", "b"], "b"]
    assert topics == list(topics)
    assert topics != list(topics)[:1]
    assert repr(topics) == repr(list(topics))
    with pytest.raises(IndexError):
        topics[2]
    with pytest.raises(IndexError):
        topics[-3]
