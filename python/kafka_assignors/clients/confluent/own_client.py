"""A client of librdkafka beside the consumer, for calls that the consumer itself must not make.

confluent-kafka stores the state of a call that waits in librdkafka, one state for each thread. `list_topics` and
`set_sasl_credentials` replace this state and delete it at their end. If a callback calls one of them, the next callback
of the same call finds no state, and the process is aborted (`CallState_get`, up to 2.16 at least). Our consumer attends
to the group in the callback for statistics, which is called again and again while an application is blocked in `poll`.
So within this callback another client makes these calls.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import confluent_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["CallbackThread", "OwnClient"]

# The client's class is stored at import, since programs may put our class in its place later.
_Native = confluent_kafka.Consumer

# Settings of the data path that such a client does not need.
_UNWANTED = {"statistics.interval.ms", "logger", "log_level", "debug"}


class OwnClient:
    """Connects with the settings of a data path.

    Args:
        settings: the data path's.

    Attributes:
        credentials: a user name and a password that replaced those of the settings.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {
            name: value
            for name, value in settings.items()
            if name not in _UNWANTED and (not callable(value) or name == "oauth_cb")
        }
        self.credentials: tuple[str, str] | None = None

    @contextmanager
    def opened(self) -> Iterator[confluent_kafka.Consumer]:
        """A consumer without a subscription; it is closed at the end.

        Raises:
            KafkaException: librdkafka refuses the settings.
        """
        consumer = _Native({**self._settings, "log_level": 0})
        try:
            if self.credentials is not None:
                consumer.set_sasl_credentials(*self.credentials)
            yield consumer
        finally:
            consumer.close()


class CallbackThread:
    """The thread that runs a consumer's callback for statistics, while the callback runs."""

    def __init__(self) -> None:
        self._thread: int | None = None

    @property
    def is_this(self) -> bool:
        """Whether the caller is within the callback."""
        return self._thread == threading.get_ident()

    def __enter__(self) -> None:
        self._thread = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._thread = None
