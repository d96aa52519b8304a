"""Amazon's signer for MSK, as docs/connections.md gives it to each client, with credentials of an issuer (STS)."""

from __future__ import annotations

import asyncio
import base64
import http.server
import threading
import urllib.parse
from typing import TYPE_CHECKING, Any

import aiokafka.abc
import kafka.net.sasl.oauth
import pytest

from kafka_assignors.clients.aiokafka.config import ConsumerConfig as AiokafkaConfig
from kafka_assignors.clients.aiokafka.config import signature
from kafka_assignors.clients.confluent.config import ConsumerConfig as ConfluentConfig
from kafka_assignors.clients.kafka_python.config import ConsumerConfig as KafkaPythonConfig
from kafka_assignors.net import Poller, Ready
from kafka_assignors.net.config import Address
from support import fake_broker
from support.fake_broker import FakeBroker, Peer, sasl_authenticate, sasl_handshake
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.net.config import ClientConfig

pytestmark = pytest.mark.needs("frameworks")

REGION, ROLE = "eu-west-1", "arn:aws:iam::123456789012:role/reader"
KEY, SECRET, SESSION = "ASIAFAKE", "fake-secret", "fake-session-token"
ROLE_GRANTED = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{SESSION}</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


@pytest.fixture
def granted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Runs an issuer of credentials for roles; yields the bodies of the requests that it receives."""
    asked: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ROLE_GRANTED.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in (
        ("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{server.server_port}"),
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "AKIAFAKE"),
        ("AWS_SECRET_ACCESS_KEY", "fake"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_CONFIG_FILE", "/nowhere"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"),
    ):
        monkeypatch.setenv(name, value)
    yield asked
    server.shutdown()
    server.server_close()


def signed() -> tuple[str, float]:
    """A token, and its expiry in seconds since 1970."""
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

    token, milliseconds = MSKAuthTokenProvider.generate_auth_token_from_role_arn(REGION, ROLE)
    return token, milliseconds / 1000


class OfKafkaPython(kafka.net.sasl.oauth.AbstractTokenProvider):  # type: ignore[misc]
    def token(self) -> str:
        return signed()[0]


class OfAiokafka(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return (await asyncio.to_thread(signed))[0]


def on_confluent(loop: asyncio.AbstractEventLoop) -> ClientConfig:
    given = {"bootstrap.servers": "a:1", "group.id": "g", "security.protocol": "sasl_plaintext"}
    return ConfluentConfig.read({**given, "sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: signed()}).client


SETTINGS = {"group_id": "g", "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}


def on_kafka_python(loop: asyncio.AbstractEventLoop) -> ClientConfig:
    config = KafkaPythonConfig.read({**SETTINGS, "sasl_oauth_token_provider": OfKafkaPython()})
    assert config is not None
    return config.client


def on_aiokafka(loop: asyncio.AbstractEventLoop) -> ClientConfig:
    bound = signature().bind(**SETTINGS, sasl_oauth_token_provider=OfAiokafka())
    bound.apply_defaults()
    given = {name: value for name, value in bound.arguments.items() if name != "topics"}
    return AiokafkaConfig.read(given, loop).client


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A running event loop, like the application's."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


@pytest.mark.parametrize("config_of", [on_confluent, on_kafka_python, on_aiokafka])
def test_the_membership_presents_its_token(config_of: Any, granted: list[str], loop: asyncio.AbstractEventLoop) -> None:
    sent: list[bytes] = []

    def script(peer: Peer) -> None:
        peer.open()
        peer.answer(peer.receive(), sasl_handshake(0, "OAUTHBEARER"))
        request = peer.receive()
        sent.append(fake_broker.auth_bytes(request))
        peer.answer(request, sasl_authenticate())
        peer.wait_for_close()

    with FakeBroker(script) as broker, Poller(config_of(loop)) as poller:
        connection = poller.connect(Address("127.0.0.1", broker.port))
        events: list[Any] = []

        def accepted() -> bool:
            events.extend(poller.poll(0.1))
            return bool(events)

        wait_until(accepted, "the broker has accepted it")
        assert events == [Ready(connection)]
    assert [urllib.parse.parse_qs(each)["RoleArn"] for each in granted] == [[ROLE]]
    (message,) = sent
    token = message.partition(b"auth=Bearer ")[2].partition(b"\x01")[0]
    url = urllib.parse.urlsplit(base64.urlsafe_b64decode(token + b"=" * (-len(token) % 4)).decode())
    query = urllib.parse.parse_qs(url.query)
    assert url.netloc == f"kafka.{REGION}.amazonaws.com"
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"][0].startswith(f"{KEY}/")
    assert query["X-Amz-Security-Token"] == [SESSION]
    assert len(query["X-Amz-Signature"][0]) == 64
