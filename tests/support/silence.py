"""A member whose requests are lost while its connections stay open, as in a network that drops all packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.net import Connection

if TYPE_CHECKING:
    import pytest

    from kafka_assignors.clients.confluent import Consumer
    from kafka_assignors.member.membership import MemberThread


def member_of(consumer: Consumer) -> MemberThread:
    """The membership of a consumer that has subscribed."""
    member = consumer._group.member
    assert member is not None
    return member


def silence_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the requests of all members of this process are lost."""
    monkeypatch.setattr(Connection, "send", lambda _connection, _data: None)


def silence(consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this member's requests are lost. Its data path is not affected."""
    silence_member(member_of(consumer), monkeypatch)


def silence_member(member: MemberThread | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `silence`."""
    assert member is not None
    send = Connection.send

    def send_unless_silenced(connection: Connection, data: bytes) -> None:
        if connection not in member._numbers:
            send(connection, data)

    monkeypatch.setattr(Connection, "send", send_unless_silenced)
