"""Closing librdkafka's consumer, which never ends by itself in some releases.

librdkafka 2.0.2 to 2.6.0 may leave an entry in the queue of a partition that it stops reading, and the entry refers to
the partition. If librdkafka then learns that the topic was deleted, it drops the partition but never frees it, and
`close` waits for that for ever (librdkafka #4362, mended by #4724).
"""

from __future__ import annotations

import logging
import threading

import confluent_kafka

from kafka_assignors.clients.confluent import times

__all__ = ["close_native_consumer"]

logger = logging.getLogger("kafka_assignors")

_Native = confluent_kafka.Consumer
_ENDS = confluent_kafka.libversion()[1] >= 0x02060100


def close_native_consumer(consumer: confluent_kafka.Consumer) -> None:
    """Closes librdkafka's consumer, or leaves its threads behind after `times.NATIVE_CLOSE` seconds.

    Raises:
        BaseException: what a callback of the application raised.
    """
    if _ENDS:
        _Native.close(consumer)
        return
    raised: list[BaseException] = []

    def close() -> None:
        try:
            _Native.close(consumer)
        except BaseException as error:
            raised.append(error)

    # A daemon, since the interpreter would wait for any other thread when it exits. The thread keeps the consumer,
    # whose destructor would wait as well.
    thread = threading.Thread(target=close, name="kafka-assignors-close", daemon=True)
    thread.start()
    thread.join(times.NATIVE_CLOSE)
    if thread.is_alive():
        logger.warning(
            "librdkafka %s did not close the consumer in %g s, and its threads are left behind. This happens where a "
            "topic is deleted after the consumer gave up its partitions (librdkafka #4362): install confluent-kafka "
            "2.6.1 or newer",
            confluent_kafka.libversion()[0],
            times.NATIVE_CLOSE,
        )
    if raised:
        raise raised[0]
