"""The connection settings of kafka-python and aiokafka, which spell them alike, for the membership's own connections.

A setting that protects a connection is honoured or refused: otherwise the membership's connections could be less secure
than those that fetch records. Settings that only concern fetching, such as `connections_max_idle_ms`, are not read.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, get_args

from kafka_assignors.errors import OptionError, SecurityError
from kafka_assignors.net.config import Address, ClientConfig, Credentials, Mechanism, SaslConfig, TlsConfig
from kafka_assignors.net.tls import context_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["ask_provider", "client_config", "text_of"]

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
# Mechanisms that the clients know and the membership does not, each with a remedy.
_REFUSED_MECHANISMS = {
    "GSSAPI": "Kerberos is not supported by the group's connections; give SCRAM-SHA-512 or OAUTHBEARER, or a client "
    "certificate with security_protocol='SSL'",
    "AWS_MSK_IAM": "give OAUTHBEARER and a sasl_oauth_token_provider that returns the token of "
    "aws_msk_iam_sasl_signer.MSKAuthTokenProvider, which MSK takes just as well",
}
# Settings that lead the client's connections through a proxy. The membership's connections would bypass it.
_REFUSED = {
    "proxy_url": "the group's connections would go around the proxy; give bootstrap_servers that are reachable "
    "without one",
    "socks5_proxy": "the group's connections would go around the proxy; give bootstrap_servers that are reachable "
    "without one",
}
# The names of settings in the errors of `net.tls`, and the clients' names for the same settings.
_RESPELLED = (
    ("ssl.certificate.location, ssl.key.location (or their .pem) and ssl.key.password", "ssl_certfile, ssl_keyfile and "
     "ssl_password"),
    ("ssl.ca.location", "ssl_cafile"),
    ("ssl.crl.location", "ssl_crlfile"),
    ("ssl.cipher.suites", "ssl_ciphers"),
    ("ssl.key.password", "ssl_password"),
)  # fmt: skip
# The lifetime that is reported for a provider's token, in seconds. A provider returns no expiry, but promises a valid
# token at each call: so each authentication asks for a new token.
_TOKEN_SECONDS = 1.0


def ask_provider(provider: Any) -> str:
    """The token of a provider whose `token` is an ordinary method."""
    token: str = provider.token()
    return token


def client_config(
    settings: Mapping[str, Any], *, client: str, token_of: Callable[[Any], str] = ask_provider
) -> ClientConfig:
    """Reads the settings of connections, with the client's defaults for those that were not given.

    Args:
        settings: the client's defaults, and the user's values in place of some.
        client: the client's name, for errors.
        token_of: asks `sasl_oauth_token_provider` for a token. It is called on a thread of the membership, for each
            authentication, and may wait.

    Raises:
        OptionError: a setting that the membership's connections cannot honour. The text has a remedy, and never the
            value of a secret.
    """
    for name, remedy in _REFUSED.items():
        if settings.get(name):
            raise OptionError(f"{name} is not supported by this consumer: {remedy}")
    if text_of(settings.get("client_dns_lookup") or "use_all_dns_ips") != "use_all_dns_ips":
        raise OptionError(
            "client_dns_lookup is not supported by this consumer; leave it at 'use_all_dns_ips', since the other value "
            "is for Kerberos"
        )
    protocol = _protocol(settings)
    options = list(_socket_options(settings))
    request_timeout = float(settings["request_timeout_ms"]) / 1000
    backoff = float(settings.get("reconnect_backoff_ms") or settings.get("retry_backoff_ms") or 50) / 1000
    return ClientConfig(
        bootstrap=_bootstrap(settings, protocol),
        client_id=text_of(settings.get("client_id") or client),
        sasl=_sasl(settings, client, token_of) if protocol.startswith("SASL") else None,
        ssl_context=_context(settings) if protocol.endswith("SSL") else None,
        setup_timeout=min(30.0, request_timeout),
        request_timeout=request_timeout,
        reconnect_backoff=backoff,
        reconnect_backoff_max=max(backoff, float(settings.get("reconnect_backoff_max_ms") or 1_000) / 1000),
        send_buffer=int(settings.get("send_buffer_bytes") or 0),
        receive_buffer=int(settings.get("receive_buffer_bytes") or 0),
        keepalive=(socket.SOL_SOCKET, socket.SO_KEEPALIVE, True) in options,
        no_delay=(socket.IPPROTO_TCP, socket.TCP_NODELAY, False) not in options,
    )


def text_of(value: object) -> str:
    """A setting as text. For a member of an enumeration of texts, which some frameworks pass, this is its value."""
    return str.__str__(value) if isinstance(value, str) else str(value)


def _protocol(settings: Mapping[str, Any]) -> str:
    given = text_of(settings.get("security_protocol") or "PLAINTEXT").upper()
    if given not in _PROTOCOLS:
        raise OptionError(f"security_protocol is {given[:40]!r}; give one of {', '.join(_PROTOCOLS)}")
    return given


def _bootstrap(settings: Mapping[str, Any], protocol: str) -> tuple[Address, ...]:
    given = settings["bootstrap_servers"]
    parts = given.split(",") if isinstance(given, str) else list(given)
    addresses = []
    for part in filter(None, (text_of(each).strip() for each in parts)):
        scheme, separator, rest = part.partition("://")
        if separator and scheme.upper() != protocol:
            raise OptionError(
                f"bootstrap_servers has {part!r}, but security_protocol is {protocol}; give both the same"
            )
        addresses.append(Address.parse(rest if separator else part))
    if not addresses:
        raise OptionError(f"bootstrap_servers is {given!r}; give at least one broker as host:port")
    return tuple(dict.fromkeys(addresses))


def _socket_options(settings: Mapping[str, Any]) -> Iterator[tuple[int, int, bool]]:
    """The socket options that are switches. The membership supports two; other options affect fetching only."""
    for option in settings.get("socket_options") or ():
        if len(option) == 3 and isinstance(option[2], int):
            yield option[0], option[1], bool(option[2])


def _context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """The user's context, or a context made from the files that the settings name."""
    context = settings.get("ssl_context")
    if context is not None:
        if not isinstance(context, ssl.SSLContext):
            raise OptionError(f"ssl_context is a {type(context).__name__}; give an ssl.SSLContext")
        return context
    for given, lacking in (("ssl_certfile", "ssl_keyfile"), ("ssl_keyfile", "ssl_certfile")):
        if settings.get(given) and not settings.get(lacking):
            raise OptionError(f"{given} is given without {lacking}; give both")
    password = settings.get("ssl_password")
    tls = TlsConfig(
        ca_location=settings.get("ssl_cafile") or None,
        certificate_location=settings.get("ssl_certfile") or None,
        key_location=settings.get("ssl_keyfile") or None,
        key_password=password() if callable(password) else password,
        crl_location=settings.get("ssl_crlfile") or None,
        cipher_suites=settings.get("ssl_ciphers") or None,
        check_hostname=bool(settings.get("ssl_check_hostname", True)),
    )
    try:
        return context_of(tls)
    except OptionError as error:
        reason = str(error)
        for ours, theirs in _RESPELLED:
            reason = reason.replace(ours, theirs)
        raise OptionError(reason) from None


def _sasl(settings: Mapping[str, Any], client: str, token_of: Callable[[Any], str]) -> SaslConfig:
    given = settings.get("sasl_mechanism")
    name = "" if given is None else text_of(given).upper()
    if name in _REFUSED_MECHANISMS:
        remedy = f"{_REFUSED_MECHANISMS[name]}, or use {client}'s own consumer with our plug-ins"
        raise OptionError(f"sasl_mechanism {name} is not supported by this consumer: {remedy}")
    mechanism = next((each for each in _MECHANISMS if each == name), None)
    if mechanism is None:
        raise OptionError(f"sasl_mechanism is {given!r}; give one of {', '.join(_MECHANISMS)}")
    if mechanism == "OAUTHBEARER":
        provider = settings.get("sasl_oauth_token_provider")
        if not callable(getattr(provider, "token", None)):
            raise OptionError("sasl_mechanism is OAUTHBEARER, but there is no sasl_oauth_token_provider; give one")
        return SaslConfig(mechanism, oauth_cb=_callback(provider, token_of))
    username, password = settings.get("sasl_plain_username"), settings.get("sasl_plain_password")
    if username is None or password is None:
        lacking = "sasl_plain_username" if username is None else "sasl_plain_password"
        raise OptionError(f"sasl_mechanism is {mechanism}, but there is no {lacking}; give it")
    return SaslConfig(mechanism, Credentials(text_of(username), text_of(password)))


def _callback(provider: Any, token_of: Callable[[Any], str]) -> Callable[[str], tuple[Any, ...]]:
    def token(_: str) -> tuple[Any, ...]:
        try:
            value = token_of(provider)
            extensions: Any = getattr(provider, "extensions", dict)()
        except Exception as error:
            kind = type(error).__name__
            raise SecurityError(f"sasl_oauth_token_provider failed with {kind}; no token, no connection") from error
        if not isinstance(value, str):
            raise SecurityError(f"sasl_oauth_token_provider returned a {type(value).__name__}; return the token as str")
        return value, time.time() + _TOKEN_SECONDS, "", extensions

    return token
