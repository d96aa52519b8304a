"""Text from other programs is made printable: without control characters and line breaks, and not too long."""

import io
import logging
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assignors import Group, Member, MemberState, StickyStreamJoinAssignor
from kafka_assignors.errors import SecurityError
from kafka_assignors.member.rebalance_report import _warn_of_leftovers
from kafka_assignors.net import Address
from kafka_assignors.net.config import SaslConfig
from kafka_assignors.net.sasl import Authenticator
from kafka_assignors.net.session import Opening
from kafka_assignors.printable import listed, printable
from support.logs import records_of_the_package


@given(st.text(), st.integers(1, 50))
def test_nothing_steers_a_terminal_or_breaks_a_line(text: str, most: int) -> None:
    shown = printable(text, most)
    assert shown.isprintable()
    # An escape sequence has at most ten characters.
    assert len(shown) <= 10 * most + 40
    assert shown == printable(shown, len(shown))
    if text.isprintable() and len(text) <= most:
        assert shown == text


def test_what_terminals_obey_is_escaped() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert printable(character).startswith("\\")
    assert printable("\u202eabc") == "\\u202eabc"
    assert printable("\x9b2J") == "\\x9b2J"


def test_what_is_long_is_cut_without_reading_it_twice() -> None:
    assert printable("\x1b" * 10**6, 3) == "\\x1b\\x1b\\x1b… (999997 characters more)"
    assert listed(map(str, range(100_000)), 3) == "0, 1, 2 and 99997 more"


def test_a_brokers_host_is_printable() -> None:
    assert str(Address("a\x1b[2J\0", 9092)) == "a\\x1b[2J\\x00:9092"
    assert str(Address("::1", 9092)) == "[::1]:9092"


def test_a_brokers_reason_is_printable() -> None:
    """The message of a refused SaslAuthenticate, version 1."""
    from kafka_assignors.net.config import Credentials

    opening = Opening("c", Authenticator(SaslConfig("PLAIN", Credentials("u", "p"))))
    script = opening.first()
    next(script)
    no_error = b"\0\0"
    versions = b"".join(key.to_bytes(2, "big") + b"\0\0\0\1" for key in (17, 18, 36))
    script.send((1).to_bytes(4, "big") + b"\0\x23" + (3).to_bytes(4, "big") + versions)
    script.send((2).to_bytes(4, "big") + no_error + (3).to_bytes(4, "big") + versions + bytes(4))
    script.send((3).to_bytes(4, "big") + no_error + bytes(4))
    message = b"\x1b]0;owned\x07" + b"x" * 10_000
    refused = b"\0\x3a" + len(message).to_bytes(2, "big") + message + bytes(4) + bytes(8)
    with pytest.raises(SecurityError) as failure:
        script.send((4).to_bytes(4, "big") + refused)
    text = str(failure.value)
    assert "\\x1b]0;owned\\x07" in text
    assert text.isprintable()
    assert len(text) < 1_000


def test_a_stream_joins_log_names_some_and_counts_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A member may name as many topics as fit into its metadata, with names of any length."""
    names = [f"\x1b[2J\n{number}" + "x" * 100 for number in range(20_000)]
    assignor = StickyStreamJoinAssignor()
    plan = assignor.assign(Group({"t": 2}, [Member("m", ["t", *names])]))
    with caplog.at_level(logging.WARNING, "kafka_assignors"):
        _warn_of_leftovers(plan)
    (record,) = records_of_the_package(caplog)
    line = record.getMessage()
    assert line.isprintable()
    assert "and 19990 more" in line
    assert len(line) < 5_000


def test_warnings_of_the_leader_are_printable(caplog: pytest.LogCaptureFixture) -> None:
    """As in a client's consumer: bytes in, a log out."""
    assignor = StickyStreamJoinAssignor()
    metadata = assignor.metadata(["t", "a\x1b[2J"], MemberState())
    _, plan = assignor.plan_assignment([("m", None, metadata)], {"t": 2}, generation=1)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("kafka_assignors")
    logger.addHandler(handler)
    try:
        _warn_of_leftovers(plan)
    finally:
        logger.removeHandler(handler)
    assert "a\\x1b[2J" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
