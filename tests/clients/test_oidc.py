"""`sasl.oauthbearer.method=oidc` of confluent-kafka, for the membership's connections."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafka_assignors import OptionError
from kafka_assignors.clients.confluent.config import ConsumerConfig
from support.issuer import GRANT, LIFETIME, issuer

PREFIX = "sasl.oauthbearer."


def settings(url: str = "http://issuer/token", **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": "a:1",
        "group.id": "g",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        f"{PREFIX}method": "oidc",
        f"{PREFIX}token.endpoint.url": url,
        f"{PREFIX}client.id": "me",
        f"{PREFIX}client.secret": "hush",
        **{f"{PREFIX}{name.replace('_', '.')}": value for name, value in more.items()},
    }


def test_the_membership_asks_the_issuer_and_librdkafka_does_so_too() -> None:
    with issuer() as (url, asked):
        given = settings(url, extensions="logicalCluster=lkc-1")
        config = ConsumerConfig.read(given)
        sasl = config.client.sasl
        assert sasl is not None
        assert sasl.oauth_cb is not None
        token, ends, principal, extensions = sasl.oauth_cb("")
    assert (token.count("."), principal, extensions) == (2, "", {"logicalCluster": "lkc-1"})
    assert 0 < ends - time.time() <= LIFETIME
    assert asked == [GRANT]
    assert {name: config.data_path[name] for name in given} == given
    assert "hush" not in repr(config.client)


def test_librdkafkas_later_names() -> None:
    given = settings()
    for name in ("id", "secret"):
        given[f"{PREFIX}client.credentials.client.{name}"] = given.pop(f"{PREFIX}client.{name}")
    assert ConsumerConfig.read(given).client.sasl is not None


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}, "grant.type is not supported .* oauth_cb"),
        ({"client_secret": ""}, "there is no sasl.oauthbearer.client.secret; give it"),
        ({"token_endpoint_url": "issuer"}, "give an address that begins with https://"),
        ({"metadata_authentication_type": "azure_imds"}, "metadata.authentication.type is not supported .* oauth_cb"),
    ],
)
def test_what_is_refused(changed: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint) as refused:
        ConsumerConfig.read(settings(**changed))
    assert "hush" not in str(refused.value)
