"""Expressions over topics: they mean the same as in librdkafka and on brokers, and match in linear time."""

import ctypes
import platform
import re
import time

import pytest
from confluent_kafka import Consumer as PlainConsumer
from confluent_kafka import KafkaError, KafkaException
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_assignors._core import Expression
from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.cluster import live
from kafka_assignors.errors import OptionError

_EXTENDED, _NO_SUBMATCHES = 1, 8
_BACK_REFERENCE = re.compile(r"\\[1-9]")

pieces = st.sampled_from(
    [
        *"ab.-_]^$*+?()|{},[\\0129é",
        *("[^", "[]", "[-", "[a-c]", "a-", "--", "(a|", "()", "re-"),
        *("[[:digit:]]", "[[:alpha:]_]", "[.a.]", "[=b=]", "[:upper:]"),
        *("{2}", "{1,3}", "{,2}", "{2,}", "{a"),
        *(r"\w", r"\W", r"\s", r"\S", r"\<", r"\>", r"\b", r"\B", r"\`", r"\'", r"\d", r"\.", r"\{"),
    ]
)
expressions = st.lists(pieces, max_size=10).map(lambda found: "^" + "".join(found))
names = st.lists(st.text("ab.-_0129re", max_size=8), min_size=1, max_size=8)


def _by_the_c_library(text: str, names: list[str]) -> list[bool] | None:
    """The result of librdkafka's own calls. None if `regcomp` refuses the expression."""
    library = ctypes.CDLL(None)
    compiled = ctypes.create_string_buffer(1_024)
    if library.regcomp(compiled, text.encode(), _EXTENDED | _NO_SUBMATCHES) != 0:
        return None
    try:
        return [library.regexec(compiled, name.encode(), 0, None, 0) == 0 for name in names]
    finally:
        library.regfree(compiled)


@settings(max_examples=300, deadline=None)
@given(expressions, names)
@example("^re-a[[:digit:]]", ["re-a1", "re-ad"])
@example(r"^[\d]", ["d", "1", "\\"])
@example("^a**+?{2}?$", ["", "a", "aaa"])
@example("^[]a-c^-]+$", ["]a-", "^", "d"])
@example(r"^a)|\<b\>", ["a)", "x.b", "xb"])
@example("^a{,2}{2}$", ["", "aaaa", "aaaaa"])
def test_what_the_c_library_takes_means_the_same(text: str, names: list[str]) -> None:
    _means_the_same(text, names)


@pytest.mark.needs("time")
@settings(max_examples=3_000, deadline=None)
@given(expressions, names)
def test_more_of_what_the_c_library_takes_means_the_same(text: str, names: list[str]) -> None:
    _means_the_same(text, names)


def _means_the_same(text: str, names: list[str]) -> None:
    assert platform.libc_ver()[0] == "glibc", "the oracle is glibc, which the wheels of Linux are linked to"
    theirs = _by_the_c_library(text, names)
    # librdkafka may refuse an expression that works here. Ours refuses back-references.
    if theirs is not None and (ours := _compiled(text)) is not None:
        assert ours.matches(names) == theirs


def _compiled(text: str) -> Expression | None:
    """None if the expression is refused for a back-reference. No other refusal is allowed."""
    if _BACK_REFERENCE.search(text) is None:
        return Expression.posix(text)
    try:
        return Expression.posix(text)
    except OptionError as error:
        if "back-reference" in str(error):
            return None
        raise


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_what_the_client_takes_is_taken(text: str) -> None:
    """The client itself, without a broker: `subscribe` compiles each expression."""
    if _is_taken(text):
        _compiled(text)


def _is_taken(text: str) -> bool:
    try:
        _plain().subscribe([text])
    except KafkaException as error:
        if error.args[0].code() == KafkaError._INVALID_ARG:
            return False
        raise
    return True


_consumers: list[PlainConsumer] = []


def _plain() -> PlainConsumer:
    if not _consumers:
        _consumers.append(PlainConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}))
    return _consumers[0]


@pytest.mark.parametrize("text", ["^(a", "^[[:nothing:]]", "^*", "^a{2,1}", "^[b-a]", "^a\\", r"^(a)\2"])
def test_a_bad_expression_is_the_client_s_error(text: str) -> None:
    ours = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    try:
        for consumer in (_plain(), ours):
            with pytest.raises(KafkaException) as caught:
                consumer.subscribe([text])
            assert caught.value.args[0].code() == KafkaError._INVALID_ARG
        assert repr(text) in caught.value.args[0].str()
    finally:
        ours.close()


def test_a_back_reference_is_refused_in_one_sentence() -> None:
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    try:
        with pytest.raises(KafkaException, match="a back-reference, which is not supported, at character 5"):
            consumer.subscribe([r"^(a)\1"])
    finally:
        consumer.close()


HOSTILE = [
    r"(([a-z0-9._-])+)+!",
    r"(a|aa)+!",
    r"(.*)*(.*)*(.*)*(.*)*!",
    r"(x+x+)+y",
    r"(?i)(([a-z]+)*)*\.",
    "(a?){200}a{200}!",
    "(" * 100_000,
    "a" + "{2}" * 10_000,
    "((a{200}){200}){200}",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_a_stranger_s_expression_ends(text: str) -> None:
    """The first of these would take Python's `re` practically for ever."""
    topics = ["a" * 249, "x" * 249, "orders.eu-west_1" * 10]
    assert live._matching({text}, topics, 60.0) == {text: []}


def test_a_stranger_s_expressions_have_no_more_time_than_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short expressions are matched first. An expression that is not finished in time matches nothing."""
    topics = [f"topic-{number}" for number in range(1_000)]
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    # The clock is read once at the beginning and once for each 100 names.
    found = live._matching({"topic-1.*", "topic-.*9(.*)", "topic-(1|2).*"}, topics, 15.0)
    assert [len(found[text]) for text in ("topic-1.*", "topic-.*9(.*)", "topic-(1|2).*")] == [111, 0, 0]


def test_brokers_match_whole_names_of_all_topics() -> None:
    topics = ["__consumer_offsets", "orders", "orders-eu"]
    found = live._matching(
        {"orders", "orders.*", "(?i)ORDERS", r"\Qorders\E-[[:alpha:]]+", "(?=o).*", ".*"}, topics, 60.0
    )
    assert found == {
        "orders": ["orders"],
        "orders.*": ["orders", "orders-eu"],
        "(?i)ORDERS": ["orders"],
        r"\Qorders\E-[[:alpha:]]+": ["orders-eu"],
        "(?=o).*": [],
        ".*": topics,
    }
