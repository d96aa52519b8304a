"""Settings of a connection on a command line: unknown ones, Java's names, and the ways to get a token."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.cli.options import settings_of
from kafka_assignors.errors import OptionError, SecurityError
from kafka_assignors.net import ClientConfig
from kafka_assignors.net.config import CONNECTION, SaslConfig
from kafka_assignors.net.oauth import NAMES, with_token
from kafka_assignors.net.sasl import Authenticator, Job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OAUTH = {"bootstrap.servers": "x", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
PREFIX = "sasl.oauthbearer."


def of(*settings: str) -> dict[str, Any]:
    return settings_of("x", settings, None)


def jwt(**claims: Any) -> str:
    return "e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + ".c2ln"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("foo=bar", "-X has 'foo', which is no setting of a connection; docs/connections.md"),
        ("securty.protocol=ssl", "did you mean security.protocol?"),
        ("group.id=g", "no setting of a connection"),
        ("fo\x1b[2Jo=bar", "-X has 'fo\\x1b[2Jo'"),
    ],
)
def test_what_is_no_setting_is_refused(setting: str, said: str) -> None:
    result = CliRunner().invoke(app, ["describe", "--bootstrap-server", "x", "--group", "g", "-X", setting])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "bar" not in result.stderr


def test_a_clients_own_file_is_taken_and_its_slips_are_not(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("group.id=g\nauto.offset.reset=earliest\nsecurity.protocol=ssl\n")
    assert settings_of("x", None, str(path)) == {"security.protocol": "ssl", "bootstrap.servers": "x"}
    path.write_text("security.protocol=ssl\nsecurity.protcol=sasl_ssl\n")
    with pytest.raises(OptionError, match=r"line 2 of .* has 'security.protcol', .*did you mean security.protocol\?"):
        settings_of("x", None, str(path))


class Watched(dict[str, Any]):
    """A configuration that keeps the names that were read."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
def test_whatever_a_connection_reads_is_a_setting(mechanism: str) -> None:
    values = {"bootstrap.servers": "x", "security.protocol": "sasl_ssl", "sasl.mechanism": mechanism}
    callback = {"oauth_cb": lambda _: ("t", time.time() + 60), "sasl.username": "u", "sasl.password": "p"}
    config = Watched({**values, **callback})
    ClientConfig.from_confluent(config)
    assert len(config.asked) > 20
    assert config.asked - CONNECTION == set()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sasl.jaas.config", "give what stands in it as sasl.username and sasl.password"),
        ("ssl.truststore.location", "give them as ssl.ca.location"),
        ("sasl.login.callback.handler.class", "or an oauth_cb"),
    ],
)
def test_settings_of_javas_clients_are_answered_with_ours(name: str, said: str) -> None:
    secret = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hush";'
    with pytest.raises(OptionError, match=f"{name} is a setting of Java's clients: .*{said}") as failure:
        ClientConfig.from_confluent({"bootstrap.servers": "x", name: secret})
    assert "hush" not in str(failure.value)
    result = CliRunner().invoke(
        app, ["describe", "--bootstrap-server", "x", "--group", "g", "-X", f"{name}={secret}", "--timeout", "5"]
    )
    assert result.exit_code == 2
    assert said in result.stderr
    assert "hush" not in result.stderr


# ---- tokens ----


def token_of(settings: dict[str, Any]) -> tuple[Any, ...]:
    answer: tuple[Any, ...] = settings["oauth_cb"]("")
    return answer


def test_a_token() -> None:
    end = int(time.time()) + 1000
    found = of("sasl.mechanism=OAUTHBEARER", f"{PREFIX}token={jwt(exp=end)}", f"{PREFIX}extensions=a=1, b=2")
    assert set(found) == {"bootstrap.servers", "sasl.mechanism", "oauth_cb"}
    assert token_of(found) == (jwt(exp=end), float(end), "", {"a": "1", "b": "2"})
    opaque = token_of(of("sasl.mechanism=OAUTHBEARER", f"{PREFIX}token=opaque"))
    assert opaque[0] == "opaque"
    assert opaque[1] > time.time()
    with pytest.raises(SecurityError, match=r"the token of sasl.oauthbearer.token has expired"):
        token_of(of("sasl.mechanism=OAUTHBEARER", f"{PREFIX}token={jwt(exp=1)}"))


def test_the_token_that_a_broker_sees_and_what_a_bad_one_says(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first\n")
    config = ClientConfig.from_confluent(with_token({**OAUTH, f"{PREFIX}token.file": str(path)}))
    assert isinstance(config.sasl, SaslConfig)

    def said() -> bytes:
        script = Authenticator(config.sasl).script()  # type: ignore[arg-type]
        job = next(script)
        assert isinstance(job, Job)
        try:
            step = script.send(job.run())
        except StopIteration as done:
            raise AssertionError from done
        assert isinstance(step, bytes)
        return step

    assert b"auth=Bearer first\x01" in said()
    path.write_text("second")
    assert b"auth=Bearer second\x01" in said()
    path.unlink()
    with pytest.raises(SecurityError, match=r"sasl.oauthbearer.token.file .* cannot be read: FileNotFoundError"):
        said()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {f"{PREFIX}token": "t", f"{PREFIX}token.file": "f"},
        {f"{PREFIX}token": "t", f"{PREFIX}method": "oidc"},
    ],
)
def test_there_is_one_way_to_a_token(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"ways to a token; give one of sasl.oauthbearer.token, .*method=oidc with"):
        with_token({**OAUTH, **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({f"{PREFIX}method": "best"}, "give oidc or default"),
        (
            {f"{PREFIX}method": "oidc"},
            "no sasl.oauthbearer.token.endpoint.url and no sasl.oauthbearer.client.id",
        ),
        ({f"{PREFIX}token": "t", f"{PREFIX}extensions": "a"}, "is not a list of NAME=VALUE"),
        (
            {
                f"{PREFIX}method": "oidc",
                f"{PREFIX}token.endpoint.url": "file:///etc/passwd",
                f"{PREFIX}client.id": "i",
                f"{PREFIX}client.secret": "hush",
            },
            "begins with https://",
        ),
    ],
)
def test_settings_of_tokens_that_do_not_do(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said) as failure:
        with_token({**OAUTH, **given})
    assert "hush" not in str(failure.value)


def test_other_mechanisms_and_other_clients_keep_their_settings() -> None:
    plain = {"sasl.mechanism": "PLAIN", "sasl.username": "u"}
    assert with_token(plain) == plain
    theirs = {**OAUTH, f"{PREFIX}method": "oidc"}
    assert with_token(theirs, oidc=False) == theirs
    assert f"{PREFIX}token" in NAMES


class Issuer(BaseHTTPRequestHandler):
    """Gives a token for the correct secret, and keeps the requests."""

    asked: list[tuple[str, bytes]] = []  # noqa: RUF012
    answer: bytes = b""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Issuer.asked.append((self.headers["Authorization"], body))
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/token")
            self.end_headers()
            return
        known = self.headers["Authorization"] == "Basic " + base64.b64encode(b"me:hush").decode()
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(Issuer.answer if known else b'{"error": "hush \x1b[2J"}')

    def do_GET(self) -> None:
        Issuer.asked.append((self.headers["Authorization"], b""))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(Issuer.answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def issuer() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Issuer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Issuer.asked.clear()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    thread.join()
    server.server_close()


def oidc(url: str, **more: str) -> dict[str, Any]:
    named = {f"{PREFIX}{name.replace('_', '.')}": value for name, value in more.items()}
    given = {f"{PREFIX}method": "OIDC", f"{PREFIX}token.endpoint.url": url, f"{PREFIX}client.id": "me"}
    return with_token({**OAUTH, **given, f"{PREFIX}client.secret": "hush", **named})


def test_an_issuer_gives_a_token(issuer: str) -> None:
    Issuer.answer = json.dumps({"access_token": "abc", "expires_in": 100}).encode()
    token, expires, _, _ = token_of(oidc(issuer, scope="kafka read"))
    assert token == "abc"
    assert 50 < expires - time.time() <= 100
    assert Issuer.asked == [
        ("Basic " + base64.b64encode(b"me:hush").decode(), b"grant_type=client_credentials&scope=kafka+read")
    ]


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"access_token": 5}', b'{"expires_in": 5}', b"[" * 100_000, b"\xff"])
def test_an_issuer_that_gives_none(answer: bytes, issuer: str) -> None:
    Issuer.answer = answer
    with pytest.raises(SecurityError, match=r"gives no token: its a") as failure:
        token_of(oidc(issuer))
    assert "hush" not in str(failure.value)


def test_a_secret_does_not_follow_a_redirect(issuer: str) -> None:
    Issuer.answer = json.dumps({"access_token": "abc"}).encode()
    with pytest.raises(SecurityError, match=r"gives no token: it answers with status 302"):
        token_of(oidc(issuer.replace("/token", "/moved")))
    assert len(Issuer.asked) == 1


def test_an_issuer_that_refuses_or_is_not_there(issuer: str) -> None:
    with pytest.raises(SecurityError, match=r"gives no token: it answers with status 401") as failure:
        token_of(oidc(issuer, client_secret="other"))
    assert str(failure.value).isprintable()
    with pytest.raises(SecurityError, match=r"127.0.0.1:1/ gives no token: .*refused"):
        token_of(oidc("http://127.0.0.1:1/"))
