"""Streams the history of consumer groups from the broker's topic `__consumer_offsets` to Parquet.

The broker compacts the topic to the latest record of each group; the capture's tables keep the earlier ones. Each
micro-batch is written to folders of its own. When all its tables are written, a note marks the batch as complete. After
a crash Spark repeats a batch without a note, and overwrites its folders. So each record is in the tables once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_assignors.errors import CaptureError, OptionError
from kafka_assignors.spark.decoding import counts_of, decode_wide, hand_over_by_count, tables_of
from kafka_assignors.spark.ledger import Ledger
from kafka_assignors.spark.offsets_source import OFFSETS_TOPIC, SourceTopic, check_settings, look_at, refusal, stream
from kafka_assignors.spark.schemas import needs_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Capture", "TopicNames", "capture"]

TopicNames: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""Topic ids, as Kafka prints them, with the topics' names; a function is called for each micro-batch."""

# Seconds between two checks for new notes of complete batches; each check lists a folder.
_POLL = 0.5


def capture(
    spark: SparkSession,
    kafka: Mapping[str, Any],
    out: str,
    *,
    every: float | None = 10.0,
    cluster: str | None = None,
    topic: str = OFFSETS_TOPIC,
    names: TopicNames | None = None,
    clients: bool = False,
    keep_bytes: bool = False,
    most: int | None = None,
    timeout: float = 30.0,
) -> Capture:
    """Starts to stream `__consumer_offsets` to tables, or continues where a capture into the same folder ended.

    The tables are those of `kafka_assignors.spark.decoding.decode`, in Parquet below `out`; `captured` reads them. The
    user needs READ and DESCRIBE on the topic, and READ on groups whose names begin with `kafka-assignors-capture`, with
    which Spark asks for offsets.

    Args:
        spark: a session with the connector's jars: `session(jars=connector_jars())`.
        kafka: settings of a Java consumer, `bootstrap.servers` among them.
        out: the folder for tables, checkpoint and notes, on any file system of this Spark; one for each topic.
        every: seconds between micro-batches; None reads the present records and ends.
        cluster: the value of the column `cluster`; the cluster's id by default.
        topic: the topic: Kafka's own, or a copy of it.
        names: names for the topic ids in records of KIP-848 groups.
        clients: fill `client_id` and `client_host` of `membership_events`.
        keep_bytes: fill `key` and `value` of `rejected_records` for records that cannot be read.
        most: the approximate limit of records in a micro-batch; no limit by default.
        timeout: how many seconds the cluster may take to describe the topic.

    Raises:
        CaptureError: the topic does not exist, may not be read, or is not the one that `out` holds; or no broker
            answers.
        ConnectorError: the session lacks the connector's jars.
        OptionError: an option has a value that cannot be used.
        MissingDependencyError: PySpark is not installed.
    """
    try:
        from pyspark.errors import PySparkException
    except ImportError as error:
        raise needs_pyspark() from error
    settings = check_settings(kafka)
    for option, value in (("every", every), ("timeout", timeout), ("most", most)):
        if value is not None and not value > 0:
            raise OptionError(f"{option} is {value!r}; give a positive number")
    if not isinstance(out, str) or not out:
        raise OptionError(f"out is {out!r}; give a folder")
    # A session of its own: the setting that makes Spark read an internal topic must not reach other queries.
    own = spark.newSession()
    hand_over_by_count(own)
    found = look_at(own, settings, topic, timeout)
    ledger = Ledger(own, out)
    ledger.open(found.cluster, topic, found.topic_id)
    name = found.cluster if cluster is None else cluster
    parallelism = own.sparkContext.defaultParallelism

    def write(batch: DataFrame, batch_id: int) -> None:
        if ledger.finished(batch_id):
            # The tables of this batch are complete. To write them again could lose records: the topic may have been
            # compacted meanwhile.
            return
        known = names() if callable(names) else names
        # Fewer tasks than partitions: a task costs more than the reading of a partition. `coalesce` keeps the order
        # within a partition.
        wide = decode_wide(batch.coalesce(parallelism), names=known, clients=clients, keep_bytes=keep_bytes)
        ledger.finish(batch_id, _write(wide, name, ledger.path, batch_id))

    failures: list[Exception] = []

    def write_or_tell(batch: DataFrame, batch_id: int) -> None:
        # Java returns an exception of this function as text only, and `_failure` needs the exception.
        try:
            write(batch, batch_id)
        except Exception as error:
            failures.append(error)
            raise

    writer = (
        stream(own, settings, found, most)
        .writeStream.foreachBatch(write_or_tell)
        .option("checkpointLocation", ledger.checkpoint)
        .queryName(f"capture of {topic}")
    )
    trigger: dict[str, Any] = {"availableNow": True} if every is None else {"processingTime": f"{every} seconds"}
    try:
        query = writer.trigger(**trigger).start()
    except PySparkException as error:
        raise CaptureError(f"the capture into {out} cannot start: {str(error).splitlines()[0]}") from error
    return Capture(
        query, ledger, found, lambda: look_at(own, settings, topic, timeout), settings["bootstrap.servers"], failures
    )


def _write(wide: DataFrame, cluster: str, out: str, batch_id: int) -> dict[str, Any]:
    """Writes all tables of a batch; returns the numbers of their rows, and of rejected records by reason."""
    from pyspark import StorageLevel

    wide = wide.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        rows, tables = counts_of(wide), tables_of(wide, cluster)
        for table, frame in tables.items():
            # The first batch writes every table, also an empty one, so that none is missing later.
            if rows[table] or batch_id == 0:
                frame.write.mode("overwrite").parquet(f"{out}/{table}/batch_id={batch_id}")
        rejected = tables["rejected_records"].groupBy("reason").count().collect() if rows["rejected_records"] else []
        return {"rows": rows, "rejected": dict(sorted((row["reason"], row["count"]) for row in rejected))}
    finally:
        wide.unpersist()


class Capture:
    """A running capture.

    Attributes:
        query: Spark's streaming query.
        topic: the topic as its cluster described it at the start.
    """

    def __init__(
        self,
        query: StreamingQuery,
        ledger: Ledger,
        topic: SourceTopic,
        describe: Callable[[], SourceTopic],
        address: str,
        failures: list[Exception],
    ) -> None:
        self.query = query
        self.topic = topic
        self._ledger = ledger
        self._describe = describe
        self._address = address
        self._failures = failures
        self._stopped = False

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the capture ends: it is stopped, it fails, or without `every` it has read the present records.

        Args:
            timeout: how many seconds to wait; None waits without limit.

        Returns:
            Whether it has ended.

        Raises:
            CaptureError: it failed, or Spark's source passed over partitions that hold records.
        """
        seconds = None if timeout is None else max(1, round(timeout))
        ended = self._of_query(lambda: self.query.awaitTermination(seconds))
        if seconds is not None and not ended:
            return False
        if not self._stopped:
            self._check()
        return True

    def catch_up(self) -> None:
        """Waits until the tables have all records that the topic held at the call.

        Raises:
            CaptureError: it failed, or Spark's source passed over partitions that hold records; or the topic cannot be
                described any more.
        """
        held = self._describe()
        idle = self._idle()
        # Either condition ends the wait, since each of them may never hold. On a busy cluster new records come before
        # every trigger: the stream is never idle. A source that skips partitions never reaches the offsets in `held`.
        while not self._has(held) and not futures.wait([idle], _POLL).done:
            pass
        if idle.done():
            idle.result()
        if not self._stopped:
            self._check()

    def _has(self, held: SourceTopic) -> bool:
        """Whether the complete batches, one at least, contain all records up to the offsets of this description."""
        last = self._ledger.last()
        return last is not None and not held.unread(self._ledger.reached(last).get(held.name, {}))

    def _idle(self) -> futures.Future[bool | None]:
        """A future that is done when a trigger finds no new records, or when the query has ended."""
        idle: futures.Future[bool | None] = futures.Future()

        def wait() -> None:
            try:
                idle.set_result(self._of_query(self.query.processAllAvailable))
            except Exception as error:
                idle.set_exception(error)

        # A daemon thread: at its end the interpreter would wait for a thread of an executor.
        threading.Thread(target=wait, name="capture is idle", daemon=True).start()
        return idle

    def stop(self) -> None:
        """Stops the capture. The next capture into the same folder reads the unfinished batch again."""
        self._stopped = True
        self.query.stop()

    def batches(self, after: int = -1) -> dict[int, dict[str, Any]]:
        """The complete batches by number: `rows` by table, and `rejected` by reason.

        Args:
            after: only those with a larger number.
        """
        return self._ledger.batches(after)

    def share_read(self, batch_id: int) -> float:
        """The share that is read after this batch, of the offsets that the topic had at the start: 0 to 1.

        1 if the topic was empty. 0 if the batch is no longer in the checkpoint, which keeps the last hundred.
        """
        return self.topic.share_read(self._ledger.reached(batch_id).get(self.topic.name, {}))

    def _of_query(self, run: Callable[[], bool | None]) -> bool | None:
        from pyspark.errors import StreamingQueryException

        try:
            return run()
        except StreamingQueryException as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> CaptureError:
        """The cause of a failed query: an exception of Kafka or of Spark, or an error of this package."""
        from py4j.protocol import Py4JJavaError

        if self._failures:
            first = self._failures[0]
            thrown = first.java_exception if isinstance(first, Py4JJavaError) else getattr(first, "_origin", None)
            if thrown is None:
                return CaptureError(f"a batch of the capture into {self._ledger.path} could not be written: {first}")
        else:
            found = self.query._jsq.exception()
            thrown = found.get() if found.isDefined() else None
        if thrown is None:
            return CaptureError(f"the capture into {self._ledger.path} failed: {str(error).splitlines()[0]}")
        return refusal(self._address, self.topic.name, thrown)

    def _check(self) -> None:
        """Raises unless every partition with records at the start was read: Spark's source may skip one silently."""
        unread = self.topic.unread(self._ledger.reached().get(self.topic.name, {}))
        if unread:
            some = ", ".join(map(str, unread[:10]))
            raise CaptureError(
                f"Spark's Kafka source gave nothing of partitions {some} of {self.topic.name}, which hold records: "
                "this connector does not read internal topics; use the jars of kafka_assignors.spark.connector_jars()"
            )
