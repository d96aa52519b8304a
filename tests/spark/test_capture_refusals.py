"""The messages of `capture` when it cannot work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner

from kafka_assignors.errors import CaptureError, MissingDependencyError, OptionError, TableError
from kafka_assignors.spark import offsets_source
from kafka_assignors.spark.app import app
from kafka_assignors.spark.capture import capture
from kafka_assignors.spark.captured import captured
from kafka_assignors.spark.decoding import decode
from support import jars
from support.broker import OFFSETS_TOPIC
from support.confluent_group import fill
from support.secured import PASSWORD, USER, SecuredKafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.broker import Kafka

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]


def run(*command: str, **environment: str) -> tuple[int, str]:
    """The exit status of a process, and the last line of its error output."""
    done = subprocess.run(
        [sys.executable, "-P", *command], env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    return done.returncode, (done.stderr.splitlines() or [""])[-1]


@pytest.mark.parametrize("every", [None, 0.5])
def test_silence_about_a_topic_that_holds_records(
    spark: SparkSession, kafka_broker: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float | None
) -> None:
    """Spark's current reader of offsets omits internal topics, without an error."""
    topic = kafka_broker.create_topic(f"silent-{tmp_path.name}-{every}", 1)
    fill(kafka_broker, topic, 1, 1)
    import confluent_kafka

    reader = confluent_kafka.Consumer({"bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": topic})
    reader.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 1)], asynchronous=False)
    reader.close()
    monkeypatch.setattr(offsets_source, "DEPRECATED_OFFSETS", "spark.kafka.assignors.not.the.setting")
    running = capture(spark, {"bootstrap.servers": kafka_broker.bootstrap_servers}, str(tmp_path / "out"), every=every)
    try:
        with pytest.raises(
            CaptureError, match=f"gave nothing of partitions 0.* of {OFFSETS_TOPIC}, which hold records"
        ):
            running.wait() if every is None else running.catch_up()
    finally:
        running.stop()


def test_topics_that_are_not_there(spark: SparkSession, kafka_broker: Kafka, tmp_path: Path) -> None:
    out, there = str(tmp_path / "out"), {"bootstrap.servers": kafka_broker.bootstrap_servers}
    with pytest.raises(
        CaptureError, match=r"topic nowhere of the cluster at .* cannot be read: there is no topic nowhere"
    ):
        capture(spark, there, out, topic="nowhere")
    with pytest.raises(CaptureError, match=r"no broker answers there in time; see bootstrap\.servers"):
        capture(spark, {"bootstrap.servers": "127.0.0.1:1"}, out, timeout=1.0)
    with pytest.raises(CaptureError, match=r"its settings are refused: .*127\.0\.0\.1"):
        capture(spark, {"bootstrap.servers": "127.0.0.1"}, out)
    assert not Path(out).exists()


def test_topics_that_may_not_be_read(spark: SparkSession, tmp_path: Path) -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with SecuredKafka(tmp_path / "kafka", authorizer_class_name=authorizer, super_users="User:ANONYMOUS") as kafka:
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        settings = {
            "bootstrap.servers": kafka.address("SASL_PLAINTEXT"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{login} username="{USER}" password="{PASSWORD}";',
        }

        def allow(operation: Any, kind: Any = ResourceType.TOPIC, name: str = OFFSETS_TOPIC) -> None:
            binding = AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL if kind is ResourceType.TOPIC else ResourcePatternType.PREFIXED,
                f"User:{USER}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for future in kafka.admin.create_acls([binding]).values():
                future.result(15)

        refused = f"its user may not read the topic: allow it READ and DESCRIBE on {OFFSETS_TOPIC}"
        with pytest.raises(CaptureError, match=refused):
            capture(spark, settings, str(tmp_path / "out"))
        allow(AclOperation.DESCRIBE)
        with pytest.raises(CaptureError, match=refused):
            capture(spark, settings, str(tmp_path / "out"))
        wrong = {**settings, "sasl.jaas.config": f'{login} username="{USER}" password="guess";'}
        with pytest.raises(CaptureError, match="does not accept the credentials") as raised:
            capture(spark, wrong, str(tmp_path / "out"))
        assert "guess" not in str(raised.value)
        allow(AclOperation.READ)
        with pytest.raises(CaptureError, match="allow it READ on groups that begin with kafka-assignors-capture"):
            capture(spark, settings, str(tmp_path / "out"), every=None).wait()
        allow(AclOperation.READ, ResourceType.GROUP, "kafka-assignors-capture")
        assert capture(spark, settings, str(tmp_path / "out"), every=None).wait()


@pytest.mark.needs("spark")
def test_a_session_without_the_jars(tmp_path: Path) -> None:
    script = (
        "from kafka_assignors.spark.capture import capture; from kafka_assignors.spark.session import session; "
        f"capture(session(), {{'bootstrap.servers': '127.0.0.1:1'}}, {str(tmp_path)!r})"
    )
    path = str(Path(jars.tool("java")).parent)
    _, last = run("-c", script, PATH=path)
    assert last.startswith("kafka_assignors.errors.ConnectorError: this Spark session lacks the jars")


@pytest.mark.needs("spark")
def test_a_machine_without_java_or_maven(tmp_path: Path) -> None:
    command = ("-m", "kafka_assignors.spark", "capture", "--out", str(tmp_path / "out"), "--bootstrap", "127.0.0.1:1")
    code, last = run(*command, "--jar", str(jars.spark_connector()[0]), PATH="", HOME=str(tmp_path))
    assert (code, last[:48]) == (2, "kafka-assignors: Spark needs Java 17 or newer: i")
    code, last = run(*command, PATH="", HOME=str(tmp_path))
    assert code == 2
    assert "Maven, which fetches them, is not on PATH; install it" in last
    assert f"into {tmp_path}/.cache/kafka-assignors/spark-kafka-" in last


def test_without_pyspark_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "pyspark"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    nothing: Any = None
    calls = (
        lambda: capture(nothing, {}, "out"),
        lambda: captured(nothing, "out", "offset_commits"),
        lambda: decode(nothing, cluster="c"),
    )
    for call in calls:
        with pytest.raises(MissingDependencyError, match=r"pip install kafka-assignors\[spark\]"):
            call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kafka": {}}, "kafka has no 'bootstrap.servers'"),
        (
            {"kafka": {"bootstrap.servers": ["a"]}},
            r"kafka\['bootstrap.servers'\] is list; give settings of a Java consumer",
        ),
        ({"every": 0}, "every is 0; give a positive number"),
        ({"most": -1}, "most is -1; give a positive number"),
        ({"timeout": float("nan")}, "timeout is nan; give a positive number"),
        ({"out": ""}, "out is ''; give a folder"),
    ],
)
def test_options_that_cannot_be(spark: SparkSession, arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"kafka": {"bootstrap.servers": "127.0.0.1:1"}, "out": "nowhere", **arguments}
    with pytest.raises(OptionError, match=message):
        capture(spark, **given)


def test_dumps_of_another_shape(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(b"k", "v", 1)], "key binary, value string, partition int")
    expected = "records: value is string, not binary; has no column offset bigint; has no column timestamp timestamp"
    with pytest.raises(TableError, match=expected):
        decode(frame, cluster="c")
    wrong: Any = [frame]
    with pytest.raises(TableError, match="records is of type list; give a DataFrame"):
        decode(wrong, cluster="c")


def test_settings_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    command = ["snapshot", "--out", str(tmp_path / "out")]

    def refused(*options: str) -> str:
        done = CliRunner().invoke(app, [*command, *options])
        assert done.exit_code == 2
        return done.stderr

    assert "there is no broker; give --bootstrap-server" in refused()
    slip = refused("--bootstrap", "127.0.0.1:1", "-X", "secruity.protocol=SSL")
    assert "'secruity.protocol', which is no setting of a connection; did you mean security.protocol?" in slip
    assert "-X number 1 is not NAME=VALUE" in refused("-X", "secret")
    assert "cannot be read" in refused("--config", str(file))
    said = refused("--config", "sasl.password=secret")
    assert "give one setting as -X NAME=VALUE" in said
    assert "secret" not in said
    file.write_text("# a comment\n\nsasl.password\n")
    assert "line 3 of" in refused("--config", str(file))
    old = refused("--config-file", str(file))
    assert old.startswith("kafka-assignors: --config-file is deprecated; give --config\n")
    assert "line 3 of" in old
    assert "--count is for --every" in refused("--bootstrap", "127.0.0.1:1", "--count", "2")
