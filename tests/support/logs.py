"""The log records of the package during a test, without those of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

    import pytest

__all__ = ["records_of_the_package"]


def records_of_the_package(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The records of the package's loggers, in order. A thread of another test's client may still log its own."""
    return [record for record in caplog.records if record.name.partition(".")[0] == "kafka_assignors"]
