"""Errors whose texts contain a broker's words: no error is lost because of its text, and every text is printable."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_assignors.clients.confluent import Consumer
from support.silence import member_of

NOBODY: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
# The text of a client's error may contain neither `\0` nor `\ud800`. `\x1b` would control a terminal.
STRANGE = "no protocol 'a\0\x1b[2J\ud800'"
PRINTED = r"no protocol 'a\x00\x1b[2J\ud800'"


def test_a_fatal_error_is_told_whatever_is_in_its_text() -> None:
    with Consumer(NOBODY) as consumer:
        consumer.subscribe(["orders"])
        code = KafkaError.INCONSISTENT_GROUP_PROTOCOL
        member_of(consumer)._perform({"action": "fatal", "error_code": code, "message": STRANGE})
        for _ in range(2):
            with pytest.raises(KafkaException) as raised:
                consumer.poll(0)
            error = raised.value.args[0]
            assert (error.code(), error.fatal(), error.str()) == (code, True, PRINTED)


def test_an_error_is_told_whatever_is_in_its_text() -> None:
    with Consumer(NOBODY) as consumer:
        consumer.subscribe(["orders"])
        code = KafkaError.UNKNOWN
        member_of(consumer)._perform({"action": "error", "error_code": code, "topic": None, "message": STRANGE * 1_000})
        message = consumer.poll(0)
        assert message is not None
        error = message.error()
        assert error is not None
        assert (error.code(), error.fatal()) == (code, False)
        assert error.str().startswith(PRINTED)
        assert len(error.str()) < 10_000
