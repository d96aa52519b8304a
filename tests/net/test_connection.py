"""Connections to brokers that misbehave on purpose."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import _core
from kafka_assignors.errors import NetworkError, ProtocolError, SecurityError, StateError
from kafka_assignors.net import Closed, Connection, Ready, Received
from support import certificates, fake_broker
from support.fake_broker import FakeBroker, Peer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.certificates import Certificates


METADATA = 3


def request_of(api: int, correlation: int) -> bytes:
    body = struct.pack(">hhih", api, 0, correlation, 1) + b"c" + struct.pack(">h", 1) + b"g"
    return struct.pack(">i", len(body)) + body


def heartbeat(correlation: int) -> bytes:
    return request_of(fake_broker.HEARTBEAT, correlation)


def metadata(correlation: int) -> bytes:
    """A request with a long answer."""
    return request_of(METADATA, correlation)


@pytest.fixture(scope="session")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


def server_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_opens_and_exchanges_frames(drive: Any) -> None:
    asked = []

    def script(peer: Peer) -> None:
        request = peer.receive()
        asked.append(request)
        peer.answer(request, fake_broker.api_versions())
        while True:
            request = peer.receive()
            peer.answer(request, b"to %d" % request.correlation)

    driver = drive(client_id="billing")
    with FakeBroker(script) as broker:
        connection = driver.connect("127.0.0.1", broker.port)
        with pytest.raises(StateError, match="not ready"):
            connection.send(heartbeat(1))
        with pytest.raises(StateError, match="not ready"):
            connection.api_versions  # noqa: B018
        assert driver.next() == Ready(connection)
        assert connection.api_versions == fake_broker.VERSIONS
        for correlation in (7, 8, 2**31 - 1, -1):
            connection.send(heartbeat(correlation))
        assert connection.in_flight == 4
        for correlation in (7, 8, 2**31 - 1, -1):
            assert driver.frame() == struct.pack(">i", correlation) + b"to %d" % correlation
        assert connection.in_flight == 0
        connection.close()
        connection.send(heartbeat(9))
        assert driver.poller.poll(0) == []
    assert (asked[0].api, asked[0].version, asked[0].client_id) == (fake_broker.API_VERSIONS, 3, "billing")


def test_an_older_broker_names_the_version_to_use(drive: Any) -> None:
    versions = []

    def script(peer: Peer) -> None:
        request = peer.receive()
        versions.append(request.version)
        peer.answer(request, fake_broker.api_versions_0(35, 0))
        request = peer.receive()
        versions.append(request.version)
        peer.answer(request, fake_broker.api_versions_0(0, 0))
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive()
        connection = driver.ready("127.0.0.1", broker.port)
        assert connection.api_versions == {fake_broker.API_VERSIONS: (0, 0)}
        driver.poller.close()
    assert versions == [3, 0]


def test_a_broker_that_refuses_every_version_is_given_up(drive: Any) -> None:
    def script(peer: Peer) -> None:
        while True:
            peer.answer(peer.receive(), fake_broker.api_versions_0(35, 3))

    with FakeBroker(script) as broker:
        driver = drive()
        driver.connect("127.0.0.1", broker.port)
        assert "UNSUPPORTED_VERSION" in str(driver.closed())


def _in_pieces(peer: Peer) -> None:
    request = peer.receive()
    answer = fake_broker.frame(request.correlation, b"x" * 10)
    for byte in answer:
        peer.send(bytes([byte]))


def test_frames_in_pieces_and_frames_together(drive: Any) -> None:
    def script(peer: Peer) -> None:
        peer.open()
        _in_pieces(peer)
        first, second, third = peer.receive(), peer.receive(), peer.receive()
        frames = [fake_broker.frame(each.correlation, b"y" * 1_000_000) for each in (first, second, third)]
        peer.send(b"".join(frames))
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive()
        connection = driver.ready("127.0.0.1", broker.port)
        connection.send(heartbeat(1))
        assert driver.frame() == struct.pack(">i", 1) + b"x" * 10
        for correlation in (2, 3, 4):
            connection.send(metadata(correlation))
        for correlation in (2, 3, 4):
            assert driver.frame() == struct.pack(">i", correlation) + b"y" * 1_000_000
        driver.poller.close()


def _send(data: Callable[[fake_broker.Request], bytes]) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        peer.open()
        peer.send(data(peer.receive()))
        peer.wait_for_close()

    return script


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param(lambda _: struct.pack(">i", -1), "-1 bytes", id="negative"),
        pytest.param(lambda _: struct.pack(">i", -(2**31)), "-2,147,483,648 bytes", id="most negative"),
        pytest.param(lambda _: struct.pack(">i", 0), "0 bytes", id="empty"),
        pytest.param(lambda _: struct.pack(">i", 3) + b"abc", "3 bytes", id="no room for a header"),
        pytest.param(lambda _: struct.pack(">i", 100_000_001), "100,000,001 bytes", id="above the limit"),
        pytest.param(lambda _: struct.pack(">i", 2**31 - 1) + b"x" * 100, "2,147,483,647 bytes", id="largest"),
        pytest.param(lambda _: fake_broker.frame(99, b"x"), "correlation id 99, but 5 was", id="another request's"),
        pytest.param(
            lambda request: fake_broker.frame(request.correlation, b"x") * 2,
            "correlation id 5, but none is owed",
            id="one too many",
        ),
        pytest.param(lambda _: b"\x15\x03\x03\x00\x02\x02\x28", "352,518,912 bytes", id="like a TLS alert"),
        pytest.param(
            lambda _: struct.pack(">i", 65_537), "65,537 bytes; from 4 to 65,536 are", id="long for a heartbeat"
        ),
        pytest.param(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP", id="a web server"),
    ],
)
def test_hostile_frames_close_the_connection(
    drive: Any, data: Callable[[fake_broker.Request], bytes], complaint: str
) -> None:
    with FakeBroker(_send(data)) as broker:
        driver = drive()
        connection = driver.ready("127.0.0.1", broker.port)
        connection.send(heartbeat(5))
        events = [driver.next()]
        if isinstance(events[0], Received):
            events.append(driver.next())
        assert isinstance(events[-1], Closed)
        assert complaint in str(events[-1].error)
        # A security error would end the consumer for good. This broker has answered before, so that a retry may help.
        assert not isinstance(events[-1].error, SecurityError)
        assert str(broker.port) in str(events[-1].error)
        assert connection.fileno() == -1
        assert connection.in_flight == 0
        assert driver.poller.poll(0) == []


def test_a_frame_that_ends_early(drive: Any) -> None:
    def script(peer: Peer) -> None:
        peer.open()
        request = peer.receive()
        peer.send(fake_broker.frame(request.correlation, b"x" * 1000)[:-1])

    with FakeBroker(script) as broker:
        driver = drive()
        driver.ready("127.0.0.1", broker.port).send(heartbeat(1))
        assert "closed the connection" in str(driver.closed())


@pytest.mark.parametrize("cut", range(0, 36, 5))
def test_an_opening_that_is_cut_short_or_garbled(drive: Any, cut: int) -> None:
    def script(peer: Peer) -> None:
        request = peer.receive()
        peer.answer(request, fake_broker.api_versions()[:cut])
        peer.wait_for_close()

    assert cut < len(fake_broker.api_versions())
    with FakeBroker(script) as broker:
        driver = drive()
        driver.connect("127.0.0.1", broker.port)
        assert "cannot be read" in str(driver.closed())


def test_limits_are_the_users(drive: Any) -> None:
    with FakeBroker(_send(lambda request: fake_broker.frame(request.correlation, b"x" * 997))) as broker:
        driver = drive(receive_message_max_bytes=1_000)
        driver.ready("127.0.0.1", broker.port).send(heartbeat(1))
        assert "receive.message.max.bytes" in str(driver.closed())


def test_a_first_answer_in_tls_is_a_wrong_setting(drive: Any) -> None:
    def script(peer: Peer) -> None:
        peer.receive()
        peer.send(b"\x15\x03\x03\x00\x02\x02\x28")
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive()
        driver.connect("127.0.0.1", broker.port)
        error = driver.closed()
        assert isinstance(error, SecurityError)
        assert "speaks TLS; set security.protocol" in str(error)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("127.0.0.1\0", 9092),
        ("127.0.0.1\0.example", 9092),
        ("", 9092),
        ("a b", 9092),
        ("\x1b[31m", 9092),
        (".example", 9092),
        ("a" * 64, 9092),
    ]
    + [("127.0.0.1", port) for port in (0, -1, 65_536, 2**31 - 1)],
)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
def test_addresses_that_no_broker_has(drive: Any, pems: Certificates, host: str, port: int, encrypted: bool) -> None:
    settings = {"security_protocol": "ssl", "ssl_ca_location": str(pems.ca)} if encrypted else {}
    driver = drive(**settings)
    driver.connect(host, port)
    error = driver.closed()
    assert "is no address of a broker" in str(error)
    assert str(error).isprintable()


def test_nobody_listens(drive: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    driver = drive()
    driver.connect("127.0.0.1", port)
    error = driver.closed()
    assert isinstance(error, NetworkError)
    assert not isinstance(error, SecurityError)
    assert "could not be reached: Connection refused" in str(error)


def test_a_name_that_nobody_has(drive: Any) -> None:
    driver = drive()
    driver.connect("nowhere.invalid", 9092)
    assert "'nowhere.invalid' could not be looked up" in str(driver.closed())
    driver.connect("x" * 63 + ".invalid", 9092)
    assert "could not be looked up" in str(driver.closed())


def test_every_address_of_a_name_is_tried(drive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(peer: Peer) -> None:
        peer.open()
        peer.wait_for_close()

    with FakeBroker(script) as broker, socket.create_server(("127.0.0.1", 0)) as taken:
        refusing = taken.getsockname()[1]
        taken.close()
        rows = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
            for port in (refusing, refusing, broker.port)
        ]
        real = socket.getaddrinfo

        def look_up(host: str, *args: Any, **options: Any) -> Any:
            if host != "three.example":
                return real(host, *args, **options)
            if options["flags"]:
                raise socket.gaierror(socket.EAI_NONAME, "not a number")
            return rows

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        driver = drive()
        driver.ready("three.example", 1)
        driver.poller.close()


def test_a_silent_broker_is_given_up_after_the_time_for_setup(drive: Any) -> None:
    with FakeBroker(Peer.wait_for_close) as broker:
        driver = drive(socket_connection_setup_timeout_ms=1000)
        driver.connect("127.0.0.1", broker.port)
        assert "API versions and authentication was not done within 1 s" in str(driver.closed())


def test_several_connections_at_once_and_one_that_dies(drive: Any) -> None:
    def echo(peer: Peer) -> None:
        peer.open()
        while True:
            request = peer.receive()
            peer.answer(request, b"echo")

    with FakeBroker(echo) as good, FakeBroker(Peer.open) as dying:
        driver = drive()
        connections = [driver.connect("127.0.0.1", good.port), driver.connect("127.0.0.1", dying.port)]
        events = [driver.next() for _ in range(3)]
        assert {type(event) for event in events} == {Ready, Closed}
        assert [event.connection for event in events if isinstance(event, Closed)] == [connections[1]]
        for correlation in range(100):
            connections[0].send(heartbeat(correlation))
        assert [driver.frame()[:4] for _ in range(100)] == [struct.pack(">i", each) for each in range(100)]
        # A new socket may get the file descriptor of the closed one.
        again = driver.connect("127.0.0.1", dying.port)
        assert driver.next() == Ready(again)
        assert "closed the connection" in str(driver.closed())
        connections[0].send(heartbeat(1))
        driver.frame()
        driver.poller.close()


def test_wake_from_another_thread(drive: Any) -> None:
    driver = drive()
    thread = threading.Thread(target=driver.poller.wake)
    thread.start()
    assert driver.poller.poll(20) == []
    thread.join()
    for _ in range(100_000):  # more than the pipe can hold
        driver.poller.wake()
    assert driver.poller.poll(20) == []
    assert driver.poller.poll(0) == []
    driver.poller.close()
    driver.poller.close()
    driver.poller.wake()
    with pytest.raises(StateError, match="closed"):
        driver.poller.poll(0)
    with pytest.raises(StateError, match="closed"):
        driver.connect("127.0.0.1", 1)


def test_only_whole_frames_can_be_sent(drive: Any) -> None:
    def script(peer: Peer) -> None:
        peer.open()
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive()
        connection = driver.ready("127.0.0.1", broker.port)
        for data in (b"", heartbeat(1)[:-1], heartbeat(1) + b"x", heartbeat(1)[4:], struct.pack(">i", 4) + bytes(4)):
            with pytest.raises(ProtocolError, match="not one frame"):
                connection.send(data)
        driver.poller.close()


@pytest.mark.parametrize("encrypted", [False, True])
def test_large_frames_both_ways(drive: Any, pems: Certificates, encrypted: bool) -> None:
    """A TLS layer reads more from the socket than it returns. A selector does not see the rest."""
    size = 20_000_000

    def script(peer: Peer) -> None:
        peer.open()
        request = peer.receive()
        assert len(request.body) == size
        peer.answer(request, request.body)
        for _ in range(1000):
            request = peer.receive()
            peer.answer(request, b"small")
        peer.wait_for_close()

    tls = {"security_protocol": "ssl", "ssl_ca_location": str(pems.ca)} if encrypted else {}
    server = server_tls(pems.server, pems.server_key) if encrypted else None
    with FakeBroker(script, server) as broker:
        driver = drive(**tls)
        connection = driver.ready("127.0.0.1", broker.port)
        body = struct.pack(">hhih", METADATA, 0, 1, 1) + b"c" + bytes(size)
        connection.send(struct.pack(">i", len(body)) + body)
        assert driver.frame() == struct.pack(">i", 1) + bytes(size)
        for correlation in range(1000):
            connection.send(heartbeat(correlation))
        for _ in range(1000):
            driver.frame()
        driver.poller.close()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        pytest.param({"ssl_ca_location": "stranger"}, "certificate .* not accepted", id="unknown authority"),
        pytest.param({}, "certificate .* not accepted", id="the system's authorities"),
        pytest.param({"ssl_ca_location": "ca", "ssl_crl_location": "revoked"}, "revoked", id="revoked"),
    ],
)
def test_certificates_that_are_refused(
    drive: Any, pems: Certificates, settings: dict[str, str], complaint: str
) -> None:
    files = {name: str(getattr(pems, file)) for name, file in settings.items()}
    with FakeBroker(Peer.open, server_tls(pems.server, pems.server_key)) as broker:
        driver = drive(security_protocol="SSL", **files)
        driver.connect("localhost", broker.port)
        error = driver.closed()
        assert isinstance(error, SecurityError)
        with pytest.raises(SecurityError, match=complaint):
            raise error


def test_the_host_name_is_checked_unless_told_otherwise(drive: Any, pems: Certificates) -> None:
    def script(peer: Peer) -> None:
        peer.open()
        peer.wait_for_close()

    settings = {"security_protocol": "ssl", "ssl_ca_location": str(pems.ca)}
    with FakeBroker(script, server_tls(pems.misnamed, pems.misnamed_key)) as broker:
        driver = drive(**settings)
        driver.connect("localhost", broker.port)
        error = driver.closed()
        assert isinstance(error, SecurityError)
        assert "ssl.endpoint.identification.algorithm" in str(error)
        unchecked = drive(**settings, ssl_endpoint_identification_algorithm="none")
        unchecked.ready("localhost", broker.port)
        unchecked.poller.close()
        # With verification switched off, any certificate is accepted.
        careless = drive(security_protocol="ssl", enable_ssl_certificate_verification=False)
        careless.ready("localhost", broker.port)
        careless.poller.close()


def test_a_revocation_list_without_the_broker(drive: Any, pems: Certificates) -> None:
    def script(peer: Peer) -> None:
        peer.open()
        peer.wait_for_close()

    with FakeBroker(script, server_tls(pems.server, pems.server_key)) as broker:
        driver = drive(security_protocol="ssl", ssl_ca_location=str(pems.ca), ssl_crl_location=str(pems.unrevoked))
        driver.ready("localhost", broker.port)
        driver.poller.close()


def test_tls_where_none_is_spoken(drive: Any, pems: Certificates) -> None:
    with FakeBroker(lambda peer: peer.socket.close()) as broker:
        driver = drive(security_protocol="ssl", ssl_ca_location=str(pems.ca))
        driver.connect("127.0.0.1", broker.port)
        assert "does security.protocol fit" in str(driver.closed())
    with FakeBroker(lambda peer: peer.send(b"\0\0\0\4abcd")) as broker:
        driver.connect("127.0.0.1", broker.port)
        error = driver.closed()
        assert isinstance(error, NetworkError)
        assert "TLS with" in str(error) or "does security.protocol fit" in str(error)


def test_the_poller_reads_the_files_once(drive: Any, pems: Certificates, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ssl\.ca\.location cannot be used"):
        drive(security_protocol="ssl", ssl_ca_location=str(tmp_path / "missing.pem"))


def test_a_connection_names_itself_without_secrets(drive: Any) -> None:
    driver = drive(security_protocol="sasl_plaintext", sasl_mechanism="PLAIN", sasl_username="u", sasl_password="hush")
    with FakeBroker(Peer.wait_for_close) as broker:
        connection = driver.connect("127.0.0.1", broker.port)
        assert repr(connection) == f"<Connection to 127.0.0.1:{broker.port}: TCP connection>"
        assert isinstance(connection, Connection)
        assert "hush" not in repr(driver.poller.config)
        driver.poller.close()


def test_connections_that_are_closed_while_they_open(drive: Any) -> None:
    driver = drive()
    with FakeBroker(Peer.wait_for_close) as broker:
        connection = driver.connect("127.0.0.1", broker.port)
        while connection.phase.name != "OPENING":
            assert driver.poller.poll(0.2) == []
        connection.close()
        connection.close()
        assert driver.poller.poll(0) == []
        named = driver.connect("localhost", broker.port)
        named.close()
        assert driver.poller.poll(0.05) == []


def test_frames_of_the_edge_go_through(drive: Any) -> None:
    """`send` accepts the frames that `_core` encodes, and `_core` decodes the frames in `Received`."""

    def script(peer: Peer) -> None:
        peer.open()
        peer.open()
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive()
        driver.ready("127.0.0.1", broker.port).send(_core.encode_api_versions(3, 77, "c", "software", "1"))
        assert _core.decode_api_versions(3, 77, driver.frame())["api_keys"] == fake_broker.VERSIONS
        driver.poller.close()
