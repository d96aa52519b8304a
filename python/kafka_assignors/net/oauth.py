"""OAUTHBEARER without a callback: settings for OIDC, and on a command line also for a token or a file with a token."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import OptionError, SecurityError
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["NAMES", "with_issuer", "with_token"]

_PREFIX = "sasl.oauthbearer."
_TOKEN, _FILE, _METHOD = f"{_PREFIX}token", f"{_PREFIX}token.file", f"{_PREFIX}method"
_URL, _ID, _SECRET = f"{_PREFIX}token.endpoint.url", f"{_PREFIX}client.id", f"{_PREFIX}client.secret"
_SCOPE, _EXTENSIONS = f"{_PREFIX}scope", f"{_PREFIX}extensions"
_CA, _CA_PEM = "https.ca.location", "https.ca.pem"
_OIDC = (_METHOD, _URL, _ID, _SECRET, _SCOPE, _CA, _CA_PEM)
_GRANT = f"{_PREFIX}grant.type"
# librdkafka's later names.
_ALIASES = {f"{_PREFIX}client.credentials.client.{each}": f"{_PREFIX}client.{each}" for each in ("id", "secret")}
NAMES = frozenset((_TOKEN, _FILE, _EXTENSIONS, *_OIDC))
"""The settings that this module reads: librdkafka's names, and two of our own for tokens."""

# The assumed lifetime of a token that contains no expiry, in seconds. The broker checks the real one, and a command
# connects once or twice.
_LIFETIME = 300.0
_MOST_BYTES = 1_000_000
_TIMEOUT = 10.0

Token = tuple[str, float, str, dict[str, str]]


def with_token(settings: Mapping[str, Any], *, oidc: bool = True) -> dict[str, Any]:
    """For OAUTHBEARER the settings with an `oauth_cb`, and without those of `NAMES`; else the same settings.

    Args:
        settings: of a connection.
        oidc: whether the callback asks the issuer (OIDC). If not, the settings of OIDC stay, for a client that asks the
            issuer by itself.

    Raises:
        OptionError: OAUTHBEARER, and none or several of the three sources of a token.
    """
    mechanism = str(settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "").upper()
    if mechanism != "OAUTHBEARER":
        return dict(settings)
    method = str(settings.get(_METHOD) or "default").lower()
    if method not in ("default", "oidc"):
        raise OptionError(f"{_METHOD} is {printable(method)!r}; give oidc or default")
    sources = [name for name in (_TOKEN, _FILE) if settings.get(name)] + [_METHOD] * (method == "oidc")
    if len(sources) != 1:
        raise OptionError(
            f"sasl.mechanism is OAUTHBEARER, with {len(sources)} ways to a token; give one of {_TOKEN}, {_FILE} (a "
            f"file that holds it), or {_METHOD}=oidc with {_URL}, {_ID} and {_SECRET}"
        )
    if sources == [_METHOD] and not oidc:
        return dict(settings)
    rest = {name: value for name, value in settings.items() if name not in NAMES}
    return {**rest, "oauth_cb": _callback(settings, sources[0])}


def with_issuer(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With `sasl.oauthbearer.method=oidc` the settings with an `oauth_cb` that asks the issuer; else the same settings.

    Args:
        settings: of a librdkafka client, which asks the issuer by itself for its own connections.

    Raises:
        OptionError: the address or the client's credentials are missing, or the grant is not `client_credentials`.
    """
    if str(settings.get(_METHOD) or "").lower() != "oidc":
        return dict(settings)
    given = {_ALIASES.get(name, name): value for name, value in settings.items()}
    if str(given.get(_GRANT) or "client_credentials").lower() != "client_credentials":
        raise OptionError(
            f"{_GRANT} is not supported here but for client_credentials: give an oauth_cb that fetches the token"
        )
    return with_token({name: value for name, value in given.items() if name not in (_TOKEN, _FILE)})


def _callback(settings: Mapping[str, Any], source: str) -> Callable[[str], Token]:
    extensions = _extensions(str(settings.get(_EXTENSIONS) or ""))

    def of(token: str, lifetime: float, whose: str) -> Token:
        ends = _end_of(token)
        if ends is not None and ends <= time.time():
            raise SecurityError(f"the token of {whose} has expired; get a new one")
        return token, time.time() + lifetime if ends is None else ends, "", extensions

    if source == _TOKEN:
        return lambda _: of(str(settings[_TOKEN]).strip(), _LIFETIME, _TOKEN)
    if source == _FILE:
        # Read for each connection: the token in the file may have been renewed.
        return lambda _: of(_read(str(settings[_FILE])), _LIFETIME, _FILE)
    lacking = [name for name in (_URL, _ID, _SECRET) if not settings.get(name)]
    if lacking:
        raise OptionError(f"{_METHOD} is oidc, but there is no {' and no '.join(lacking)}; give it")
    url = str(settings[_URL])
    if urllib.parse.urlsplit(url).scheme not in ("https", "http"):
        raise OptionError(f"{_URL} is {printable(url)!r}; give an address that begins with https://")
    return lambda _: of(*_fetched(settings, url), _URL)


def _extensions(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in filter(None, map(str.strip, text.split(",")))]
    if not all(equals and name for name, equals, _ in pairs):
        raise OptionError(f"{_EXTENSIONS} is not a list of NAME=VALUE with commas")
    return {name: value for name, _, value in pairs}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise SecurityError(f"{_FILE} {printable(path)!r} cannot be read: {type(error).__name__}") from error


def _end_of(token: str) -> float | None:
    """When a JSON Web Token expires (RFC 7519); None for another token, or one without an expiry."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: urllib would send the client's secret to any address that the answer names."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _fetched(settings: Mapping[str, Any], url: str) -> tuple[str, float]:
    """A token for the client's credentials (RFC 6749, 4.4), and its lifetime in seconds."""
    form = {"grant_type": "client_credentials"}
    if settings.get(_SCOPE):
        form["scope"] = str(settings[_SCOPE])
    basic = base64.b64encode(f"{settings[_ID]}:{settings[_SECRET]}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Accept": "application/json"}
    where = printable(url)
    try:
        context = ssl.create_default_context(cafile=settings.get(_CA) or None, cadata=settings.get(_CA_PEM) or None)
        request = urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers)
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirect)
        with opener.open(request, timeout=_TIMEOUT) as answer:
            found = json.loads(answer.read(_MOST_BYTES))
        token, lifetime = found["access_token"], float(found.get("expires_in") or _LIFETIME)
    except urllib.error.HTTPError as error:
        error.close()
        raise SecurityError(f"{where} gives no token: it answers with status {error.code}") from error
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error
        raise SecurityError(f"{where} gives no token: {printable(reason)}") from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise SecurityError(f"{where} gives no token: its answer is not JSON with an access_token") from error
    if not isinstance(token, str):
        raise SecurityError(f"{where} gives no token: its access_token is no text")
    return token, lifetime
