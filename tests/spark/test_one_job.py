"""The one Spark job of `make test`, as a user starts it: from tables to tables, with Java and without Maven."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow
import pyarrow.parquet
import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

EVENTS = pyarrow.schema(
    {
        "cluster": pyarrow.string(),
        "group_id": pyarrow.string(),
        "seq": pyarrow.int32(),
        "ts": pyarrow.int64(),
        "kind": pyarrow.string(),
        "member_id": pyarrow.string(),
        "topics": pyarrow.list_(pyarrow.string()),
    }
)
TOPICS = pyarrow.schema(
    {
        "cluster": pyarrow.string(),
        "topic": pyarrow.string(),
        "ts": pyarrow.int64(),
        "partition_count": pyarrow.int32(),
    }
)


@pytest.mark.first
def test_a_replay_says_what_each_strategy_moves(tmp_path: Path) -> None:
    """Two groups on eight partitions: y joins x, then x leaves. Each time sticky moves the four that have to move."""
    steps = [(1, "join", "x"), (2, "join", "y"), (3, "leave", "x")]
    events = [
        dict(zip(EVENTS.names, ("c", group, seq, 10 * seq, kind, member, ["t"]), strict=True))
        for group in ("a", "b")
        for seq, kind, member in steps
    ]
    topics = [{"cluster": "c", "topic": "t", "ts": 0, "partition_count": 8}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(events, EVENTS), tmp_path / "events.parquet")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(topics, TOPICS), tmp_path / "topics.parquet")
    command = [sys.executable, "-m", "kafka_assignors.cli", "spark", "replay", "--master", "local[1]"]
    tables = ["--events", "events.parquet", "--topics", "topics.parquet", "--out", "out"]
    done = subprocess.run(
        [*command, *tables, "--strategy", "sticky", "--strategy", "roundrobin"],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = pyarrow.parquet.read_table(tmp_path / "out" / "strategy_summary").to_pylist()
    moved = {row["strategy"]: row["moved_total"] for row in rows}
    assert moved["sticky"] == 2 * (4 + 4)
    assert moved["roundrobin"] >= moved["sticky"]
