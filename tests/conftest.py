"""For every test: the package under test, the number of property-test examples, and the rule that CI skips no test."""

import gc
import os
import sys
from collections.abc import Generator

import hypothesis
import pytest

import kafka_assignors

pytest_plugins = [
    "support.no_skips",
    "support.needs",
    "support.features",
    "support.fixtures",
    "support.member_fixtures",
    "support.spark",
    "support.net_driver",
]

hypothesis.settings.register_profile("quick", max_examples=100, deadline=None)
hypothesis.settings.register_profile("long", max_examples=5_000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure() -> None:
    """No test may depend on the size of the terminal, which pytest-xdist writes into these variables."""
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


def pytest_report_header() -> str:
    return f"kafka_assignors: {kafka_assignors.__version__} in {os.path.dirname(kafka_assignors.__file__)}"


def pytest_sessionstart() -> None:
    """Make's targets test the installed wheel, not the sources beside it."""
    if os.environ.get("KAFKA_ASSIGNORS_INSTALLED") and not kafka_assignors.__file__.startswith(sys.prefix):
        pytest.exit(f"the package under test is {kafka_assignors.__file__}, not the installed wheel", returncode=4)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keeps the thousands of collected tests, which live to the end, from Python's garbage collector.

    Otherwise each full garbage collection visits all of them, which takes a seventh of the time of pytest's collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the tests, and fails if a test of an xdist group has lost the suffix `@group` of its name.

    xdist keeps a group together by this suffix. Without it, four Spark sessions would run at once. xdist hands out
    groups by their size, and then tests in the order of `items`. The members' tests wait for sessions to expire, so
    they begin while Spark computes.
    """
    items.sort(key=lambda item: (item.get_closest_marker("first") is None, "/member/" not in item.nodeid))
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]:
            raise pytest.UsageError(f"{item.nodeid} has lost its group: this pytest-xdist does not fit this pytest")
