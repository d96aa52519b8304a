"""The connection settings of kafka-python and aiokafka, for the connections of a membership of ours."""

from __future__ import annotations

import enum
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any

import kafka
import pytest

from kafka_assignors.clients.common.connection import client_config
from kafka_assignors.errors import OptionError, SecurityError
from kafka_assignors.net import Poller, Ready
from kafka_assignors.net.sasl import Authenticator, Job
from support import certificates
from support.fake_broker import FakeBroker

if TYPE_CHECKING:
    from kafka_assignors.net.config import ClientConfig
    from support.certificates import Certificates
    from support.fake_broker import Peer


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


def read(**settings: Any) -> ClientConfig:
    return client_config({**kafka.KafkaConsumer.DEFAULT_CONFIG, **settings}, client="kafka-python")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("localhost", ["localhost:9092"]),
        ("a:1, b:2,", ["a:1", "b:2"]),
        (["a:1", "a:1", "[::1]:5"], ["a:1", "[::1]:5"]),
        (("PLAINTEXT://a:1",), ["a:1"]),
    ],
)
def test_bootstrap_servers(given: Any, expected: list[str]) -> None:
    assert [str(each) for each in read(bootstrap_servers=given).bootstrap] == expected


def test_times_buffers_and_switches() -> None:
    config = read(
        client_id="billing",
        request_timeout_ms=12_000,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=500,
        send_buffer_bytes=1000,
        receive_buffer_bytes=None,
        socket_options=[(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)],
    )
    assert (config.client_id, config.request_timeout, config.setup_timeout) == ("billing", 12.0, 12.0)
    assert (config.reconnect_backoff, config.reconnect_backoff_max) == (0.02, 0.5)
    assert (config.send_buffer, config.receive_buffer) == (1000, 0)
    assert (config.keepalive, config.no_delay) == (True, False)
    plain = read()
    assert (plain.keepalive, plain.no_delay, plain.tls, plain.sasl, plain.ssl_context) == (
        False,
        True,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"bootstrap_servers": []}, "at least one broker"),
        ({"bootstrap_servers": "SSL://a:1"}, "give both the same"),
        ({"security_protocol": "TLS"}, "security_protocol is 'TLS'"),
        ({"proxy_url": "socks5://p:1"}, "proxy_url is not supported .* go around the proxy"),
        ({"socks5_proxy": "socks5://p:1"}, "socks5_proxy is not supported"),
        ({"client_dns_lookup": "resolve_canonical_bootstrap_servers_only"}, "client_dns_lookup is not supported"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "sasl_mechanism is None; give one of PLAIN"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "GSSAPI is not supported .*Kerberos"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"},
            "AWS_MSK_IAM is not supported .*OAUTHBEARER .*sasl_oauth_token_provider",
        ),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "u"},
            "no sasl_plain_password",
        ),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"},
            "no sasl_oauth_token_provider",
        ),
        ({"security_protocol": "SSL", "ssl_context": "context"}, "ssl_context is a str"),
        ({"security_protocol": "SSL", "ssl_certfile": "c.pem"}, "ssl_certfile is given without ssl_keyfile"),
        ({"security_protocol": "SSL", "ssl_keyfile": "k.pem"}, "ssl_keyfile is given without ssl_certfile"),
        ({"security_protocol": "SSL", "ssl_cafile": "/nowhere.pem"}, "ssl_cafile cannot be used"),
        ({"security_protocol": "SSL", "ssl_ciphers": "none such"}, "ssl_ciphers cannot be used"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        read(**settings)


class Spelling(str, enum.Enum):  # noqa: UP042
    """Settings as members of an enumeration, as in kstreams and FastStream. `str()` of a member is not its value."""

    PROTOCOL = "SASL_PLAINTEXT"
    MECHANISM = "SCRAM-SHA-256"
    BROKER = "a:1"
    NAME = "someone"


def test_members_of_enumerations_are_their_values() -> None:
    given = {"security_protocol": Spelling.PROTOCOL, "sasl_mechanism": Spelling.MECHANISM, "client_id": Spelling.NAME}
    config = read(
        **given,
        bootstrap_servers=[Spelling.BROKER],
        sasl_plain_username=Spelling.NAME,
        sasl_plain_password="hidden",
    )
    assert ([str(each) for each in config.bootstrap], config.client_id) == (["a:1"], "someone")
    assert config.sasl is not None
    assert config.sasl.credentials is not None
    assert (config.sasl.mechanism, config.sasl.credentials.get()) == ("SCRAM-SHA-256", ("someone", "hidden"))


def test_no_secret_is_shown() -> None:
    settings = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "someone", "sasl_plain_password": "hidden"}
    assert "hidden" not in repr(read(security_protocol="SASL_PLAINTEXT", **settings))
    with pytest.raises(OptionError) as refused:
        read(security_protocol="SASL_PLAINTEXT", **(settings | {"sasl_mechanism": "GSSAPI"}))
    assert "hidden" not in str(refused.value)


def handshake(config: ClientConfig, pems: Certificates) -> None:
    """Connects with these settings to a broker that demands a client's certificate."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pems.server, pems.server_key)
    server.load_verify_locations(pems.ca)
    server.verify_mode = ssl.CERT_REQUIRED

    def script(peer: Peer) -> None:
        peer.open()
        peer.wait_for_close()

    with FakeBroker(script, tls=server) as broker, Poller(config) as poller:
        connection = poller.connect(type(config.bootstrap[0])("localhost", broker.port))
        events: list[Any] = []
        deadline = time.monotonic() + 20
        while not events and time.monotonic() < deadline:
            events = list(poller.poll(0.2))
        assert events == [Ready(connection)]


@pytest.mark.parametrize("password", ["text", "bytes", "function"])
def test_tls_with_files(pems: Certificates, password: str) -> None:
    secret = certificates.KEY_PASSWORD
    given: Any = {"text": secret, "bytes": secret.encode(), "function": lambda: secret}[password]
    config = read(
        security_protocol="SSL",
        ssl_cafile=str(pems.ca),
        ssl_certfile=str(pems.client),
        ssl_keyfile=str(pems.client_encrypted_key),
        ssl_password=given,
        ssl_crlfile=str(pems.unrevoked),
    )
    assert config.ssl_context is not None
    assert config.ssl_context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    handshake(config, pems)


def test_tls_with_a_context(pems: Certificates) -> None:
    context = ssl.create_default_context(cafile=str(pems.ca))
    context.load_cert_chain(pems.client, pems.client_key)
    # With a context the files are ignored.
    config = read(security_protocol="SSL", ssl_context=context, ssl_cafile="/nowhere.pem")
    assert config.ssl_context is context
    handshake(config, pems)
    assert read(security_protocol="SSL", ssl_check_hostname=False).ssl_context.check_hostname is False  # type: ignore[union-attr]


class Issuer:
    """A provider of tokens with the interface of the clients. A token that is an exception is raised."""

    def __init__(self, *tokens: Any) -> None:
        self._tokens = list(tokens)

    def token(self) -> Any:
        token = self._tokens.pop(0)
        if isinstance(token, Exception):
            raise token
        return token

    def extensions(self) -> dict[str, str]:
        return {"logicalCluster": "lkc-1"}


def first_message(authenticator: Authenticator) -> bytes:
    script = authenticator.script()
    step = next(script)
    assert isinstance(step, Job)
    message = script.send(step.run())
    assert isinstance(message, bytes)
    return message


def oauth(provider: Any, **further: Any) -> Authenticator:
    settings = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": provider}
    config = client_config(
        {**kafka.KafkaConsumer.DEFAULT_CONFIG, "security_protocol": "SASL_PLAINTEXT", **settings},
        client="kafka-python",
        **further,
    )
    assert config.sasl is not None
    return Authenticator(config.sasl)


def test_a_provider_is_asked_at_each_authentication(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    made = oauth(Issuer("first", "second"))
    assert first_message(made) == b"n,,\x01auth=Bearer first\x01logicalCluster=lkc-1\x01\x01"
    now += 60
    assert b"second" in first_message(made)
    assert b"third" in first_message(oauth(object_with_token(), token_of=lambda _: "third"))


def object_with_token() -> Any:
    class Provider:
        async def token(self) -> str:
            raise AssertionError("the hook asks instead")

    return Provider()


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (OSError("the issuer is down"), "sasl_oauth_token_provider failed with OSError"),
        (b"bytes", "sasl_oauth_token_provider returned a bytes"),
    ],
)
def test_a_provider_that_fails(answer: Any, complaint: str) -> None:
    with pytest.raises(SecurityError, match=complaint):
        first_message(oauth(Issuer(answer)))
