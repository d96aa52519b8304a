"""The exchange before the first request: API versions, and the SASL authentication.

The scripts are generators, as in [`kafka_assignors.net.sasl`][]. They yield frames with their lengths, and are sent the
frames of the answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from kafka_assignors import _core
from kafka_assignors.errors import NetworkError, SecurityError
from kafka_assignors.net.sasl import Authenticator, Job
from kafka_assignors.printable import NAME, printable

__all__ = ["ApiVersions", "Opening", "Session", "SessionScript"]

ApiVersions: TypeAlias = dict[int, tuple[int, int]]
"""API key to the lowest and the highest version of a broker."""

SessionScript: TypeAlias = Generator[bytes | Job, Any, "Session"]

_SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE = 17, 18, 36
_UNSUPPORTED_MECHANISM, _UNSUPPORTED_VERSION = 33, 35
_SOFTWARE = "kafka-assignors"


@dataclass(frozen=True, slots=True)
class Session:
    """The result of the exchange.

    Attributes:
        api_versions: those of the broker.
        lifetime: how many seconds the authentication lasts (KIP-368); None without an end.
    """

    api_versions: ApiVersions
    lifetime: float | None = None


class Opening:
    """Makes the scripts of one connection."""

    def __init__(self, client_id: str, authenticator: Authenticator | None) -> None:
        self._client_id = client_id
        self._authenticator = authenticator
        self._correlations = itertools.count(1)

    def first(self) -> SessionScript:
        """The script of a new connection: API versions, then the authentication."""
        return self._open()

    def again(self, session: Session) -> SessionScript:
        """The script of a connection whose authentication is to be renewed."""
        return self._authenticate(session.api_versions)

    def _open(self) -> SessionScript:
        versions = yield from self._api_versions()
        if self._authenticator is None:
            return Session(versions)
        return (yield from self._authenticate(versions))

    def _api_versions(self) -> Generator[bytes, bytes, ApiVersions]:
        newest: int = _core.protocol_versions()["ApiVersions"][2]
        version = newest
        while True:
            correlation = next(self._correlations)
            frame = yield _core.encode_api_versions(
                version, correlation, self._client_id, _SOFTWARE, _core.__version__.replace("+", "-")
            )
            answer = _core.decode_api_versions(version, correlation, frame)
            error = answer["error_code"]
            if error == 0:
                return answer["api_keys"]
            if error != _UNSUPPORTED_VERSION or version == 0:
                raise NetworkError(f"the broker refuses ApiVersions {version} with {_named(error)}")
            # The refusal is in version 0, and has the broker's versions, except from very old brokers.
            version = min(answer["api_keys"].get(_API_VERSIONS, (0, 0))[1], version - 1)

    def _authenticate(self, versions: ApiVersions) -> SessionScript:
        authenticator = self._authenticator
        assert authenticator is not None
        most = {}
        for key, name in ((_SASL_HANDSHAKE, "SaslHandshake"), (_SASL_AUTHENTICATE, "SaslAuthenticate")):
            most[key] = min(_core.protocol_versions()[name][2], versions.get(key, (0, -1))[1])
        if most[_SASL_HANDSHAKE] < 1 or most[_SASL_AUTHENTICATE] < 0:
            raise SecurityError(
                "the broker's listener does not speak SASL as Kafka does since 1.0; see security.protocol"
            )
        yield from self._handshake(authenticator.mechanism, most[_SASL_HANDSHAKE])
        script = authenticator.script()
        answer: Any = None
        lifetime = 0
        while True:
            try:
                step = script.send(answer)
            except StopIteration:
                return Session(versions, lifetime / 1000 if lifetime > 0 else None)
            if isinstance(step, Job):
                answer = yield step
            else:
                answer, lifetime = yield from self._say(step, most[_SASL_AUTHENTICATE])

    def _handshake(self, mechanism: str, version: int) -> Generator[bytes, bytes, None]:
        correlation = next(self._correlations)
        frame = yield _core.encode_sasl_handshake(version, correlation, self._client_id, mechanism)
        answer = _core.decode_sasl_handshake(version, correlation, frame)
        error = answer["error_code"]
        if error == _UNSUPPORTED_MECHANISM:
            enabled = self._quote(", ".join(answer["mechanisms"][:10]) or "none", 200)
            raise SecurityError(f"the broker does not accept sasl.mechanism {mechanism}; it has {enabled}")
        if error != 0:
            raise SecurityError(f"the broker refuses SaslHandshake with {_named(error)}; see security.protocol")

    def _say(self, message: bytes, version: int) -> Generator[bytes, bytes, tuple[bytes, int]]:
        correlation = next(self._correlations)
        frame = yield _core.encode_sasl_authenticate(version, correlation, self._client_id, message)
        answer = _core.decode_sasl_authenticate(version, correlation, frame)
        error = answer["error_code"]
        if error != 0:
            reason = self._quote((answer["error_message"] or "").strip(), NAME)
            raise SecurityError(
                f"the broker refuses the authentication with {_named(error)}: {reason or 'no reason given'}"
            )
        return answer["auth_bytes"], answer["session_lifetime_ms"]

    def _quote(self, text: str, most: int) -> str:
        assert self._authenticator is not None
        return printable(self._authenticator.quote(text, most))


def _named(error: int) -> str:
    return f"{_core.error_name(error) or 'an unknown error'} ({error})"
