"""confluent-kafka's settings: each is used, refused or ignored on purpose."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.errors import OptionError
from kafka_assignors.net import Address, ClientConfig
from kafka_assignors.net.config import Credentials
from kafka_assignors.net.tls import context_of
from support import certificates, librdkafka

if TYPE_CHECKING:
    from pathlib import Path

    from support.certificates import Certificates

BASE = {"bootstrap.servers": "b:1"}


def read(**settings: Any) -> ClientConfig:
    return ClientConfig.from_confluent(BASE | {name.replace("_", "."): value for name, value in settings.items()})


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


def test_defaults_are_librdkafkas() -> None:
    config = read()
    defaults = librdkafka.defaults()
    assert config == ClientConfig((Address("b", 1),))
    assert config.client_id == defaults["client.id"]
    assert config.setup_timeout == int(defaults["socket.connection.setup.timeout.ms"]) / 1000
    assert config.request_timeout == int(defaults["socket.timeout.ms"]) / 1000
    assert config.reconnect_backoff == int(defaults["reconnect.backoff.ms"]) / 1000
    assert config.reconnect_backoff_max == int(defaults["reconnect.backoff.max.ms"]) / 1000
    assert config.frame_limit == int(defaults["receive.message.max.bytes"])
    assert config.send_buffer == int(defaults["socket.send.buffer.bytes"])
    assert config.receive_buffer == int(defaults["socket.receive.buffer.bytes"])
    assert str(config.keepalive).lower() == defaults["socket.keepalive.enable"]
    assert str(config.no_delay).lower() == defaults["socket.nagle.disable"]
    assert config.family == socket.AF_UNSPEC
    assert defaults["security.protocol"] == "plaintext"
    assert defaults["ssl.endpoint.identification.algorithm"] == "https"
    assert defaults["enable.ssl.certificate.verification"] == "true"


def test_every_setting_of_tls_and_sasl_is_known() -> None:
    """Every setting of librdkafka for TLS and SASL is used or refused, and no other setting is."""
    values = librdkafka.defaults() | {"ssl.providers": "default"}
    guarded = ("ssl.", "sasl.", "security.", "enable.ssl.", "enable.sasl.")
    for name in filter(lambda each: each.startswith(guarded), values):
        try:
            ClientConfig.from_confluent(BASE | {name: values[name] or "x"})
        except OptionError as error:
            assert "not known" not in str(error), name  # noqa: PT017


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"ssl.keystore.location": "store.p12"}, r"ssl\.keystore\.location is not supported .*openssl pkcs12"),
        ({"ssl.keystore.password": "hush"}, r"ssl\.keystore\.password is not supported"),
        ({"ssl.curves.list": "P-256"}, r"ssl\.curves\.list"),
        ({"ssl.sigalgs.list": "RSA+SHA256"}, r"ssl\.sigalgs\.list"),
        ({"ssl.providers": "legacy"}, r"ssl\.providers"),
        ({"ssl.engine.location": "/engine.so"}, r"ssl\.engine\.location"),
        ({"ssl.certificate.verify_cb": print}, r"ssl\.certificate\.verify_cb is of type"),
        ({"ssl_ca": "x"}, "ssl_ca is not known"),
        ({"ssl.something.new": "x"}, r"ssl\.something\.new is not known, .* remove it"),
        ({"sasl.login.callback": "x"}, r"sasl\.login\.callback is not known"),
        ({"enable.ssl.something": True}, "not known"),
        ({"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"}, r"client\.dns\.lookup"),
        ({"api.version.request": False}, r"api\.version\.request"),
        ({"enable.sasl.oauthbearer.unsecure.jwt": "true"}, "give an oauth_cb"),
        ({"sasl.oauthbearer.method": "oidc"}, "give an oauth_cb"),
        ({"security.protocol": "sasl"}, "give one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        (
            {"security.protocol": "sasl_ssl"},
            r"sasl\.mechanisms 'GSSAPI' \(the default\) is not supported; give one of PLAIN",
        ),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "GSSAPI"}, r"sasl\.mechanism 'GSSAPI' is not supported"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}, r"there is no sasl\.username"),
        (
            {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u"},
            r"there is no sasl\.password",
        ),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}, "there is no oauth_cb"),
        (
            {"security.protocol": "ssl", "ssl.certificate.location": "c"},
            r"without the client's key; give ssl\.key\.location or ssl\.key\.pem too",
        ),
        ({"security.protocol": "ssl", "ssl.key.pem": "hush"}, r"without the client's certificate"),
        ({"security.protocol": "ssl", "ssl.key.pem": "hush", "ssl.key.location": "x"}, "give one of them"),
        ({"security.protocol": "ssl", "enable.ssl.certificate.verification": "maybe"}, "give true or false"),
        ({"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "HTTP"}, "give one of none, https"),
        ({"socket.timeout.ms": "soon"}, r"socket\.timeout\.ms is 'soon'; give an integer from 10 to 300000"),
        ({"socket.timeout.ms": 9}, "'9'"),
        ({"socket.timeout.ms": 300_001}, "'300001'"),
        ({"socket.timeout.ms": 20.5}, "'20.5'"),
        ({"socket.timeout.ms": "9" * 5000}, "integer from 10"),
        ({"socket.timeout.ms": [10]}, r"socket\.timeout\.ms is of type list; give a str"),
        ({"broker.address.family": "v5"}, "give one of any, v4, v6"),
        ({"bootstrap.servers": ""}, "give at least one broker as host:port"),
        ({"bootstrap.servers": " , "}, "give at least one broker as host:port"),
        ({"bootstrap.servers": "a:b"}, "'a:b' has no valid port"),
        ({"bootstrap.servers": "a:0"}, "'a:0' has no valid port"),
        ({"bootstrap.servers": "a:65536"}, "has no valid port"),
        ({"bootstrap.servers": "a:" + "9" * 5000}, "has no valid port"),
        ({"bootstrap.servers": ":9092"}, "':9092' has no host"),
        ({"bootstrap.servers": "[::1"}, "unpaired bracket"),
        ({"bootstrap.servers": "[::1]9092"}, "unpaired bracket"),
        ({"bootstrap.servers": "a b:1"}, "has no host"),
        ({"bootstrap.servers": "ssl://a:1"}, r"security\.protocol is plaintext; give both the same"),
        ({"bootstrap.servers": None}, "give at least one broker"),
        ({1: "x"}, "has the key 1; give names of settings as str"),
    ],
)
def test_what_cannot_be_honoured_is_refused(settings: dict[Any, Any], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint) as caught:
        ClientConfig.from_confluent(BASE | settings)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {
            "group.id": "g",
            "fetch.min.bytes": 1,
            "session.timeout.ms": "6000",
            "stats_cb": print,
            "default.topic.config": {},
        },
        {"client.dns.lookup": "use_all_dns_ips", "api.version.request": True, "sasl.oauthbearer.method": "default"},
        {
            "enable.sasl.oauthbearer.unsecure.jwt": False,
            "ssl.engine.id": "dynamic",
            "ssl.ca.certificate.stores": "Root",
        },
        {"sasl.username": "u", "sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "x", "ssl.key.location": "x"},
    ],
)
def test_what_asks_for_nothing_is_left_alone(settings: dict[str, Any]) -> None:
    assert ClientConfig.from_confluent(BASE | settings) == ClientConfig((Address("b", 1),))


def test_brokers() -> None:
    def addresses(text: str, **settings: str) -> list[str]:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        return [str(each) for each in ClientConfig.from_confluent({"bootstrap.servers": text} | names).bootstrap]

    assert addresses("a, b:9093 ,,a:9092") == ["a:9092", "b:9093"]
    assert addresses("[::1]:1,[fe80::1],::1") == ["[::1]:1", "[fe80::1]:9092", "[::1]:9092"]
    assert addresses("PLAINTEXT://a:1") == ["a:1"]
    assert addresses("a", metadata_broker_list="b") == ["b:9092"]


def test_types_and_spellings() -> None:
    config = read(
        client_id="c",
        socket_timeout_ms="100",
        socket_keepalive_enable="T",
        socket_nagle_disable=0,
        broker_address_family="V6",
        reconnect_backoff_ms=20_000,
        ssl_ca_location="",
    )
    assert (config.client_id, config.request_timeout, config.keepalive) == ("c", 0.1, True)
    assert (config.no_delay, config.family) == (False, socket.AF_INET6)
    assert (config.reconnect_backoff, config.reconnect_backoff_max) == (20.0, 20.0)


def test_host_names_are_checked_only_where_certificates_are() -> None:
    tls = read(security_protocol="SSL", enable_ssl_certificate_verification="false").tls
    assert tls is not None
    assert (tls.verify, tls.check_hostname) == (False, False)
    tls = read(security_protocol="SSL").tls
    assert tls is not None
    assert (tls.verify, tls.check_hostname) == (True, True)


def test_secrets_are_not_shown() -> None:
    config = read(
        security_protocol="sasl_ssl",
        sasl_mechanism="scram-sha-256",
        sasl_username="alice",
        sasl_password="hush",
        ssl_key_password="hush",
        ssl_key_pem="hush",
        ssl_certificate_pem="hush",
        ssl_ca_pem="hush",
    )
    assert config.sasl is not None
    assert config.sasl.mechanism == "SCRAM-SHA-256"
    assert "hush" not in repr(config)
    assert "alice" not in repr(config)
    assert isinstance(config.sasl.credentials, Credentials)
    assert config.sasl.credentials.get() == ("alice", "hush")


def tls_of(**settings: Any) -> Any:
    tls = read(security_protocol="ssl", **settings).tls
    assert tls is not None
    return context_of(tls)


def test_certificates_as_files_and_as_text(pems: Certificates, tmp_path: Path) -> None:
    by_file = tls_of(
        ssl_ca_location=str(pems.ca), ssl_certificate_location=str(pems.client), ssl_key_location=str(pems.client_key)
    )
    by_text = tls_of(
        ssl_ca_pem=pems.ca.read_text(),
        ssl_certificate_pem=pems.client.read_text(),
        ssl_key_pem=pems.client_encrypted_key.read_text(),
        ssl_key_password=certificates.KEY_PASSWORD,
    )
    assert by_file.get_ca_certs() == by_text.get_ca_certs() != []
    assert tls_of(ssl_ca_location=str(tmp_path)).get_ca_certs() == []
    assert tls_of(ssl_cipher_suites="ECDHE+AESGCM").get_ciphers() != tls_of().get_ciphers()
    assert tls_of(ssl_ca_location="probe").get_ca_certs() == tls_of().get_ca_certs()


def test_no_private_file_stays(pems: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tls_of(ssl_certificate_pem=pems.client.read_text(), ssl_key_pem=pems.client_key.read_text())
    with pytest.raises(OptionError):
        tls_of(ssl_certificate_pem=pems.client.read_text(), ssl_key_pem="nonsense")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"ssl_ca_location": "/nowhere/ca.pem"}, r"ssl\.ca\.location cannot be used \(No such file"),
        ({"ssl_ca_pem": "hush"}, r"ssl\.ca\.pem cannot be used"),
        ({"ssl_crl_location": "/nowhere/crl.pem"}, r"ssl\.crl\.location cannot be used"),
        ({"ssl_cipher_suites": "NO-SUCH-CIPHER"}, r"ssl\.cipher\.suites cannot be used"),
        ({"ssl_certificate_pem": "hush", "ssl_key_pem": "hush"}, r"ssl\.key\.location .* cannot be used"),
    ],
)
def test_files_that_cannot_be_used(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint) as caught:
        tls_of(**settings)
    assert "hush" not in str(caught.value)


def test_an_encrypted_key_needs_its_password(pems: Certificates) -> None:
    files = {"ssl_certificate_location": str(pems.client), "ssl_key_location": str(pems.client_encrypted_key)}
    with pytest.raises(OptionError, match=r"is encrypted; give ssl\.key\.password"):
        tls_of(**files)
    with pytest.raises(OptionError, match=r"ssl\.key\.password cannot be used") as caught:
        tls_of(**files, ssl_key_password="hush-hush")
    assert "hush" not in str(caught.value)
    tls_of(**files, ssl_key_password=certificates.KEY_PASSWORD)
