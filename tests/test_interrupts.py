"""Ctrl-C interrupts planning and verification in the core, on the main thread."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Three signals during one call, each sent after the handler of the one before has run. Only a call that checks for
# signals itself handles more than one. The third handler raises.
PROGRAM = """
import os, random, signal, sys, threading, time, warnings
from kafka_assignors import Group, LagBasedAssignor, Member, MemberState, RangeAssignor, StickyAssignor

warnings.simplefilter("ignore")

def graph(count):
    # Members on three topics each, with random owners: a partition passes many members until one of them keeps it.
    pick = random.Random(1)
    topics = {f"t{at:05}": 210 if at % 500 == 0 else 10 for at in range(count)}
    names = list(topics)
    members = [Member(f"m{at:05}", sorted({names[at], names[at - 1], pick.choice(names)})) for at in range(count)]
    subscribers = {topic: [] for topic in names}
    for member in members:
        for topic in member.topics:
            subscribers[topic].append(member)
    owned = {member.id: {} for member in members}
    for topic, partitions in topics.items():
        for number in range(partitions):
            owned[pick.choice(subscribers[topic]).id].setdefault(topic, []).append(number)
    return Group(topics, [Member(each.id, each.topics, owned=owned[each.id], generation=1) for each in members])

def newcomers(count, shared):
    # One member has all, and gives nearly all away.
    topics = {"x": shared} | {f"y{at:05}": 1 for at in range(count)}
    members = [Member("m", ["x"], owned={"x": list(range(shared))}, generation=1)]
    members += [Member(f"n{at:05}", ["x", f"y{at:05}"]) for at in range(count)]
    return Group(topics, members)

def call(what):
    if what == "assign by lag":
        group = newcomers(2_000, 200_000)
        lags = {topic: [2_030 + at * 7_919 % 1_000 for at in range(count)] for topic, count in group.topics.items()}
        assignor = LagBasedAssignor(scope="group", max_skew=None, keep="owners")
        return lambda: assignor.assign(group, lags=lags)
    # The core looks for signals every 50 ms. The calls take about a second, so that the third signal is in time.
    group = graph(16_000 if what == "verify" else 32_000)
    if what == "assign":
        return lambda: StickyAssignor().assign(group)
    if what == "perform_assignment":
        assignor = StickyAssignor()
        joined = [
            (member.id, assignor.metadata(member.topics, MemberState(dict(member.owned), member.generation)))
            for member in group.members
        ]
        return lambda: assignor.perform_assignment(joined, dict(group.topics))
    return RangeAssignor().assign(group).verify

started, handled = threading.Event(), threading.Event()
count, raised = 0, 0.0

def handle(signum, frame):
    global count, raised
    count += 1
    handled.set()
    if count == 3:
        raised = time.process_time()
        raise KeyboardInterrupt

def send():
    started.wait()
    while count < 3:
        handled.clear()
        os.kill(os.getpid(), signal.SIGINT)
        handled.wait()

work = call(sys.argv[1])
signal.signal(signal.SIGINT, handle)
threading.Thread(target=send, daemon=True).start()
try:
    # The thread that waits for the event runs when the call releases the interpreter lock, and not before.
    started.set()
    work()
except KeyboardInterrupt:
    print("interrupted by", count)
    print(time.process_time() - raised)
else:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("ended by itself after", count)
"""


KINDS = pytest.mark.parametrize("what", ["assign", "perform_assignment", "assign by lag", "verify"])


def interrupted(what: str) -> float:
    """The seconds of CPU time between the error of the signal's handler and the end of the call."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM, what], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    how, _, seconds = ended.stdout.partition("\n")
    assert how == "interrupted by 3"
    return float(seconds)


@KINDS
def test_ctrl_c_ends_it(what: str) -> None:
    interrupted(what)


@pytest.mark.needs("time")
@KINDS
def test_ctrl_c_ends_it_at_once(what: str) -> None:
    """A call that computes on after the handler's error takes seconds."""
    assert interrupted(what) < 0.5
