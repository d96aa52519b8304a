"""Snapshots of a live cluster, and the connector's jars."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from kafka_assignors.cluster.topic_offsets import read_topic_offsets
from kafka_assignors.errors import ConnectorError, LagError, OptionError, TableError
from kafka_assignors.spark.app import app
from kafka_assignors.spark.connector import connector_jars, default_cache
from kafka_assignors.spark.snapshot import snapshot, snapshots, topic_names
from support import jars
from support.broker import unique
from support.confluent_group import fill

if TYPE_CHECKING:
    from pathlib import Path

    from support.broker import Kafka


def test_a_snapshot_is_what_the_cluster_says(kafka_broker: Kafka, tmp_path: Path) -> None:
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    one, two = kafka_broker.create_topic(unique("s"), 3), kafka_broker.create_topic(unique("s"), 1)
    fill(kafka_broker, one, 2, 7)
    first = snapshot(settings, tmp_path, topics=[one, two, "nowhere"])
    fill(kafka_broker, two, 1, 2)
    kafka_broker.grow_topic(two, 2)
    taken = list(snapshots(settings, tmp_path, every=0.01, count=2, topics=[one, two], cluster="c"))
    assert first.ts <= taken[0].ts < taken[1].ts
    counts = pyarrow.parquet.read_table(tmp_path / "topic_partitions").to_pylist()
    found = {(row["ts"], row["topic"]): row["partition_count"] for row in counts}
    assert found == {
        (first.ts, one): 3,
        (first.ts, two): 1,
        **{(each.ts, topic): count for each in taken for topic, count in ((one, 3), (two, 2))},
    }
    assert {row["cluster"] for row in counts} == {first.cluster, "c"}
    offsets = pyarrow.parquet.read_table(tmp_path / "offsets").to_pylist()
    last = {(row["topic"], row["partition"]): (row["begin"], row["end"]) for row in offsets if row["ts"] == taken[1].ts}
    assert last == {(one, 0): (0, 7), (one, 1): (0, 7), (one, 2): (0, 0), (two, 0): (0, 2), (two, 1): (0, 0)}
    described = {topic_id: name for topic_id, name in topic_names(tmp_path).items() if name in (one, two)}
    assert sorted(described.values()) == sorted([one, two])
    assert all(len(topic_id) == 22 and not set(topic_id) & set("+/=") for topic_id in described)


def test_all_topics_but_internal_ones(kafka_broker: Kafka, tmp_path: Path) -> None:
    topic = kafka_broker.create_topic(unique("s"), 1)
    done = CliRunner().invoke(
        app,
        [
            "snapshot",
            "--bootstrap",
            kafka_broker.bootstrap_servers,
            "--out",
            str(tmp_path),
            "--every",
            "0.01",
            "--count",
            "2",
        ],
    )
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 2), done.output
    names = set(pyarrow.parquet.read_table(tmp_path / "topic_partitions").column("topic").to_pylist())
    assert topic in names
    assert not any(name.startswith("__") for name in names)


def test_clusters_and_folders_that_cannot_be_used(kafka_broker: Kafka, tmp_path: Path) -> None:
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    with pytest.raises(LagError, match="the offsets of topics could not be read"):
        read_topic_offsets({"bootstrap.servers": "127.0.0.1:1"}, timeout=0.5)
    with pytest.raises(LagError, match="the settings for reading topics are refused"):
        read_topic_offsets({"no.such.setting": "1"})
    with pytest.raises(OptionError, match="timeout is 0"):
        read_topic_offsets(settings, timeout=0)
    with pytest.raises(OptionError, match="every is 0"):
        next(snapshots(settings, tmp_path, every=0))
    with pytest.raises(OptionError, match="count is 0"):
        next(snapshots(settings, tmp_path, every=1, count=0))
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="file cannot be written"):
        snapshot(settings, tmp_path / "file")
    assert topic_names(tmp_path / "none") == {}
    (tmp_path / "topic_partitions").mkdir()
    (tmp_path / "topic_partitions" / "1.parquet").write_text("no Parquet")
    with pytest.raises(TableError, match="cannot be read"):
        topic_names(tmp_path)


@pytest.mark.needs("spark")
def test_the_jars_come_from_maven_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = connector_jars(tmp_path)
    assert sorted(jar.name for jar in found) == sorted(jar.name for jar in jars.spark_connector())
    assert [path.name for path in tmp_path.iterdir()] == [found[0].parent.name]
    monkeypatch.setenv("PATH", "")
    assert connector_jars(tmp_path) == found


def test_jars_that_cannot_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text("#!/bin/sh\necho '[INFO] hm'\necho '[ERROR] no network'\nexit 1\n")
    maven.chmod(maven.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(maven.parent), prepend=os.pathsep)
    monkeypatch.setenv("KAFKA_ASSIGNORS_CACHE", str(tmp_path / "cache"))
    assert default_cache() == tmp_path / "cache"
    with pytest.raises(
        ConnectorError, match=r"Maven could not fetch .*no network.*put spark-sql-kafka-0-10_2.13-4.2.0.jar, "
    ):
        connector_jars()
    assert list((tmp_path / "cache").iterdir()) == []
    # The connector can be installed by hand, as the error says.
    maven.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(ConnectorError, match="Maven could not fetch"):
        connector_jars()
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConnectorError, match="could not be fetched"):
        connector_jars(tmp_path / "taken")
