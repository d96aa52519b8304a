"""The needs of a test beyond the wheel, Python and cargo.

A test with such a need has the mark `needs`, with the name of the need. `make test` runs the tests without it
(``-m "not needs"``), and `make check` runs the others too. The mark follows from the fixtures that a test asks for; a
test that starts such a program itself carries the mark in its source. No program of this list starts under a test
without its need, so a test cannot be in the wrong half.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

# A program that a test starts, with the needs that allow it.
PROGRAMS = {
    "java": {"broker", "java", "spark"},
    "javac": {"broker", "java", "spark"},
    "mvn": {"broker", "java", "spark"},
    "spark-submit": {"spark"},
    "go": {"peers"},
    "chromium": {"browser"},
    "chromium-browser": {"browser"},
    "google-chrome": {"browser"},
    "google-chrome-stable": {"browser"},
    "prometheus": {"prometheus"},
    "promtool": {"prometheus"},
}
NEEDS = {
    "broker": "a real Apache Kafka broker",
    "java": "a Java client",
    "spark": "Spark",
    "browser": "a browser",
    "prometheus": "Prometheus",
    "peers": "other projects' assignors, built and run",
    "frameworks": "FastStream, kstreams, Quix Streams, Faust, tracers, a signer: the dependency group of that name",
    "chaos": "a group that runs for long under random faults",
    "index": "an index of packages",
    "benches": "a program of benches/, run",
    "time": "a bound of time; or seconds of a core or a long wait, for more of the same cases",
    "release": "the files of a release, built",
    "memory": "hundreds of megabytes, filled to see that they are no more",
}
FIXTURES = {
    "kafka_broker": "broker",
    "consumer_protocol_kafka": "broker",
    "kafka_of_version": "broker",
    "start_kafka": "broker",
    "secured_kafka": "broker",
    "spark": "spark",
    "browser": "browser",
}
# Fixtures that give the embedded Kafka, which has no needs, or a real one.
EITHER = ("any_kafka", "own_kafka", "compacting")


def rest(*values: object) -> list[Any]:
    """Parameters that `make check` adds to those of `make test`: more of the same cases."""
    return [pytest.param(value, marks=pytest.mark.needs("time")) for value in values]


def needs_of(item: pytest.Item) -> set[str]:
    """The needs of a test, from its marks and its fixtures."""
    marked = {name for mark in item.iter_markers("needs") for name in mark.args}
    unknown = marked - set(NEEDS)
    if unknown:
        raise pytest.UsageError(f"{item.nodeid}: there is no need {sorted(unknown)}; the needs are {sorted(NEEDS)}")
    named = set(getattr(item, "fixturenames", ()))
    parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    real = any(parameters.get(name, "embedded") != "embedded" for name in EITHER)
    return marked | {need for fixture, need in FIXTURES.items() if fixture in named} | ({"broker"} if real else set())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the marks before `-m` selects tests by them."""
    for item in items:
        needs = needs_of(item)
        if needs:
            item.add_marker(pytest.mark.needs(*sorted(needs)))


# Only installed programs count: a test may write a program with the same name itself.
INSTALLED = {name: shutil.which(name) for name in PROGRAMS}

# The id and the needs of the running test. None between tests, and in a process that runs no tests.
_running: tuple[str, set[str]] | None = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A program that starts during this call counts for this test."""
    global _running
    _running = (item.nodeid, needs_of(item))
    try:
        return (yield)
    finally:
        _running = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "subprocess.Popen" or _running is None:
        return
    path = os.fsdecode(arguments[0])
    program = os.path.basename(path)
    test, needs = _running
    if program not in PROGRAMS or (INSTALLED[program] is not None and shutil.which(path) != INSTALLED[program]):
        return
    if not PROGRAMS[program] & needs:
        allowed = " or ".join(f'pytest.mark.needs("{name}")' for name in sorted(PROGRAMS[program]))
        raise AssertionError(f"{test} starts {program} and does not say that it needs it: mark it {allowed}")


sys.addaudithook(_audit)
