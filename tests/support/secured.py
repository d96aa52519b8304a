"""A real Apache Kafka with TLS and SASL: one broker, with a listener for each kind of connection."""

from __future__ import annotations

import base64
import json
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from support import certificates, jars
from support.broker import ApacheKafka

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

USER, PASSWORD = "alice", "alice-secret"
# SCRAM escapes the comma and the equals sign.
ODD_USER = "a,b=c"
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
REAUTHENTICATION_MS = 2_000

_ADMIN_TIMEOUT = 60.0
_MODULES = "org.apache.kafka.common.security"


class SecuredKafka(ApacheKafka):
    """As `ApacheKafka`, with listeners for TLS, mutual TLS, SASL with and without TLS, and SASL that expires soon.

    ``settings_of(listener, mechanism)`` are confluent-kafka's settings for a connection.
    """

    listeners = MappingProxyType(
        {
            "PLAINTEXT": "PLAINTEXT",
            "SSL": "SSL",
            "MUTUAL": "SSL",
            "SASL_PLAINTEXT": "SASL_PLAINTEXT",
            "SASL_SSL": "SASL_SSL",
            "SHORT": "SASL_PLAINTEXT",
        }
    )

    def __init__(self, directory: Path, version: str = jars.DEFAULT_VERSION, **config: str | int) -> None:
        super().__init__(directory, version, **config)
        self.certificates = certificates.make(directory / "certificates")
        store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificates.store)}
        for listener in ("ssl", "mutual", "sasl_ssl"):
            self._set(listener, store)
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.certificates.ca)}
        self._set("mutual", trust | {"ssl.client.auth": "required"})
        for listener in ("sasl_plaintext", "sasl_ssl", "short"):
            self._set(listener, _SASL)
        self._set("short", {"connections.max.reauth.ms": str(REAUTHENTICATION_MS)})

    def start(self) -> None:
        """Start the broker; its users exist when this returns."""
        fresh = not (self.directory / "data").exists()
        super().start()
        if fresh:
            for user in (USER, ODD_USER):
                for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                    change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
                    # One request for each change: a request may not alter a user twice.
                    self.admin.alter_user_scram_credentials([change])[user].result(_ADMIN_TIMEOUT)

    def settings_of(self, listener: str, mechanism: str | None = None) -> dict[str, Any]:
        """confluent-kafka's settings for a connection to a listener, as `USER`."""
        protocol = self.listeners[listener]
        settings: dict[str, Any] = {
            "bootstrap.servers": self.address(listener),
            "security.protocol": protocol.lower(),
        }
        if protocol.endswith("SSL"):
            settings["ssl.ca.location"] = str(self.certificates.ca)
        if listener == "MUTUAL":
            settings["ssl.certificate.location"] = str(self.certificates.client)
            settings["ssl.key.location"] = str(self.certificates.client_key)
        if mechanism is not None:
            settings["sasl.mechanism"] = mechanism
            if mechanism == "OAUTHBEARER":
                settings["oauth_cb"] = unsecured_token
            else:
                settings |= {"sasl.username": USER, "sasl.password": PASSWORD}
        return settings

    def _set(self, listener: str, settings: Mapping[str, str]) -> None:
        self.config |= {f"listener.name.{listener}.{name}": value for name, value in settings.items()}


def unsecured_token(config: str, lifetime: float = 300.0) -> tuple[str, float]:
    """An `oauth_cb` that gives an unsigned token (RFC 7515, appendix A.5). Kafka accepts it if configured so."""
    assert config in ("", None)
    now = time.time()
    claims = {"sub": USER, "iat": int(now) - 5, "exp": int(now + lifetime)}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    encoded = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts]
    return ".".join(encoded) + ".", float(int(now + lifetime))


_SASL = {
    "sasl.enabled.mechanisms": ",".join(SASL_MECHANISMS),
    "plain.sasl.jaas.config": f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    "oauthbearer.sasl.jaas.config": (
        f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    ),
}
