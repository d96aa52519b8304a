"""The SASL mechanisms, message by message, and over connections to brokers that break the protocol."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.errors import SecurityError
from kafka_assignors.net import ClientConfig, Ready, sasl
from kafka_assignors.net import connection as connections
from kafka_assignors.net.sasl import Authenticator, Job
from support import fake_broker
from support.fake_broker import FakeBroker, Peer, Request, sasl_authenticate, sasl_handshake

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.net_driver import Driver

# RFC 7677, section 3: the user is "user", the password "pencil".
NONCE = "rOprNGfwEbeRWgbNEkqO"
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def authenticator(mechanism: str = "OAUTHBEARER", **settings: Any) -> Authenticator:
    names = {name.replace("_", ".") if name != "oauth_cb" else name: value for name, value in settings.items()}
    base = {"bootstrap.servers": "b", "security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism}
    config = ClientConfig.from_confluent(base | names)
    assert config.sasl is not None
    return Authenticator(config.sasl)


def salted(script: sasl.Script, server_first: bytes) -> bytes:
    """Continues a SCRAM script to its next message. The rounds of the hash are a `Job`, since they take long."""
    step = script.send(server_first)
    assert isinstance(step, Job)
    message = script.send(step.run())
    assert isinstance(message, bytes)
    return message


def test_scram_as_in_its_rfc() -> None:
    script = sasl.scram("sha256", "user", "pencil", NONCE, 4096)
    assert next(script) == CLIENT_FIRST
    assert salted(script, SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        script.send(SERVER_FINAL)


def test_scram_escapes_names() -> None:
    assert next(sasl.scram("sha256", "a,b=c", "p", "x", 4096)) == b"n,,n=a=2Cb=3Dc,r=x"


@pytest.mark.parametrize(
    ("server_first", "complaint"),
    [
        (SERVER_FIRST.replace(b"r=rO", b"r=xO"), "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "rounds"),
        (SERVER_FIRST.replace(b"i=4096", b"i=100001"), "from 4,096 to 100,000 are accepted .sasl.scram.max.iterations"),
        (SERVER_FIRST + b",x=" + b"y" * 8_192, "at most 8,192 are read"),
        (SERVER_FIRST.replace(b"i=4096", b"i=" + b"9" * 5000), "rounds"),
        (SERVER_FIRST.replace(b"i=4096", b"i=-4096"), "rounds"),
        (SERVER_FIRST.replace(b"i=4096", b"i="), "rounds"),
        (SERVER_FIRST.replace(b",i=4096", b""), "rounds"),
        (SERVER_FIRST.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s=*"), "salt"),
        (SERVER_FIRST.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s="), "salt"),
        (b"\xff\xfe", "UTF-8"),
        (b"", "salt"),
    ],
)
def test_scram_with_a_broker_that_does_not_play_by_the_rules(server_first: bytes, complaint: str) -> None:
    script = sasl.scram("sha256", "user", "pencil", NONCE, 100_000)
    next(script)
    with pytest.raises(SecurityError, match=complaint):
        script.send(server_first)


@pytest.mark.parametrize(
    ("server_final", "complaint"),
    [
        (SERVER_FINAL.replace(b"6rri", b"7rri"), "does not know the SCRAM password"),
        (b"v=", "signature"),
        (b"", "signature"),
        (b"e=invalid-proof", "invalid-proof"),
        (b"e=no user pencil", "not shown"),
        (b"\xff", "UTF-8"),
    ],
)
def test_scram_with_a_broker_that_does_not_know_the_password(server_final: bytes, complaint: str) -> None:
    script = sasl.scram("sha256", "user", "pencil", NONCE, 100_000)
    next(script)
    salted(script, SERVER_FIRST)
    with pytest.raises(SecurityError, match=complaint):
        script.send(server_final)


def test_plain() -> None:
    assert list(sasl.plain("ä", "p=,")) == [b"\0\xc3\xa4\0p=,"]
    with pytest.raises(SecurityError, match="NUL"):
        next(sasl.plain("a", "b\0c"))


def test_each_scram_nonce_is_new() -> None:
    made = authenticator("SCRAM-SHA-512", sasl_username="u", sasl_password="p")
    assert len({next(made.script()) for _ in range(10)}) == 10


def run_job(script: sasl.Script) -> bytes:
    step = next(script)
    assert isinstance(step, Job)
    answer = script.send(step.run())
    assert isinstance(answer, bytes)
    return answer


def test_oauthbearer_with_extensions() -> None:
    asked = []

    def callback(config: str) -> tuple[Any, ...]:
        asked.append(config)
        return "the.token", time.time() + 100, "principal", {"logicalCluster": "lkc-1", "pool": "p 2"}

    made = authenticator(oauth_cb=callback, sasl_oauthbearer_config="scope=all")
    expected = b"n,,\x01auth=Bearer the.token\x01logicalCluster=lkc-1\x01pool=p 2\x01\x01"
    assert run_job(made.script()) == expected
    # The token is still valid, so that the callback is not called again.
    assert run_job(made.script()) == expected
    assert asked == ["scope=all"]


def test_oauthbearer_asks_again_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    tokens = iter(["first", "second", "third"])
    made = authenticator(oauth_cb=lambda _: (next(tokens), now + 100))
    assert b"first" in run_job(made.script())
    now += 79
    assert b"first" in run_job(made.script())
    now += 1
    assert b"second" in run_job(made.script())
    # A token that the broker has refused is not sent again.
    script = made.script()
    run_job(script)
    assert script.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SecurityError, match="invalid_token"):
        script.send(b"")
    assert b"third" in run_job(made.script())


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "must return"),
        (("token",), "must return"),
        (["token", 2e9], "must return"),
        (("token", 2e9, "p", {}, "more"), "must return"),
        (("", 4e9), "token that is not"),
        ((b"token", 4e9), "token that is not"),
        (("to\x01ken", 4e9), "token that is not"),
        (("token\n", 4e9), "token that is not"),
        (("token", "soon"), "no expiry"),
        (("token", True), "no expiry"),
        (("token", float("nan")), "no expiry"),
        (("token", float("inf")), "no expiry"),
        (("token", 5.0), "expired"),
        (("token", 4e9, "p", ["x"]), "extensions of type list"),
        (("token", 4e9, "p", {"auth": "x"}), "named 'auth'"),
        (("token", 4e9, "p", {"a1": "x"}), "named 'a1'"),
        (("token", 4e9, "p", {"a": "\x01auth=Bearer other"}), "odd value for extension 'a'"),
    ],
)
def test_oauthbearer_checks_what_the_function_returns(answer: Any, complaint: str) -> None:
    with pytest.raises(SecurityError, match=complaint) as caught:
        run_job(authenticator(oauth_cb=lambda _: answer).script())
    assert "other" not in str(caught.value)


def test_a_failing_oauth_cb() -> None:
    def fail(_: str) -> tuple[Any, ...]:
        raise OSError("the issuer is down")

    with pytest.raises(SecurityError, match="oauth_cb failed with OSError") as caught:
        run_job(authenticator(oauth_cb=fail).script())
    assert isinstance(caught.value.__cause__, OSError)


# Over connections.

PLAIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "alice",
    "sasl_password": "hush-hush",
}


def handshake(peer: Peer, *mechanisms: str) -> Request:
    """Reads and answers the requests before the mechanism's first message."""
    peer.open()
    request = peer.receive()
    assert request.api == fake_broker.SASL_HANDSHAKE
    peer.answer(request, sasl_handshake(0, *mechanisms))
    return peer.receive()


def test_plain_over_a_connection(drive: Callable[..., Driver]) -> None:
    messages = []

    def script(peer: Peer) -> None:
        request = handshake(peer, "PLAIN")
        messages.append(fake_broker.auth_bytes(request))
        peer.answer(request, sasl_authenticate())
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive(**PLAIN)
        driver.ready("127.0.0.1", broker.port)
        driver.poller.close()
    assert messages == [b"\0alice\0hush-hush"]


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        pytest.param(
            lambda peer: (peer.open(), peer.answer(peer.receive(), sasl_handshake(33, "GSSAPI", "OAUTHBEARER"))),
            "does not accept sasl.mechanism PLAIN; it has GSSAPI, OAUTHBEARER",
            id="unknown mechanism",
        ),
        pytest.param(
            lambda peer: (peer.open(), peer.answer(peer.receive(), sasl_handshake(34))),
            r"refuses SaslHandshake with ILLEGAL_SASL_STATE \(34\)",
            id="no SASL here",
        ),
        pytest.param(
            lambda peer: peer.answer(handshake(peer), sasl_authenticate(b"", 58, "wrong password")),
            r"SASL_AUTHENTICATION_FAILED \(58\): wrong password",
            id="wrong password",
        ),
        pytest.param(
            lambda peer: peer.answer(handshake(peer), sasl_authenticate(b"", 58, "x" * 290 + "not hush-hush, please")),
            "not shown",
            id="repeats the password where the text is cut",
        ),
        pytest.param(
            lambda peer: peer.answer(
                handshake(peer), sasl_authenticate(b"", 58, base64.b64encode(b"\0alice\0hush-hush").decode())
            ),
            "not shown",
            id="repeats the message",
        ),
        pytest.param(
            lambda peer: (peer.open(), peer.answer(peer.receive(), sasl_handshake(33, "hush-hush"))),
            "not shown",
            id="offers the password as a mechanism",
        ),
        pytest.param(
            lambda peer: peer.answer(handshake(peer), sasl_authenticate(b"", 12345)),
            r"an unknown error \(12345\): no reason",
            id="unknown error",
        ),
    ],
)
def test_refusals(drive: Callable[..., Driver], script: Callable[[Peer], None], complaint: str) -> None:
    def then_wait(peer: Peer) -> None:
        script(peer)
        peer.wait_for_close()

    with FakeBroker(then_wait) as broker:
        driver = drive(**PLAIN)
        driver.connect("127.0.0.1", broker.port)
        error = driver.closed()
        assert isinstance(error, SecurityError)
        with pytest.raises(SecurityError, match=complaint):
            raise error
        assert "hush" not in str(error)


def test_a_token_that_a_broker_repeats_is_not_shown() -> None:
    script = authenticator(oauth_cb=lambda _: ("secret.token", time.time() + 60)).script()
    run_job(script)
    script.send(b'{"status": "no token like secret.token"}')
    with pytest.raises(SecurityError, match="not shown"):
        script.send(b"")


def test_the_rounds_a_broker_may_ask_for_are_a_setting() -> None:
    script = authenticator(
        "SCRAM-SHA-256", sasl_username="u", sasl_password="p", sasl_scram_max_iterations=200_000
    ).script()
    first = next(script)
    assert isinstance(first, bytes)
    nonce = first.decode().split("r=")[1]
    assert isinstance(script.send(f"r={nonce}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=200000".encode()), Job)


def test_a_listener_without_sasl(drive: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(fake_broker.VERSIONS, fake_broker.SASL_HANDSHAKE)

    def script(peer: Peer) -> None:
        peer.open()
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive(**PLAIN)
        driver.connect("127.0.0.1", broker.port)
        assert "does not speak SASL" in str(driver.closed())


def scram_server(peer: Peer, request: Request, password: bytes) -> bytes:
    """Answers like a broker whose user has `password`; returns the client's proof."""
    first = fake_broker.auth_bytes(request).decode().removeprefix("n,,")
    nonce = first.split("r=")[1] + "server"
    salt = b"salt"
    said = f"r={nonce},s={base64.b64encode(salt).decode()},i=4096"
    peer.answer(request, sasl_authenticate(said.encode()))
    request = peer.receive()
    final = fake_broker.auth_bytes(request).decode()
    without_proof, _, proof = final.rpartition(",p=")
    salted = hashlib.pbkdf2_hmac("sha512", password, salt, 4096)
    transcript = f"{first},{said},{without_proof}".encode()
    signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), transcript, "sha512")
    peer.answer(request, sasl_authenticate(b"v=" + base64.b64encode(signature)))
    return base64.b64decode(proof)


@pytest.mark.parametrize("password", [b"hush-hush", b"something else"])
def test_a_broker_has_to_know_the_password_too(drive: Callable[..., Driver], password: bytes) -> None:
    def script(peer: Peer) -> None:
        scram_server(peer, handshake(peer, "SCRAM-SHA-512"), password)
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive(**PLAIN | {"sasl_mechanism": "SCRAM-SHA-512"})
        connection = driver.connect("127.0.0.1", broker.port)
        if password == b"hush-hush":
            assert driver.next() == Ready(connection)
            driver.poller.close()
        else:
            assert "not the broker it claims to be" in str(driver.closed())


def test_reauthentication_lets_requests_wait(drive: Callable[..., Driver]) -> None:
    """KIP-368: requests in flight are answered before the new authentication, and new requests are sent after it."""
    seen: list[int] = []
    goes_on = threading.Event()

    def script(peer: Peer) -> None:
        peer.answer(handshake(peer, "PLAIN"), sasl_authenticate(lifetime=600_000))
        parked = peer.receive()
        seen.append(parked.correlation)
        # The client authenticates only after this answer, although the renewal is due before.
        goes_on.wait(20)
        peer.answer(parked, b"late")
        request = peer.receive()
        seen.append(request.api)
        peer.answer(request, sasl_handshake(0, "PLAIN"))
        request = peer.receive()
        seen.append(request.api)
        peer.answer(request, sasl_authenticate(lifetime=0))
        request = peer.receive()
        seen.append(request.correlation)
        peer.answer(request, b"after")
        peer.wait_for_close()

    def request(correlation: int) -> bytes:
        frame = fake_broker.frame(correlation, b"")  # the test reads only the correlation id
        return (len(frame) + 4).to_bytes(4, "big") + b"\0\x0c\0\0" + frame[4:8] + b"\0\1c" + b"x"

    with FakeBroker(script) as broker:
        driver = drive(**PLAIN)
        connection = driver.ready("127.0.0.1", broker.port)
        connection.send(request(1))
        while not seen:
            assert driver.poller.poll(0.02) == []
        connection._renew_at = 0.0
        for _ in range(3):
            assert driver.poller.poll(0.02) == []
        connection.send(request(2))
        assert driver.poller.poll(0.02) == []
        assert connection.in_flight == 2
        goes_on.set()
        assert driver.frame()[4:] == b"late"
        assert driver.frame()[4:] == b"after"
        driver.poller.close()
    assert seen == [1, fake_broker.SASL_HANDSHAKE, fake_broker.SASL_AUTHENTICATE, 2]


def test_reauthentication_that_fails_closes(drive: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_SOONEST_RENEWAL", 0.0)

    def script(peer: Peer) -> None:
        peer.answer(handshake(peer, "PLAIN"), sasl_authenticate(lifetime=100))
        peer.answer(peer.receive(), sasl_handshake(0, "PLAIN"))
        peer.answer(peer.receive(), sasl_authenticate(b"", 58, "the account is gone"))
        peer.wait_for_close()

    with FakeBroker(script) as broker:
        driver = drive(**PLAIN)
        driver.ready("127.0.0.1", broker.port)
        error = driver.closed()
        assert isinstance(error, SecurityError)
        assert "the account is gone" in str(error)


def test_a_slow_oauth_cb_does_not_hold_up_other_connections(drive: Callable[..., Driver]) -> None:
    release = threading.Event()

    def callback(_: str) -> tuple[str, float]:
        release.wait(20)
        return "token", time.time() + 100

    def script(peer: Peer) -> None:
        request = handshake(peer, "OAUTHBEARER")
        peer.answer(request, sasl_authenticate())
        peer.wait_for_close()

    with FakeBroker(script) as broker, FakeBroker(lambda peer: peer.socket.close()) as other:
        driver = drive(security_protocol="sasl_plaintext", sasl_mechanism="OAUTHBEARER", oauth_cb=callback)
        slow = driver.connect("127.0.0.1", broker.port)
        driver.connect("127.0.0.1", other.port)
        assert "closed the connection" in str(driver.closed())
        release.set()
        assert driver.next() == Ready(slow)
        driver.poller.close()


def test_new_credentials_count_for_new_connections(drive: Callable[..., Driver]) -> None:
    messages = []

    def script(peer: Peer) -> None:
        request = handshake(peer, "PLAIN")
        messages.append(fake_broker.auth_bytes(request))
        peer.answer(request, sasl_authenticate())

    with FakeBroker(script) as broker:
        driver = drive(**PLAIN)
        credentials = driver.poller.config.sasl
        assert credentials is not None
        assert credentials.credentials is not None
        driver.ready("127.0.0.1", broker.port)
        driver.closed()
        credentials.credentials.replace("bob", "new")
        driver.ready("127.0.0.1", broker.port)
        driver.closed()
    assert messages == [b"\0alice\0hush-hush", b"\0bob\0new"]
