"""The private attributes of confluent-kafka, and the differences of its releases. No other module uses them.

Only `AIOConsumer` needs private attributes: no public argument gives it a consumer, so that the public API offers no
fallback. If confluent-kafka has no `AIOConsumer`, the import of ours raises `MissingDependencyError`. If the client's
lacks one of the private attributes, the constructor of ours raises `IncompatibleClientError` (`check_aio`). All other
differences of the releases have a fallback.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import KafkaError, Message

from kafka_assignors.errors import IncompatibleClientError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ErrorMessage",
    "aio_consumer",
    "call_native",
    "check_aio",
    "close_native",
    "error_message",
    "lacks",
    "on_the_loop",
    "replace_native",
]

# The first release with each of a producer's attributes that some releases lack.
_SINCE = {"produce_batch": "2.12", "close": "2.13", "__enter__": "2.13", "__exit__": "2.13"}


def lacks(client: object, name: str) -> AttributeError:
    """The error for an attribute of a class of ours. It names the release that has it, if this one lacks it."""
    kind = type(client).__name__
    if name in _SINCE:
        return AttributeError(
            f"{kind}.{name} needs confluent-kafka {_SINCE[name]} or newer, and {confluent_kafka.__version__} is "
            "installed"
        )
    return AttributeError(f"{kind!r} object has no attribute {name!r}")


# Messages.


class ErrorMessage:
    """The object that `poll` returns for an error of the group, in releases without a constructor of `Message` (up to
    2.12).
    """

    __slots__ = ("_error", "_topic")

    def __init__(self, error: KafkaError, topic: str | None) -> None:
        self._error = error
        self._topic = topic

    def __len__(self) -> int:
        return 0

    def error(self) -> KafkaError:
        """The error."""
        return self._error

    def topic(self) -> str | None:
        """The topic that the error concerns; None if it concerns no topic."""
        return self._topic

    def partition(self) -> None:
        """None, as are the other fields of a record: the error concerns no record."""

    offset = key = value = headers = latency = leader_epoch = partition

    def timestamp(self) -> tuple[int, int]:
        """No timestamp is known."""
        return confluent_kafka.TIMESTAMP_NOT_AVAILABLE, 0


def error_message(error: KafkaError, topic: str | None) -> Any:
    """The message with which `poll` reports an error."""
    try:
        return Message(error=error) if topic is None else Message(error=error, topic=topic)
    except TypeError:
        return ErrorMessage(error, topic)


# `AIOConsumer`.


def aio_consumer() -> type[Any]:
    """The client's `AIOConsumer`.

    Raises:
        MissingDependencyError: this release has none.
    """
    reasons = []
    # confluent-kafka 2.12 has the class in its package `experimental` only.
    for name in ("confluent_kafka.aio", "confluent_kafka.experimental.aio"):
        try:
            kind: type[Any] = importlib.import_module(name).AIOConsumer
        except ImportError as error:
            reasons.append(str(error))
        else:
            return kind
    raise MissingDependencyError(
        f"AIOConsumer needs confluent-kafka 2.12 or newer, and {confluent_kafka.__version__} is installed "
        f"({reasons[0]})"
    )


def check_aio(consumer: Any) -> None:
    """Checks for all private attributes of an `AIOConsumer`.

    Raises:
        IncompatibleClientError: this version of confluent-kafka lacks one of them.
    """
    missing = [name for name in ("_consumer", "_call", "_wrap_callback") if not hasattr(consumer, name)]
    if missing:
        raise IncompatibleClientError(
            f"AIOConsumer of confluent-kafka {confluent_kafka.__version__} cannot be given a consumer (it has no "
            f"{', '.join(missing)}): install confluent-kafka 2.12 to 2.16"
        )


# `check_aio` has checked for all attributes that the functions below touch.


def close_native(consumer: Any) -> None:
    """Closes the consumer that the client made."""
    consumer._consumer.close()


def replace_native(consumer: Any, other: confluent_kafka.Consumer) -> None:
    """Replaces the consumer whose methods the client calls."""
    consumer._consumer = other


def on_the_loop(consumer: Any, callback: Callable[..., Any]) -> Callable[..., Any]:
    """A callback that runs a coroutine function on the event loop, and waits for it."""
    wrapped: Callable[..., Any] = consumer._wrap_callback(asyncio.get_running_loop(), callback)
    return wrapped


async def call_native(consumer: Any, method: str) -> Any:
    """Calls a method of the consumer on a thread of the executor."""
    return await consumer._call(getattr(consumer._consumer, method))
