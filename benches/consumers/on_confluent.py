"""A member on confluent-kafka."""

from __future__ import annotations

from typing import Any

import confluent_kafka

from consumers.member import POLL_SECONDS, Member
from kafka_assignors.clients.confluent import Consumer

__all__ = ["ConfluentMember"]


class ConfluentMember(Member):
    """With our class, or with the client's own."""

    client = "confluent"

    def run(self) -> None:
        make = Consumer if self.contender.is_ours else confluent_kafka.Consumer
        with make({"log_level": 0} | self.spec.settings() | self.settings) as consumer:
            consumer.subscribe([self.spec.topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
            while not self.is_stopped:
                message = consumer.poll(POLL_SECONDS)
                if message is not None and message.error() is None:
                    self.reads(int(message.partition() or 0))
            self.closes()

    def _on_assign(self, _: Any, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.assigned(each.partition for each in partitions)

    def _on_revoke(self, _: Any, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.revoked(each.partition for each in partitions)
