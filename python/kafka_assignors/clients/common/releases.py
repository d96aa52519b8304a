"""The tested releases of the clients, and the warning and the error for other releases."""

from __future__ import annotations

import re
import warnings

from kafka_assignors.errors import ClientReleaseWarning, IncompatibleClientError

__all__ = ["TESTED", "incompatible", "numbers", "warn_if_newer"]

TESTED = {
    "aiokafka": ("0.10.0", "0.14.0"),
    "confluent-kafka": ("2.3.0", "2.16.1"),
    "kafka-python": ("2.0.2", "3.0.12"),
}
"""The oldest and the newest release of each client that `make matrix` tests."""


def numbers(release: str) -> tuple[int, ...]:
    """The numbers with which a release begins, for comparison.

    >>> numbers("2.14.0rc1") < numbers("2.14.2")
    True
    """
    found = re.match(r"\d+(\.\d+)*", release)
    return tuple(map(int, found.group().split("."))) if found else ()


def warn_if_newer(package: str, release: str) -> None:
    """Warns of a release that is newer than the tested ones. It is used all the same."""
    oldest, newest = TESTED[package]
    if numbers(release) > numbers(newest):
        warnings.warn(
            f"{package} {release} is newer than the releases that kafka-assignors was tested with ({oldest} to "
            f"{newest}); it is used as it is, and a newer kafka-assignors may know it",
            ClientReleaseWarning,
            # The warning points at the import of the client's package.
            stacklevel=3,
        )


def incompatible(package: str, release: str, error: Exception) -> IncompatibleClientError:
    """The error for a release that lacks a name of the client that this package needs.

    Args:
        package: its name.
        release: the installed release.
        error: names what is missing.
    """
    oldest, newest = TESTED[package]
    return IncompatibleClientError(
        f"{package} {release} lacks something that kafka-assignors needs ({error}): install a release from {oldest} to "
        f"{newest}"
    )
