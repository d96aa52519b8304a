"""Timing of the contenders in Python.

A worker is a process that reads one request per line from its standard input and answers with one event per line,
both in JSON:

- `{"event": "loaded"}` when it has read the point;
- `{"event": "called"}` after the first call; a contender gives up if this event is late;
- `{"event": "done", "wall": […], "cpu": […], "plans": […], "cold": …}`: nanoseconds of every call that counts; for
  each of the first ten calls the index of its plan in the file `out`; and whether the first call counts, because a
  second one would not have ended in time. If the request has `beside`, the answer has `beside_wall` and `beside_cpu`;
- `{"event": "failed", "error": "…"}` instead of one of them.

A request is `{"file": …, "call": …, "out": …, "warm": …, "budget": …, "least": …}`: the file of the
point, the strategy, the file for the plans, the seconds of warm-up, the seconds for all calls that count, and the least
seconds of calls if ten calls are faster. A request to a worker in Python may have `beside`, a second strategy. Its
calls and those of the first are measured in turns, so that both meet the same disturbances. `out` has, big-endian, the
number of different plans, and for each the assignments in order of the members. Each assignment has its length in four
bytes in front, -1 for a member without one. The programs in Java and Go follow the same protocol.
"""

from __future__ import annotations

import gc
import json
import struct
import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, perf_counter_ns, process_time_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

__all__ = ["CALLS", "MOST_CALLS", "Loaded", "Plans", "Timed", "answer", "clocked", "load", "measure", "tell"]

# The number of calls whose plans are compared, and the largest number of calls.
CALLS, MOST_CALLS = 10, 300


class Loaded:
    """A point, read from its file."""

    def __init__(self, racks: list[str], topics: dict[str, int], members: list[tuple[str, bytes]]) -> None:
        self.racks, self.topics, self.members = racks, topics, members


def load(path: str) -> Loaded:
    """Reads the file that `points.Group.write` wrote."""
    data, at = Path(path).read_bytes(), 0

    def number() -> int:
        nonlocal at
        at += 4
        return int.from_bytes(data[at - 4 : at], "big", signed=True)

    def string() -> str:
        nonlocal at
        start = at + 2
        at = start + int.from_bytes(data[at:start], "big")
        return data[start:at].decode()

    def blob() -> bytes:
        nonlocal at
        size = number()
        at += size
        return data[at - size : at]

    racks = [string() for _ in range(number())]
    topics = {string(): number() for _ in range(number())}
    members = [(string(), blob()) for _ in range(number())]
    return Loaded(racks, topics, members)


def tell(event: str, **more: Any) -> None:
    """Prints one event."""
    print(json.dumps({"event": event, **more}), flush=True)


class Plans:
    """The different plans among those of the first calls."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = list(ids)
        self._different: list[list[bytes | None]] = []
        self.of_call: list[int] = []

    def add(self, plan: Mapping[str, bytes]) -> None:
        if len(self.of_call) == CALLS:
            return
        listed = [plan.get(member) for member in self._ids]
        if listed not in self._different:
            self._different.append(listed)
        self.of_call.append(self._different.index(listed))

    def write(self, path: str) -> None:
        with open(path, "wb") as out:
            out.write(struct.pack(">i", len(self._different)))
            for plan in self._different:
                for assignment in plan:
                    out.write(struct.pack(">i", -1 if assignment is None else len(assignment)))
                    out.write(assignment or b"")


Timed = tuple[int, int, "Mapping[str, bytes]"]
"""One call: nanoseconds of wall time, nanoseconds of processor time, and the plan."""


def measure(
    timed: Callable[[], Timed], request: dict[str, Any], plans: Plans, beside: Callable[[], Timed] | None = None
) -> dict[str, Any]:
    """Calls as often as the request says, in turns with `beside`; returns the content of the event `done`."""
    calls = {"": timed} if beside is None else {"": timed, "beside_": beside}
    times: dict[str, list[tuple[int, int]]] = {name: [] for name in calls}
    begin = perf_counter()
    wall, cpu, plan = timed()
    tell("called")
    # A second call would take as long as the first one, and not end within the budget.
    cold = 2 * (perf_counter() - begin) > request["budget"]
    if cold:
        times[""].append((wall, cpu))
        plans.add(plan)
        if beside is not None:
            times["beside_"].append(beside()[:2])
    else:
        while perf_counter() - begin < request["warm"]:
            for call in calls.values():
                call()
        gc.collect()
        start = perf_counter()
        for count in range(1, MOST_CALLS + 1):
            for name, call in calls.items():
                wall, cpu, plan = call()
                times[name].append((wall, cpu))
                if call is timed:
                    plans.add(plan)
            elapsed = perf_counter() - start
            if count >= CALLS and elapsed >= request["least"]:
                break
            if elapsed * (count + 1) / count > request["budget"]:
                break
    figures: dict[str, Any] = {"cold": cold}
    for name, taken in times.items():
        figures |= {f"{name}wall": [wall for wall, _ in taken], f"{name}cpu": [cpu for _, cpu in taken]}
    return figures


def clocked(call: Callable[[], Mapping[str, bytes]]) -> Callable[[], Timed]:
    """The call, timed with both clocks of this process."""

    def timed() -> Timed:
        cpu, start = process_time_ns(), perf_counter_ns()
        plan = call()
        wall = perf_counter_ns() - start
        return wall, process_time_ns() - cpu, plan

    return timed


def answer(prepare: Callable[[Loaded, str], AbstractContextManager[Callable[[], Timed]]]) -> None:
    """Answers requests until there are none. `prepare` returns the timed call for a point and a strategy."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            loaded = load(request["file"])
            plans = Plans(member for member, _ in loaded.members)
            with ExitStack() as stack:
                calls = [request["call"], *filter(None, [request.get("beside")])]
                timed, *beside = [stack.enter_context(prepare(loaded, call)) for call in calls]
                tell("loaded")
                figures = measure(timed, request, plans, *beside)
            plans.write(request["out"])
            tell("done", plans=plans.of_call, **figures)
        except Exception as error:
            tell("failed", error=f"{type(error).__name__}: {error}")
