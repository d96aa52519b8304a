"""The demo runs with its documented command, and its checks find each kind of fault."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from demo.board import Board, Row
from demo.events import Assigned, Event, Planned, Read, dump, load
from demo.ledger import Ledger
from support.needs import rest


def assigned(member: str, generation: int, *numbers: int) -> Assigned:
    return Assigned(member, generation, ["orders"], {"orders": list(numbers)}, {}, {})


def read(member: str, generation: int, number: int, first: int, count: int) -> Read:
    return Read(member, generation, [("orders", number, first, count)])


def clean() -> list[Event]:
    """Two members, and two partitions of five messages each. c2 dies, and c1 goes on at c2's last commit."""
    return [
        assigned("c1", 1, 0),
        assigned("c2", 1, 1),
        read("c1", 1, 0, 0, 5),
        read("c2", 1, 1, 0, 3),
        assigned("c1", 2, 0, 1),
        read("c1", 2, 1, 2, 3),
    ]


def ledger_of(events: list[Event]) -> Ledger:
    ledger = Ledger()
    for number in (0, 1):
        for _ in range(5):
            ledger.acknowledged("orders", number)
    for event in events:
        ledger.take(load(dump(event)))
    return ledger


def test_a_clean_run_has_no_faults() -> None:
    ledger = ledger_of(clean())
    assert (ledger.faults(), ledger.missing, ledger.repeated) == ([], 0, 1)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda events: events.pop(), "orders-1: 2 of 5 messages were lost, the first at 3"),
        (
            lambda events: events.insert(3, read("c1", 1, 1, 0, 1)),
            "orders-1: read by c1 and c2 at once in generation 1",
        ),
        (
            lambda events: events.insert(2, assigned("c1", 1, 0, 1)),
            "orders-1: owned by c1 and c2 at once in generation 1",
        ),
        (lambda events: events.append(read("c2", 2, 1, 3, 1)), "orders-1: read by c2, no owner of it in generation 2"),
    ],
    ids=["lost", "two readers", "two owners", "a stranger"],
)
def test_every_fault_is_seen(spoil: Callable[[list[Event]], object], fault: str) -> None:
    events = clean()
    spoil(events)
    assert fault in ledger_of(events).faults()


def test_the_board_compares_with_what_the_members_held() -> None:
    board = Board({"orders": 4})
    for name in ("c1", "c2", "c3"):
        board.rows[name] = Row(name, "kafka-python")
    first = {"c1-uuid": {"orders": [0, 2]}, "c2-uuid": {"orders": [1, 3]}}
    assert board.take(Planned("c1", 1, first, 0, 0, 0, 0.1)) is None
    assert board.take(assigned("c1", 1, 0, 2)) is None
    rebalance = board.take(assigned("c2", 1, 1, 3))
    assert rebalance is not None
    assert rebalance.members == board.settled == ["c1", "c2"]
    assert board.rows["c1"].leader
    second = {"c1-uuid": {"orders": [0, 2]}, "c2-uuid": {"orders": [1]}, "c3-uuid": {"orders": [3]}}
    board.take(Planned("c1", 2, second, 1, 1, 2, 0.1))
    assert board.settled == []
    for event in (assigned("c3", 2, 3), assigned("c2", 2, 1), assigned("c1", 2, 0, 2)):
        rebalance = board.take(event)
    assert rebalance is not None
    # Range would assign 0 1 | 2 | 3, round robin 0 3 | 1 | 2.
    assert (rebalance.moved, rebalance.range_moved, rebalance.round_robin_moved) == (1, 3, 2)


@pytest.mark.first
@pytest.mark.parametrize("strategy", [None, *rest("own_assignors.caps:Caps(most=20)")])
def test_the_demo_ends_by_itself_and_well(strategy: str | None) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "demo", *([] if strategy is None else ["--strategy", strategy])],
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
        env=os.environ | {"PYTHONPATH": os.path.join(os.path.dirname(__file__), "..", "examples")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    rebalances = [line for line in lines if line.startswith("generation ")]
    assert len(rebalances) >= 4
    for members in ("c1 c2 c3:", "c1 c3:", "c1 c3 c4 c5:"):
        assert any(members in line for line in rebalances), done.stdout
    for client in ("kafka-python", "aiokafka", "confluent-kafka"):
        assert any(line.startswith("  c") and line.split()[1] == client for line in lines), done.stdout
    assert ", 0 lost," in lines[-1]
    assert "\x1b" not in done.stdout
