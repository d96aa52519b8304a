"""Runs contenders at points, one process each, one point after the other. After a minute a contender gives up.

Ours and its floor are called in turns in one process. Measured one after the other on a machine that others use too,
their ratio differs by more than a factor of three from run to run.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from race.contenders import FLOORS, MEMORY_GB, OURS, Contender, MissingPeerError, available
from race.plans import InvalidPlanError, Judge, Quality, read_plans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from race.points import Point

__all__ = ["QUICK", "Entry", "GaveUpError", "Limits", "Race", "Worker"]

BENCHES = Path(__file__).parent.parent
# The largest number of rebalances of a cooperative group until no partition is withheld.
MOST_ROUNDS = 5


@dataclass(frozen=True)
class Limits:
    """The limits of a run, in seconds."""

    call: float = 60.0
    """The largest time of the first call; after it the contender gives up."""
    budget: float = 10.0
    """The time for all calls that count, without the first one."""
    least: float = 0.3
    """The least time of the calls that count; if ten calls are faster, there are more."""
    warm: float = 1.0
    """A factor for the contender's seconds of warm-up."""
    load: float = 180.0
    """The time for reading a point, with the start of the process."""


QUICK = Limits(call=20.0, budget=1.0, least=0.02, warm=0.1)

Entry = dict[str, Any]
"""The stored result of a contender at a point: `status` is measured, gave up, not tried, missing or invalid."""


class GaveUpError(RuntimeError):
    """A contender had no plan in time, or its process ended; the message says which."""


class Worker:
    """The process of a contender. It runs until it is closed or a request to it fails."""

    def __init__(self, command: Sequence[str], limited: bool) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(BENCHES), str(BENCHES.parent / "tests")))}
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        # In its own session, so that its child processes can be ended with it.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
            start_new_session=True,
        )
        if limited:
            # A process that needs more fails, and the machine does not run out of memory. Children inherit the limit.
            most = MEMORY_GB << 30
            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (most, most))
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(json.JSONDecodeError):
                self._events.put(json.loads(line))
        self._events.put(None)

    def ask(self, request: dict[str, Any], limits: Limits) -> dict[str, Any]:
        """Sends one request and waits for its answer.

        Raises:
            GaveUpError: there was no answer, and the worker was ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        try:
            self._expect("loaded", limits.load, "did not read the point")
            self._expect("called", limits.call, "gave up")
            return self._expect("done", 2 * (limits.call + limits.budget), "did not come to an end")
        except GaveUpError:
            self.close()
            raise

    def _expect(self, event: str, seconds: float, otherwise: str) -> dict[str, Any]:
        try:
            answer = self._events.get(timeout=seconds)
        except queue.Empty:
            raise GaveUpError(f"{otherwise} after {seconds:g} s") from None
        if answer is None:
            raise GaveUpError(": ".join([f"ended with exit code {self._process.wait()}", *self._last_words()]))
        if answer["event"] == "failed":
            raise GaveUpError(f"failed: {answer['error'][:300]}")
        assert answer["event"] == event, f"{answer} instead of {event}"
        return answer

    def _last_words(self) -> list[str]:
        """The line of its log with the reason of its end: the last one, or in Go the one before the trace."""
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return [line for line in lines if line.startswith("fatal error: ")][:1] or [line[-300:] for line in lines[-1:]]

    def close(self) -> None:
        """Ends the process and its children."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._log.close()


@dataclass
class Race:
    """One run: the running workers, and the points at which contenders gave up."""

    limits: Limits = field(default_factory=Limits)
    try_all: bool = False
    _workers: dict[str, Worker] = field(default_factory=dict)
    _given_up: list[tuple[Contender, Point, str]] = field(default_factory=list)

    def close(self) -> None:
        """Ends all workers."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()

    def run(self, point: Point, peers: Sequence[Contender]) -> dict[str, Entry]:
        """Runs ours, its floors and these peers at one point."""
        group = point.group()
        judge = Judge(group)
        with tempfile.TemporaryDirectory(prefix="race-") as directory:
            file = Path(directory) / "point"
            group.write(file)
            entries = {each.name: self._enter(each, point, judge, file) for each in (*OURS, *peers)}
        by_strategy = {}
        for floor, ours in zip(FLOORS, OURS, strict=True):
            mine = entries[ours.name]
            if mine["status"] != "measured":
                # Every peer's figures are divided by those of ours and of the floor.
                raise RuntimeError(f"{ours.name} was not measured at {point.name}: {mine['reason']}")
            entries[floor.name] = mine.pop("beside")
            by_strategy[ours.strategy] = {"floor": entries[floor.name], "ours": mine}
        for each in (*OURS, *peers):
            entry = entries[each.name]
            if entry["status"] == "measured":
                # The figures of the same run, so that results of different runs can be in one table.
                for name, other in by_strategy[each.strategy].items():
                    entry |= {f"{name}_{figure}": other[figure] for figure in ("cpu_ms", "wall_ms")}
        return entries

    def _enter(self, contender: Contender, point: Point, judge: Judge, file: Path) -> Entry:
        for other, where, why in self._given_up:
            if other == contender and not self.try_all and _no_easier(where, point):
                return {"status": "not tried", "reason": f"{why} at {where.name}"}
        try:
            return self._measure(contender, judge, file)
        except MissingPeerError as error:
            return {"status": "missing", "reason": str(error)}
        except InvalidPlanError as error:
            return {"status": "invalid", "reason": str(error)}
        except GaveUpError as error:
            self._workers.pop(contender.worker, None)
            self._given_up.append((contender, point, str(error)))
            return {"status": "gave up", "reason": str(error)}

    def _ask(self, contender: Contender, file: Path, *, once: bool = False) -> dict[str, Any]:
        worker = self._workers.get(contender.worker)
        if worker is None:
            worker = self._workers[contender.worker] = Worker(available(contender.worker), contender.limited)
        limits = self.limits
        request = {
            "file": str(file),
            "call": contender.call,
            "out": str(file.with_name("plans")),
            "warm": 0 if once else contender.warm * limits.warm,
            # Without a budget there is one call only.
            "budget": 0 if once else limits.budget,
            "least": limits.least,
        }
        if contender.beside and not once:
            request["beside"] = contender.beside
        return worker.ask(request, limits)

    def _measure(self, contender: Contender, judge: Judge, file: Path) -> Entry:
        answer = self._ask(contender, file)
        entry = _times(answer)
        if contender.beside:
            entry["beside"] = _times(answer, "beside_")
        plans = read_plans(file.with_name("plans"), len(judge.ids))
        entry |= {"plans": len({judge.canonical(plan) for plan in plans}), "compared": len(answer["plans"])}
        quality = self._settle(contender, judge, plans[answer["plans"][0]], file)
        return entry | vars(quality)

    def _settle(self, contender: Contender, judge: Judge, plan: list[bytes | None], file: Path) -> Quality:
        """Runs the rebalances after a cooperative plan until no partition is withheld; the quality of the last plan."""
        rounds = 1
        while contender.cooperative and rounds < MOST_ROUNDS and judge.withheld(plan):
            again = file.with_name("again")
            judge.rejoined(plan, rounds).write(again)
            answer = self._ask(contender, again, once=True)
            plan = read_plans(file.with_name("plans"), len(judge.ids))[answer["plans"][0]]
            rounds += 1
        return judge.quality(plan, rounds)


def _times(answer: dict[str, Any], prefix: str = "") -> Entry:
    cpu, wall = answer[f"{prefix}cpu"], answer[f"{prefix}wall"]
    return {
        "status": "measured",
        "cpu_ms": median(cpu) / 1e6,
        "wall_ms": median(wall) / 1e6,
        "calls": len(wall),
        "cold": answer["cold"],
    }


def _no_easier(given_up: Point, point: Point) -> bool:
    """Whether a point is at least as large as the one at which a contender gave up, and not easier.

    Equal subscriptions are easier than others, and a fresh group is easier than a change.
    """
    return (
        point.members >= given_up.members
        and point.partitions >= given_up.partitions
        and (given_up.kind == "equal" or point.kind != "equal")
        and (given_up.change == "fresh" or point.change != "fresh")
    )
