"""The private attributes of confluent-kafka. They are touched here and nowhere else.

Only `AIOConsumer` needs any, since no public argument gives it a consumer. There is no fallback with the public API:
the constructor refuses a version of confluent-kafka without these attributes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import aio

from kafka_assignors.errors import IncompatibleClientError

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable

__all__ = ["HookedAIOConsumer"]


class HookedAIOConsumer(aio.AIOConsumer):
    """confluent-kafka's `AIOConsumer`, whose consumer can be replaced.

    Raises:
        IncompatibleClientError: this version of confluent-kafka has other private attributes.
    """

    def __init__(
        self, consumer_conf: dict[str, Any], max_workers: int, executor: concurrent.futures.Executor | None
    ) -> None:
        super().__init__(consumer_conf, max_workers=max_workers, executor=executor)
        missing = [name for name in ("_consumer", "_call", "_wrap_callback") if not hasattr(self, name)]
        if missing:
            raise IncompatibleClientError(
                f"AIOConsumer of confluent-kafka {confluent_kafka.__version__} cannot be given a consumer (it has no "
                f"{', '.join(missing)}): install confluent-kafka 2.16"
            )

    def _close_native(self) -> None:
        """Closes the consumer that the client made."""
        self._consumer.close()

    def _replace_native(self, consumer: confluent_kafka.Consumer) -> None:
        """Replaces the consumer whose methods the client calls."""
        self._consumer = consumer

    def _on_the_loop(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """A callback that runs a coroutine function on the event loop, and waits for it."""
        return self._wrap_callback(asyncio.get_running_loop(), callback)

    async def _of_consumer(self, method: str) -> Any:
        """Calls a method of the consumer on a thread of the executor."""
        return await self._call(getattr(self._consumer, method))
