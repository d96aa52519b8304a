"""Errors that are both ours and the client's."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors import errors
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OptionError", "as_the_client", "client_error"]


class OptionError(errors.OptionError, KafkaException):
    """A setting with a value that cannot be used. It is a `KafkaException` with `_INVALID_ARG` as well."""

    def __str__(self) -> str:
        return str(self.args[0].str())


# Tracebacks name the module from which programs import the class, and pickle looks the class up there.
OptionError.__module__ = "kafka_assignors.clients.confluent"


def client_error(code: int, reason: str, *, fatal: bool = False) -> KafkaError:
    """An error of the client, with a text that may come from a broker.

    The constructor of `KafkaError` raises for a NUL and for half a surrogate pair. Then the error would be lost, and
    the application would not learn that its consumer is out of the group for good.
    """
    return KafkaError(code, printable(reason, SENTENCE), fatal)


@contextlib.contextmanager
def as_the_client() -> Iterator[None]:
    """Turns an `OptionError` of the package into one that is also the client's exception."""
    try:
        yield
    except errors.OptionError as error:
        if isinstance(error, KafkaException):
            raise
        raise OptionError(client_error(KafkaError._INVALID_ARG, str(error))) from None
