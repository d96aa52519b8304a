"""The settings of connections, under confluent-kafka's names.

Every setting about brokers' addresses and about security is either honoured or refused. Otherwise the membership could
be less secure than the data path, which reads the same dictionary.

>>> config = ClientConfig.from_confluent({"bootstrap.servers": "kafka-1,kafka-2:9093", "client.id": "billing"})
>>> [str(address) for address in config.bootstrap], config.tls, config.sasl
(['kafka-1:9092', 'kafka-2:9093'], None, None)
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from kafka_assignors.errors import OptionError
from kafka_assignors.net.settings import TypedSettings
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    import ssl

__all__ = ["CONNECTION", "Address", "ClientConfig", "Credentials", "OauthCallback", "SaslConfig", "TlsConfig"]

OauthCallback: TypeAlias = Callable[[str], tuple[Any, ...]]
"""confluent-kafka's `oauth_cb`: takes `sasl.oauthbearer.config`, and returns the token and its expiry in seconds since
the epoch; optionally also the principal and a mapping of SASL extensions."""

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_MECHANISMS: tuple[Mechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}
_DEFAULT_PORT = 9092

# Settings of librdkafka that Python's ssl module or this package cannot honour: their harmless values, and a remedy.
_REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "ssl.keystore.location": (
        (),
        "convert the PKCS#12 store with `openssl pkcs12 -in store.p12 -out client.pem` and give client.pem as both "
        "ssl.certificate.location and ssl.key.location",
    ),
    "ssl.keystore.password": ((), "use ssl.certificate.location, ssl.key.location and ssl.key.password instead"),
    "ssl.curves.list": ((), "leave the choice of curves to OpenSSL, or restrict it in openssl.cnf"),
    "ssl.sigalgs.list": ((), "leave the signature algorithms to OpenSSL, or restrict them in openssl.cnf"),
    "ssl.providers": (("", "default"), "load OpenSSL providers through openssl.cnf"),
    "ssl.engine.location": ((), "OpenSSL engines are deprecated; give the key as a file"),
    "ssl.engine.id": (("dynamic",), "OpenSSL engines are deprecated; give the key as a file"),
    "ssl.ca.certificate.stores": (("root",), "give the certificates as ssl.ca.location or ssl.ca.pem"),
    "ssl.certificate.verify_cb": ((), "give the certificates to trust as ssl.ca.location or ssl.ca.pem"),
    "client.dns.lookup": (("use_all_dns_ips",), "leave it at use_all_dns_ips; the other value is for Kerberos"),
    "api.version.request": (("true", "t", "1"), "leave it at true; brokers since 0.10 need nothing else"),
    "enable.sasl.oauthbearer.unsecure.jwt": (("false", "f", "0"), "give an oauth_cb that makes the token"),
    "sasl.oauthbearer.method": (("default",), "give an oauth_cb that fetches the token from the issuer"),
    "sasl.oauthbearer.metadata.authentication.type": (("none",), "give an oauth_cb that fetches the token"),
}
# Settings of `sasl.mechanism` GSSAPI and of `sasl.oauthbearer.method` oidc. Both are refused, so these are ignored.
_INERT_PREFIXES = ("sasl.kerberos.", "sasl.oauthbearer.")
_HONOURED = frozenset(
    (
        "security.protocol",
        "ssl.cipher.suites",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.crl.location",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "sasl.oauthbearer.config",
        "sasl.scram.max.iterations",
    )
)
# Settings of Java's clients, which are often copied from their files.
_JAVA: Mapping[str, str] = {
    "sasl.jaas.config": "give what stands in it as sasl.username and sasl.password, with sasl.mechanism PLAIN, "
    "SCRAM-SHA-256 or SCRAM-SHA-512; with OAUTHBEARER give an oauth_cb, or on a command line one of "
    "sasl.oauthbearer.token, sasl.oauthbearer.token.file and sasl.oauthbearer.method=oidc",
    "sasl.client.callback.handler.class": "give sasl.username and sasl.password, or an oauth_cb",
    "sasl.login.callback.handler.class": "give sasl.username and sasl.password, or an oauth_cb",
    "ssl.truststore.location": "export the certificates as PEM and give them as ssl.ca.location",
    "ssl.truststore.certificates": "give the certificates as ssl.ca.pem",
    "ssl.truststore.password": "export the certificates as PEM, which has none, and give them as ssl.ca.location",
    "ssl.truststore.type": "export the certificates as PEM and give them as ssl.ca.location",
    "ssl.keystore.type": "give the certificate and key as PEM: ssl.certificate.location and ssl.key.location",
    "ssl.keystore.certificate.chain": "give it as ssl.certificate.pem",
    "ssl.keystore.key": "give it as ssl.key.pem",
}
CONNECTION = frozenset(
    (
        *_HONOURED,
        *_REFUSED,
        *_JAVA,
        "bootstrap.servers",
        "broker.address.family",
        "client.id",
        "metadata.broker.list",
        "oauth_cb",
        "receive.message.max.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.timeout.ms",
    )
)
"""Every setting of a connection that is read, or refused with a reason."""
_GUARDED_PREFIXES = ("ssl.", "ssl_", "sasl.", "security.", "enable.ssl.", "enable.sasl.")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where a broker listens.

    >>> Address.parse("[::1]:9093"), str(Address("::1", 9093))
    (Address(host='::1', port=9093), '[::1]:9093')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, default_port: int = _DEFAULT_PORT) -> Self:
        """Reads `host`, `host:port` or `[IPv6]:port`.

        Raises:
            OptionError: there is no host, or the port is no number from 1 to 65535.
        """
        host, port = text, ""
        if text.startswith("["):
            host, bracket, rest = text[1:].partition("]")
            if not bracket or (rest and not rest.startswith(":")):
                raise OptionError(f"the broker address {text!r} has an unpaired bracket; give [IPv6]:port")
            port = rest[1:]
        elif text.count(":") == 1:
            host, _, port = text.partition(":")
        if not host or any(character.isspace() for character in host):
            raise OptionError(f"the broker address {text!r} has no host; give host:port")
        if not port:
            return cls(host, default_port)
        if not (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= 65535):
            raise OptionError(f"the broker address {text!r} has no valid port; give a number from 1 to 65535")
        return cls(host, int(port))

    def __str__(self) -> str:
        # The host may come from another broker, and this text is part of errors.
        host = printable(self.host)
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class Credentials:
    """A user's name and password, which may be replaced while connections are being made. Thread-safe.

    `repr` shows neither.
    """

    def __init__(self, username: str, password: str) -> None:
        self._lock = threading.Lock()
        self._pair = (username, password)

    def get(self) -> tuple[str, str]:
        """Name and password, which were given together."""
        with self._lock:
            return self._pair

    def replace(self, username: str, password: str) -> None:
        """Replaces both. Existing connections use them when they authenticate again."""
        with self._lock:
            self._pair = (username, password)

    def __repr__(self) -> str:
        return "Credentials(...)"


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """The trusted certificates, and the client's own, in PEM.

    Attributes:
        ca_location: file, or directory of hashed certificates; None and `probe` are the system's.
        ca_pem: certificates to trust, as text.
        certificate_location: file of the client's certificate chain.
        certificate_pem: the same, as text.
        key_location: file of the client's private key.
        key_pem: the same, as text.
        key_password: of an encrypted key.
        crl_location: file of revoked certificates; the broker's own certificate is looked up there.
        cipher_suites: OpenSSL's list for TLS 1.2; None leaves it to OpenSSL.
        verify: whether the broker's certificate is verified at all.
        check_hostname: whether its certificate must have the host's name.
    """

    ca_location: str | None = None
    ca_pem: str | None = field(default=None, repr=False)
    certificate_location: str | None = None
    certificate_pem: str | None = field(default=None, repr=False)
    key_location: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | bytes | None = field(default=None, repr=False)
    crl_location: str | None = None
    cipher_suites: str | None = None
    verify: bool = True
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class SaslConfig:
    """The client's identity for SASL.

    Attributes:
        mechanism: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`.
        credentials: for all mechanisms but `OAUTHBEARER`.
        oauth_cb: for `OAUTHBEARER`.
        oauth_config: the argument of `oauth_cb`.
        scram_iterations: how many rounds of SCRAM a broker may ask for (`sasl.scram.max.iterations`).
    """

    mechanism: Mechanism
    credentials: Credentials | None = None
    oauth_cb: OauthCallback | None = field(default=None, repr=False)
    oauth_config: str = field(default="", repr=False)
    scram_iterations: int = 100_000


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The settings of connections. Times are seconds.

    Attributes:
        bootstrap: the bootstrap brokers; never empty.
        client_id: the name of this client, which is sent to the brokers.
        tls: the files of TLS; None for plain text, and with a context.
        sasl: None without authentication.
        ssl_context: the context for TLS, if there is one already. It is used unchanged, and `tls` is ignored.
        family: `socket.AF_UNSPEC`, `AF_INET` or `AF_INET6`.
        setup_timeout: for a connection to become ready, from the name lookup to the end of the authentication.
        request_timeout: for the answer to a request. The sender of the request enforces it, not the connection.
        reconnect_backoff: the first wait before another attempt to connect.
        reconnect_backoff_max: the longest.
        frame_limit: the largest answer accepted, in bytes.
        send_buffer: SO_SNDBUF in bytes; 0 leaves it to the system.
        receive_buffer: SO_RCVBUF likewise.
        keepalive: whether TCP probes idle connections.
        no_delay: whether small frames are sent at once.
    """

    bootstrap: tuple[Address, ...]
    client_id: str = "rdkafka"
    tls: TlsConfig | None = None
    sasl: SaslConfig | None = None
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)
    family: int = socket.AF_UNSPEC
    setup_timeout: float = 30.0
    request_timeout: float = 60.0
    reconnect_backoff: float = 0.1
    reconnect_backoff_max: float = 10.0
    frame_limit: int = 100_000_000
    send_buffer: int = 0
    receive_buffer: int = 0
    keepalive: bool = False
    no_delay: bool = True

    @classmethod
    def from_confluent(cls, config: Mapping[str, Any]) -> Self:
        """Reads the settings of connections, and ignores all others.

        Args:
            config: settings as for `confluent_kafka.Consumer`, `oauth_cb` among them.

        Raises:
            OptionError: a value out of range, no broker, or a setting of TLS or SASL that cannot be honoured. The
                message has the setting and a remedy, and never the value of a secret.
        """
        settings = TypedSettings(config)
        _refuse(settings)
        protocol = settings.choice("security.protocol", _PROTOCOLS, "plaintext")
        backoff = settings.milliseconds("reconnect.backoff.ms", 0, 3_600_000, 100)
        return cls(
            bootstrap=_bootstrap(settings, protocol),
            client_id=settings.text("client.id") or "rdkafka",
            tls=_tls(settings) if protocol.endswith("ssl") else None,
            sasl=_sasl(settings) if protocol.startswith("sasl") else None,
            family=_FAMILIES[settings.choice("broker.address.family", tuple(_FAMILIES), "any")],
            setup_timeout=settings.milliseconds("socket.connection.setup.timeout.ms", 1_000, 2**31 - 1, 30_000),
            request_timeout=settings.milliseconds("socket.timeout.ms", 10, 300_000, 60_000),
            reconnect_backoff=backoff,
            reconnect_backoff_max=max(backoff, settings.milliseconds("reconnect.backoff.max.ms", 0, 3_600_000, 10_000)),
            frame_limit=settings.integer("receive.message.max.bytes", 1_000, 2**31 - 1, 100_000_000),
            send_buffer=settings.integer("socket.send.buffer.bytes", 0, 100_000_000, 0),
            receive_buffer=settings.integer("socket.receive.buffer.bytes", 0, 100_000_000, 0),
            keepalive=settings.boolean("socket.keepalive.enable", default=False),
            no_delay=settings.boolean("socket.nagle.disable", default=True),
        )


def _refuse(settings: TypedSettings) -> None:
    for name in settings:
        if name in _REFUSED:
            harmless, remedy = _REFUSED[name]
            value = settings.text(name)
            if value is not None and value.lower() not in harmless:
                raise OptionError(f"{name} is not supported here: {remedy}")
        elif name in _JAVA and settings.text(name) is not None:
            raise OptionError(f"{name} is a setting of Java's clients: {_JAVA[name]}")
        elif (
            name.startswith(_GUARDED_PREFIXES)
            and name not in _HONOURED
            and not name.startswith(_INERT_PREFIXES)
            and settings.text(name) is not None
        ):
            raise OptionError(f"{name} is not known, and settings of TLS and SASL are never ignored; remove it")


def _bootstrap(settings: TypedSettings, protocol: str) -> tuple[Address, ...]:
    name = settings.latest("metadata.broker.list", "bootstrap.servers")
    text = settings.text(name) or ""
    addresses = []
    for part in filter(None, map(str.strip, text.split(","))):
        scheme, separator, rest = part.partition("://")
        if separator and scheme.lower() != protocol:
            raise OptionError(f"{name} has {part!r}, but security.protocol is {protocol}; give both the same")
        addresses.append(Address.parse(rest if separator else part))
    if not addresses:
        raise OptionError(f"{name} is {text!r}; give at least one broker as host:port")
    return tuple(dict.fromkeys(addresses))


def _tls(settings: TypedSettings) -> TlsConfig:
    verify = settings.boolean("enable.ssl.certificate.verification", default=True)
    identification = settings.choice("ssl.endpoint.identification.algorithm", ("none", "https"), "https")
    tls = TlsConfig(
        ca_location=settings.text("ssl.ca.location"),
        ca_pem=settings.text("ssl.ca.pem"),
        certificate_location=settings.text("ssl.certificate.location"),
        certificate_pem=settings.text("ssl.certificate.pem"),
        key_location=settings.text("ssl.key.location"),
        key_pem=settings.text("ssl.key.pem"),
        key_password=settings.text("ssl.key.password"),
        crl_location=settings.text("ssl.crl.location"),
        cipher_suites=settings.text("ssl.cipher.suites"),
        verify=verify,
        check_hostname=verify and identification == "https",
    )
    for what in ("certificate", "key"):
        if getattr(tls, f"{what}_location") and getattr(tls, f"{what}_pem"):
            raise OptionError(f"ssl.{what}.location and ssl.{what}.pem are both given; give one of them")
    has_key = bool(tls.key_location or tls.key_pem)
    if has_key != bool(tls.certificate_location or tls.certificate_pem):
        given, lacking = ("key", "certificate") if has_key else ("certificate", "key")
        raise OptionError(
            f"ssl.{given}.location or ssl.{given}.pem is given without the client's {lacking}; give "
            f"ssl.{lacking}.location or ssl.{lacking}.pem too"
        )
    return tls


def _sasl(settings: TypedSettings) -> SaslConfig:
    name = settings.latest("sasl.mechanism", "sasl.mechanisms")
    given = (settings.text(name) or "GSSAPI").upper()
    mechanism = next((each for each in _MECHANISMS if each == given), None)
    if mechanism is None:
        hint = " (the default)" if settings.text(name) is None else ""
        raise OptionError(f"{name} {given!r}{hint} is not supported; give one of {', '.join(_MECHANISMS)}")
    if mechanism == "OAUTHBEARER":
        callback = settings.raw("oauth_cb")
        if not callable(callback):
            raise OptionError("sasl.mechanism is OAUTHBEARER, but there is no oauth_cb; give a function")
        return SaslConfig(mechanism, oauth_cb=callback, oauth_config=settings.text("sasl.oauthbearer.config") or "")
    username, password = settings.text("sasl.username"), settings.text("sasl.password")
    if username is None or password is None:
        lacking = "sasl.username" if username is None else "sasl.password"
        raise OptionError(f"sasl.mechanism is {mechanism}, but there is no {lacking}; give it")
    iterations = settings.integer("sasl.scram.max.iterations", 4_096, 2**31 - 1, 100_000)
    return SaslConfig(mechanism, Credentials(username, password), scram_iterations=iterations)
