"""The SASL mechanisms as scripts: generators that yield the client's messages and are sent the broker's.

A step that may take long, such as a user's `oauth_cb`, is yielded as a [`Job`][kafka_assignors.net.sasl.Job] and run on
another thread, since heartbeats must not wait for it.

Sources: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), RFC 7628 and KIP-342 (OAUTHBEARER).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import re
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_assignors.errors import SecurityError

if TYPE_CHECKING:
    from kafka_assignors.net.config import OauthCallback, SaslConfig

__all__ = ["Authenticator", "Job", "Script"]


@dataclass(frozen=True, slots=True)
class Job:
    """A function to run on another thread than that of the connections. The script is sent its result."""

    run: Callable[[], Any]


Script: TypeAlias = Generator[bytes | Job, Any, None]
"""Yields messages of the client and jobs, and is sent the broker's messages and the jobs' results."""

# Kafka's least number of SCRAM rounds. The most is a setting: the broker chooses the number, and the client computes
# the rounds.
_LEAST_ITERATIONS = 4_096
# In bytes. Names, salts and signatures of honest brokers have a few hundred.
_MOST_OF_A_SCRAM_MESSAGE = 8_192
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# The part of a token's lifetime after which it is renewed.
_RENEW = 0.8
_EXTENSION_KEY = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e\x20\t\r\n]*")
_TOKEN = re.compile(r"[\x21-\x7e]+")


class Authenticator:
    """Makes the script of each authentication, and keeps the token that all authentications share."""

    def __init__(self, config: SaslConfig) -> None:
        self.mechanism = config.mechanism
        self._config = config
        self._tokens = None if config.oauth_cb is None else _Tokens(config.oauth_cb, config.oauth_config)

    def script(self) -> Script:
        """The script of one authentication.

        It raises `SecurityError` if the broker does not prove that it knows the password, or if there is no token.
        """
        if self._tokens is not None:
            return oauthbearer(self._tokens)
        assert self._config.credentials is not None
        username, password = self._config.credentials.get()
        if self.mechanism == "PLAIN":
            return plain(username, password)
        nonce = secrets.token_urlsafe(24)
        return scram(_HASHES[self.mechanism], username, password, nonce, self._config.scram_iterations)

    def quote(self, text: str, most: int) -> str:
        """A broker's text for an error: at most so many characters of it, and none if it repeats a secret of ours."""
        if self._tokens is not None:
            return _quote(text, most, self._tokens.known())
        assert self._config.credentials is not None
        username, password = self._config.credentials.get()
        return _quote(text, most, (password, f"\0{username}\0{password}"))


def _quote(text: str, most: int, ours: Iterable[str]) -> str:
    for secret in filter(None, ours):
        encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
        if secret in text or encoded in text:
            return "(its text repeats a secret of this client and is not shown)"
    return text[:most]


def plain(username: str, password: str) -> Script:
    if "\0" in username or "\0" in password:
        raise SecurityError("sasl.username or sasl.password has a NUL character, which PLAIN cannot carry; change it")
    yield f"\0{username}\0{password}".encode()


def scram(algorithm: str, username: str, password: str, nonce: str, most_iterations: int) -> Script:
    name = username.replace("=", "=3D").replace(",", "=2C")
    client_first = f"n={name},r={nonce}"
    server_first = _text((yield f"n,,{client_first}".encode()))
    said = _attributes(server_first)
    combined, salt = said.get("r", ""), _base64(said.get("s", ""), "salt")
    if not combined.startswith(nonce) or len(combined) == len(nonce):
        raise SecurityError("the broker's SCRAM nonce does not extend ours: it is not the broker it claims to be")
    count = said.get("i", "")
    iterations = int(count) if count.isascii() and count.isdigit() and len(count) < 10 else 0
    if not _LEAST_ITERATIONS <= iterations <= most_iterations:
        raise SecurityError(
            f"the broker asks for {count[:20]!r} rounds of SCRAM; from {_LEAST_ITERATIONS:,} to "
            f"{most_iterations:,} are accepted (sasl.scram.max.iterations)"
        )
    salted: bytes = yield Job(lambda: hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations))
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    without_proof = f"c=biws,r={combined}"
    transcript = f"{client_first},{server_first},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), transcript, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = _attributes(_text((yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode())))
    if "e" in server_final:
        raise SecurityError(f"the broker refuses the SCRAM credentials: {_quote(server_final['e'], 200, [password])!r}")
    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), transcript, algorithm)
    if not hmac.compare_digest(_base64(server_final.get("v", ""), "signature"), expected):
        raise SecurityError("the broker does not know the SCRAM password either: it is not the broker it claims to be")


def _attributes(message: str) -> dict[str, str]:
    """`r=…,s=…,i=…`; the first of a name counts, and values may have further equals signs."""
    found: dict[str, str] = {}
    for part in message.split(","):
        name, _, value = part.partition("=")
        found.setdefault(name, value)
    return found


def _text(message: bytes) -> str:
    if len(message) > _MOST_OF_A_SCRAM_MESSAGE:
        raise SecurityError(
            f"the broker's SCRAM message has {len(message):,} bytes; at most {_MOST_OF_A_SCRAM_MESSAGE:,} are read"
        )
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SecurityError("the broker's SCRAM message is not UTF-8") from None


def _base64(text: str, what: str) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        raise SecurityError(f"the broker's SCRAM message has no valid {what}")
    return decoded


def oauthbearer(tokens: _Tokens) -> Script:
    token: _Token = yield Job(tokens.get)
    extensions = "".join(f"{key}={value}\x01" for key, value in token.extensions.items())
    challenge = yield f"n,,\x01auth=Bearer {token.value}\x01{extensions}\x01".encode()
    if challenge:
        # A refusal. The broker sends its error only after the client's acknowledgement.
        tokens.forget(token)
        yield b"\x01"
        reason = _quote(challenge.decode(errors="backslashreplace"), 200, [token.value])
        raise SecurityError(f"the broker refuses the OAUTHBEARER token: {reason!r}")


@dataclass(frozen=True, slots=True)
class _Token:
    value: str = field(repr=False)
    expires: float
    renew_at: float
    extensions: Mapping[str, str] = field(repr=False)


class _Tokens:
    """The current token. The user's function is called for another one before it expires. Thread-safe."""

    def __init__(self, callback: OauthCallback, config: str) -> None:
        self._callback = callback
        self._config = config
        self._lock = threading.Lock()
        self._token: _Token | None = None

    def get(self) -> _Token:
        with self._lock:
            if self._token is None or time.time() >= self._token.renew_at:
                self._token = self._ask()
            return self._token

    def known(self) -> tuple[str, ...]:
        """The current token, if there is one."""
        with self._lock:
            return () if self._token is None else (self._token.value,)

    def forget(self, token: _Token) -> None:
        """Forgets a token that a broker refused, so that the next attempt gets another one."""
        with self._lock:
            if self._token is token:
                self._token = None

    def _ask(self) -> _Token:
        try:
            answer = self._callback(self._config)
        except SecurityError:
            raise
        except Exception as error:
            raise SecurityError(f"oauth_cb failed with {type(error).__name__}; no token, no connection") from error
        if not isinstance(answer, tuple) or not 2 <= len(answer) <= 4:
            raise SecurityError("oauth_cb must return (token, expiry), or (token, expiry, principal, extensions)")
        value, expires = answer[0], answer[1]
        extensions = answer[3] if len(answer) == 4 and answer[3] is not None else {}
        if not isinstance(value, str) or not _TOKEN.fullmatch(value):
            raise SecurityError("oauth_cb returned a token that is not a non-empty str of printable ASCII characters")
        now = time.time()
        if isinstance(expires, bool) or not isinstance(expires, int | float) or not math.isfinite(expires):
            raise SecurityError("oauth_cb returned no expiry; give the time in seconds since the epoch")
        if expires <= now:
            raise SecurityError("oauth_cb returned a token that has expired; give the time in seconds since 1970")
        return _Token(value, expires, now + _RENEW * (expires - now), _checked_extensions(extensions))


def _checked_extensions(extensions: object) -> Mapping[str, str]:
    if not isinstance(extensions, Mapping):
        raise SecurityError(f"oauth_cb returned extensions of type {type(extensions).__name__}; give a dict")
    for key, value in extensions.items():
        if not isinstance(key, str) or not _EXTENSION_KEY.fullmatch(key) or key.lower() == "auth":
            raise SecurityError(f"oauth_cb returned an extension named {key!r}; give letters only, and not auth")
        if not isinstance(value, str) or not _EXTENSION_VALUE.fullmatch(value):
            raise SecurityError(f"oauth_cb returned an odd value for extension {key!r}; give printable ASCII text")
    return dict(extensions)
