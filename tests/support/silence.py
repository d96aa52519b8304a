"""A member whose requests reach nobody, while its connections stay: what a network does that loses everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.net import Connection

if TYPE_CHECKING:
    import pytest

    from kafka_assignors.clients.confluent import Consumer
    from kafka_assignors.clients.confluent.membership import Member


def member_of(consumer: Consumer) -> Member:
    """The membership of a consumer that has subscribed."""
    member = consumer._engine.member
    assert member is not None
    return member


def silence_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no member of this process is heard."""
    monkeypatch.setattr(Connection, "send", lambda _connection, _data: None)


def silence(consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this member is not heard; its data path goes on."""
    member = member_of(consumer)
    send = Connection.send

    def send_unless_silenced(connection: Connection, data: bytes) -> None:
        if connection not in member._numbers:
            send(connection, data)

    monkeypatch.setattr(Connection, "send", send_unless_silenced)
