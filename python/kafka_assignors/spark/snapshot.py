"""Facts that the offsets topic does not have, read from a live cluster: partition counts, topic ids, first and last
offsets.

A snapshot is one Parquet file in each of the tables `topic_partitions` and `offsets`, written under another name and
renamed when it is complete. It needs no Spark.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_assignors.cluster.topic_offsets import read_topic_offsets
from kafka_assignors.errors import MissingDependencyError, OptionError, TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kafka_assignors.cluster.topic_offsets import ClusterOffsets

__all__ = ["snapshot", "snapshots", "topic_names"]


def snapshot(
    config: Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    topics: Iterable[str] | None = None,
    cluster: str | None = None,
    isolation_level: str = "read_uncommitted",
    timeout: float = 30.0,
) -> ClusterOffsets:
    """Takes a snapshot of topics and appends it to the tables `topic_partitions` and `offsets` below a folder.

    Args:
        config: settings of librdkafka, `bootstrap.servers` among them.
        out: the folder, on this machine.
        topics: the topics; all but Kafka's internal ones by default.
        cluster: the value of the column `cluster`; the cluster's id by default.
        isolation_level: with `"read_committed"` the last offset is the start of the first open transaction.
        timeout: how many seconds the cluster may take.

    Returns:
        The snapshot.

    Raises:
        LagError: the cluster cannot be read.
        TableError: the folder cannot be written.
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
        MissingDependencyError: pyarrow is not installed.
    """
    pa = _pyarrow()
    found = read_topic_offsets(config, topics, isolation_level=isolation_level, timeout=timeout)
    name = found.cluster if cluster is None else cluster
    counts = [(name, each.name, found.ts, len(each.end), each.topic_id) for each in found.topics]
    offsets = [
        (name, each.name, number, found.ts, begin, end)
        for each in found.topics
        for number, (begin, end) in enumerate(zip(each.begin, each.end, strict=True))
    ]
    text, short, long = pa.string(), pa.int32(), pa.int64()
    of_counts = pa.schema(
        {"cluster": text, "topic": text, "ts": long, "partition_count": short, "topic_id": text}.items()
    )
    of_offsets = pa.schema(
        {"cluster": text, "topic": text, "partition": short, "ts": long, "begin": long, "end": long}.items()
    )
    try:
        _append(pa, Path(out, "topic_partitions"), found.ts, of_counts, counts)
        _append(pa, Path(out, "offsets"), found.ts, of_offsets, offsets)
    except OSError as error:
        raise TableError(f"{out} cannot be written ({error}); give another folder") from error
    return found


def snapshots(
    config: Mapping[str, Any], out: str | os.PathLike[str], *, every: float, count: int | None = None, **options: Any
) -> Iterator[ClusterOffsets]:
    """Snapshots one after the other; each is yielded after it was written.

    Args:
        config: as for `snapshot`.
        out: as for `snapshot`.
        every: seconds from the start of one to the start of the next.
        count: how many; None takes snapshots without end.
        options: as for `snapshot`.

    Raises:
        OptionError: `every` or `count` is not positive.
        As `snapshot`.
    """
    if not every > 0:
        raise OptionError(f"every is {every!r}; give a positive number of seconds")
    if count is not None and count < 1:
        raise OptionError(f"count is {count}; give at least 1")
    taken = 0
    while True:
        start = time.monotonic()
        yield snapshot(config, out, **options)
        taken += 1
        if taken == count:
            return
        time.sleep(max(0.0, start + every - time.monotonic()))


def topic_names(path: str | os.PathLike[str]) -> dict[str, str]:
    """The names of topic ids, from the table `topic_partitions` below a folder of snapshots; empty without a snapshot.

    Raises:
        TableError: the table cannot be read.
        MissingDependencyError: pyarrow is not installed.
    """
    pa = _pyarrow()
    import pyarrow.parquet

    names: dict[str, str] = {}
    try:
        for file in sorted(Path(path, "topic_partitions").glob("*.parquet")):
            table = pyarrow.parquet.read_table(file, columns=["topic_id", "topic"])
            pairs = zip(*(table.column(name).to_pylist() for name in ("topic_id", "topic")), strict=True)
            names.update((topic_id, topic) for topic_id, topic in pairs if topic_id)
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"the snapshots in {path} cannot be read ({error}); give the --out of `snapshot`") from error
    return names


def _append(pa: Any, folder: Path, ts: int, columns: Any, rows: list[tuple[Any, ...]]) -> None:
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    lists = list(zip(*rows, strict=True)) or [()] * len(columns)
    table = pa.table(
        [pa.array(values, field.type) for values, field in zip(lists, columns, strict=True)], schema=columns
    )
    # Readers of the folder skip names that begin with an underscore.
    unfinished = folder / f"_{ts}-{os.getpid()}.unfinished"
    pyarrow.parquet.write_table(table, unfinished)
    unfinished.rename(folder / f"{ts}-{os.getpid()}.parquet")


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingDependencyError("snapshots need pyarrow: pip install kafka-assignors[spark]") from error
    return pyarrow
