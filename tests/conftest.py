"""What holds for every test: which package is under test, how hard property tests search, and that CI skips nothing."""

import os
import sys
from collections.abc import Generator

import hypothesis
import pytest

import kafka_assignors

pytest_plugins = ["support.fixtures", "support.spark", "support.net_driver"]

hypothesis.settings.register_profile("quick", max_examples=100, deadline=None)
hypothesis.settings.register_profile("long", max_examples=5_000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_report_header() -> str:
    return f"kafka_assignors: {kafka_assignors.__version__} in {os.path.dirname(kafka_assignors.__file__)}"


def pytest_sessionstart() -> None:
    """Make's targets test the wheel as installed, never the sources beside it."""
    if os.environ.get("KAFKA_ASSIGNORS_INSTALLED") and not kafka_assignors.__file__.startswith(sys.prefix):
        pytest.exit(f"the package under test is {kafka_assignors.__file__}, not the installed wheel", returncode=4)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A group is kept together by its name behind the test's; otherwise four Spark sessions run side by side."""
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]:
            raise pytest.UsageError(f"{item.nodeid} has lost its group: this pytest-xdist does not fit this pytest")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """A skip tells a developer that something is missing here; on CI nothing may be missing."""
    if os.environ.get("CI"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped where CI is set, and CI must not skip: {reason}"
