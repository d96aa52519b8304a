"""The client that reads the lags connects as its consumer does, to a real broker with TLS and SASL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from aiokafka.helpers import create_ssl_context
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens

from kafka_assignors.clients import aiokafka, kafka_python
from support.lag import fill
from support.live import AttachedAiokafkaLive, Crew, KafkaPythonLive
from support.secured import PASSWORD, USER, SecuredKafka, unsecured_token

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.xdist_group("secured")


class Tokens(KafkaPythonTokens):  # type: ignore[misc]
    def token(self) -> str:
        return unsecured_token("")[0]


class AsyncTokens(AiokafkaTokens):  # type: ignore[misc]
    async def token(self) -> str:
        return unsecured_token("")[0]


WAYS = [("MUTUAL", None), ("SASL_SSL", "SCRAM-SHA-512"), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_PLAINTEXT", "OAUTHBEARER")]


def settings(kafka: SecuredKafka, listener: str, mechanism: str | None, tokens: Any) -> dict[str, Any]:
    """The settings that both clients have in common."""
    found: dict[str, Any] = {
        "bootstrap_servers": kafka.address(listener),
        "security_protocol": kafka.listeners[listener],
    }
    if mechanism == "OAUTHBEARER":
        found |= {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": tokens}
    elif mechanism is not None:
        found |= {"sasl_mechanism": mechanism, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    return found


@pytest.fixture
def crew(secured_kafka: SecuredKafka) -> Iterator[Crew]:
    made = Crew(secured_kafka)
    yield made
    for member in made.members:
        member.leave()


def lags_of_one(crew: Crew, kind: Any, config: dict[str, Any]) -> dict[str, int] | None:
    topic = crew.topic(2)
    fill(crew.kafka, topic, [3, 4])
    member = crew.hire(kind, topic, enable_auto_commit=False, **config)
    crew.settle("a share", **{topic: 2})
    assert member.report is not None
    assert member.report.plan is not None
    return member.report.plan.lag_by_member


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_kafka_python(crew: Crew, secured_kafka: SecuredKafka, listener: str, mechanism: str | None) -> None:
    config, files = settings(secured_kafka, listener, mechanism, Tokens()), secured_kafka.certificates
    if config["security_protocol"].endswith("SSL"):
        config["ssl_cafile"] = str(files.ca)
    if listener == "MUTUAL":
        config |= {"ssl_certfile": str(files.client), "ssl_keyfile": str(files.client_key)}
    lags = lags_of_one(crew, (KafkaPythonLive, kafka_python.LagBasedAssignor), config)
    assert lags is not None
    assert list(lags.values()) == [7]


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_aiokafka(crew: Crew, secured_kafka: SecuredKafka, listener: str, mechanism: str | None) -> None:
    config, files = settings(secured_kafka, listener, mechanism, AsyncTokens()), secured_kafka.certificates
    if config["security_protocol"].endswith("SSL"):
        own = (str(files.client), str(files.client_key)) if listener == "MUTUAL" else (None, None)
        config["ssl_context"] = create_ssl_context(cafile=str(files.ca), certfile=own[0], keyfile=own[1])
    lags = lags_of_one(crew, (AttachedAiokafkaLive, aiokafka.LagBasedAssignor), config)
    assert lags is not None
    assert list(lags.values()) == [7]
