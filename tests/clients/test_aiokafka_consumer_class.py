"""The class of our consumer on aiokafka: its members, its settings, its errors."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import TYPE_CHECKING, Any

import aiokafka
import pytest
from aiokafka.errors import (
    CommitFailedError,
    KafkaError,
)

from kafka_assignors import LagBasedAssignor, StickyAssignor
from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.aiokafka import StickyAssignor as StickyPlugIn
from kafka_assignors.clients.aiokafka.config import OURS, ConsumerConfig, signature
from kafka_assignors.clients.aiokafka.tokens import asking_on
from kafka_assignors.errors import OptionError
from support.aiokafka_group import Members, run
from support.secured import unsecured_token
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from support.broker import Kafka

NATIVE = aiokafka.AIOKafkaConsumer


def test_every_member_of_the_class_is_the_clients() -> None:
    assert AIOKafkaConsumer.__name__ == NATIVE.__name__
    assert issubclass(AIOKafkaConsumer, NATIVE)
    names = {name for name in dir(NATIVE) if not name.startswith("_")} | {"__aenter__", "__aexit__", "__aiter__"}
    for name in names:
        ours, theirs = getattr(AIOKafkaConsumer, name), getattr(NATIVE, name)
        assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs), name
        parameters = [
            [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]
            for method in (ours, theirs)
        ]
        assert parameters[0] == parameters[1], name
    assert {name for name in vars(AIOKafkaConsumer) if not name.startswith("_")} - names == {"plan"}


def test_the_constructor_takes_what_the_clients_takes() -> None:
    theirs = inspect.signature(NATIVE).parameters
    ours = inspect.signature(AIOKafkaConsumer).parameters
    assert {name: ours[name] for name in theirs} == dict(theirs)
    assert ours.keys() - theirs.keys() <= OURS.keys()
    assert next(iter(inspect.signature(AIOKafkaConsumer.__init__).parameters)) == "self"


def settings(**given: Any) -> dict[str, Any]:
    bound = signature().bind(**{"group_id": "g", **given})
    bound.apply_defaults()
    return dict(bound.arguments)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}, "GSSAPI"),
        ({"partition_assignment_strategy": "best"}, "partition_assignment_strategy"),
        ({"partition_assignment_strategy": [type("Faust", (), {"name": "faust"})]}, "partition_assignment_strategy"),
        ({"heartbeat_interval_ms": 10_000}, "heartbeat_interval_ms"),
        ({"session_timeout_ms": 0}, "session_timeout_ms"),
        ({"rebalance_timeout_ms": "soon"}, "rebalance_timeout_ms"),
        ({"on_broker_assignor": "cry"}, "on_broker_assignor"),
        ({"on_rebalance": 1}, "on_rebalance"),
        ({"bootstrap_servers": []}, "bootstrap_servers"),
    ],
)
def test_what_the_membership_cannot_honour_stops_the_constructor(given: dict[str, Any], named: str) -> None:
    async def make() -> None:
        with pytest.raises(OptionError, match=named):
            AIOKafkaConsumer(**{"group_id": "g", **given})

    asyncio.run(make())


def test_an_unknown_argument_is_refused_as_by_the_client() -> None:
    async def make() -> None:
        with pytest.raises(TypeError, match="colour"):
            AIOKafkaConsumer(group_id="g", colour="red")

    asyncio.run(make())


def test_the_two_timeouts_are_two() -> None:
    read = ConsumerConfig.read(settings(session_timeout_ms=9000), None)
    assert (read.rebalance_timeout_ms, read.max_poll_interval_ms) == (9000, 300_000)
    read = ConsumerConfig.read(settings(rebalance_timeout_ms=70_000, max_poll_interval_ms=5000), None)
    assert (read.rebalance_timeout_ms, read.max_poll_interval_ms) == (70_000, 5000)


def test_strategies_by_name_by_object_by_the_clients_class_and_by_plug_in() -> None:
    def names(value: Any) -> list[str]:
        return [
            each.name for each in ConsumerConfig.read(settings(partition_assignment_strategy=value), None).assignors
        ]

    assert names("cooperative-sticky,range") == ["cooperative-sticky", "range"]
    assert names([StickyAssignor(), "lag"]) == ["sticky", "lag"]
    assert names([StickyPlugIn()]) == ["sticky"]
    assert [each.name for each in ConsumerConfig.read(settings(), None).assignors] == ["roundrobin"]
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    assert names((RangePartitionAssignor,)) == ["range"]


class TokenOfTheLoop:
    async def token(self) -> str:
        return f"token-of-{id(asyncio.get_running_loop())}"


class TokenOfATask:
    """`token` is an ordinary function that returns an awaitable, as in wrappers. The client accepts such a provider."""

    def token(self) -> asyncio.Task[str]:
        return asyncio.ensure_future(TokenOfTheLoop().token())


@pytest.mark.parametrize("kind", [TokenOfTheLoop, TokenOfATask])
def test_a_provider_of_tokens_is_asked_on_the_consumers_loop(kind: type[Any]) -> None:
    async def ask() -> None:
        loop = asyncio.get_running_loop()
        given = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        config = ConsumerConfig.read(settings(**given, sasl_oauth_token_provider=kind()), loop)
        assert config.client.sasl is not None
        assert config.client.sasl.oauth_cb is not None
        token, *_ = await asyncio.to_thread(config.client.sasl.oauth_cb, "")
        assert token == f"token-of-{id(loop)}"

    asyncio.run(ask())


@pytest.mark.parametrize(("lifetime", "keeps"), [(300.0, True), (1.0, False), (None, False)])
def test_a_blocked_loop_lends_a_token_that_is_still_valid(lifetime: float | None, keeps: bool) -> None:
    given: list[str] = []

    class Provider:
        async def token(self) -> str:
            given.append("opaque" if lifetime is None else f"{unsecured_token('', lifetime)[0]}{len(given)}")
            return given[-1]

    async def ask() -> None:
        token_of = asking_on(asyncio.get_running_loop())
        assert await asyncio.to_thread(token_of, Provider()) == given[0]
        asking = threading.Thread(target=lambda: found.append(token_of(Provider())))
        asking.start()
        # This blocks the loop: until the thread has a token, or for a second if there is no valid one.
        asking.join(TIMEOUT if keeps else 1.0)
        assert found == given[:1] * keeps
        await asyncio.to_thread(asking.join)
        assert len(given) == 2, "the loop asks all the same"

    found: list[str] = []
    asyncio.run(ask())
    assert found == (given[:1] if keeps else given[1:])


def test_lags_by_name_come_from_the_cluster(embedded: Kafka) -> None:
    async def lag(members: Members) -> None:
        topic, partitions = members.topic(4, 10)
        first = await members.start(topic)
        second = await members.start(topic)
        await members.settled(partitions, first, second)
        plan = first.plan() or second.plan()
        assert plan is not None
        (assignor,) = first._group_path.config.assignors
        assert isinstance(assignor, LagBasedAssignor)
        assert assignor.group_id == members.group
        lags = await asyncio.to_thread(assignor.lags.lags, {topic: 4}, members.group)  # type: ignore[union-attr]
        assert list(lags[topic]) == [10] * 4

    run(embedded, lag, "lag")


def test_errors_have_the_clients_types() -> None:
    from kafka_assignors.clients.aiokafka.errors import commit_failure, error_of

    assert isinstance(commit_failure(25, "gone", "g"), CommitFailedError)
    assert isinstance(error_of(29, "no", "t"), aiokafka.errors.TopicAuthorizationFailedError)
    assert error_of(30, "no", None, "g").args == ("g",)
    assert isinstance(error_of(-1, "what"), KafkaError)
