"""The history of consumer groups, streamed from the broker's own `__consumer_offsets` to Parquet.

The broker keeps of each group the latest record only; what it compacts away remains in the capture's tables. Each
micro-batch is written to folders of its own, which a repetition overwrites, and noted as whole when all of its tables
are: however often the capture is killed, each record is in the tables once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_assignors.errors import CaptureError, OptionError
from kafka_assignors.spark.decoding import DECODED, decode_wide, hand_over_by_count, tables_of
from kafka_assignors.spark.ledger import Ledger
from kafka_assignors.spark.offsets_source import OFFSETS_TOPIC, SourceTopic, check_settings, look_at, refusal, stream
from kafka_assignors.spark.schemas import needs_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Capture", "TopicNames", "capture"]

TopicNames: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""Topic ids, as Kafka prints them, with the topics' names; a function is asked anew for each micro-batch."""


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
    """Starts to stream `__consumer_offsets` to tables, or goes on where an earlier capture into the same folder ended.

    The tables are those of `kafka_assignors.spark.decoding.decode`, in Parquet below `out`; `captured` reads them. The
    user needs READ and DESCRIBE on the topic, and READ on groups whose names begin with `kafka-assignors-capture`, with
    which Spark asks for offsets.

    Args:
        spark: a session with the connector's jars: `session(jars=connector_jars())`.
        kafka: settings of a Java consumer, `bootstrap.servers` among them.
        out: the folder for tables, checkpoint and notes, on any file system that this Spark writes to; one for each
            topic.
        every: so many seconds between micro-batches; None reads what is there and ends.
        cluster: what the column `cluster` is to be; the cluster's id by default.
        topic: the topic; another than Kafka's own is for copies of it.
        names: names for the topic ids in records of KIP-848 groups.
        clients: fill `client_id` and `client_host` of `membership_events`.
        keep_bytes: fill `key` and `value` of `rejected_records` for records that cannot be read.
        most: about how many records a micro-batch may have; no limit by default.
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
    # Read offsets of internal topics in this query alone, whatever else goes on in the session.
    own = spark.newSession()
    hand_over_by_count(own)
    found = look_at(own, settings, topic, timeout)
    ledger = Ledger(own, out)
    ledger.open(found.cluster, topic, found.topic_id)
    name = found.cluster if cluster is None else cluster
    parallelism = own.sparkContext.defaultParallelism

    def write(batch: DataFrame, batch_id: int) -> None:
        if ledger.finished(batch_id):
            # Its tables are whole. The topic may have been compacted since: what a repetition reads might be less.
            return
        known = names() if callable(names) else names
        # One task for each partition of the topic costs more than it reads; each partition's order stays.
        wide = decode_wide(batch.coalesce(parallelism), names=known, clients=clients, keep_bytes=keep_bytes)
        ledger.finish(batch_id, _write(wide, name, ledger.path, batch_id))

    failures: list[Exception] = []

    def write_or_tell(batch: DataFrame, batch_id: int) -> None:
        # Through the gateway an exception comes back as text.
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
    return Capture(query, ledger, found, settings["bootstrap.servers"], failures)


def _write(wide: DataFrame, cluster: str, out: str, batch_id: int) -> dict[str, Any]:
    """Writes all tables of a batch; the numbers of their rows, and of the reasons for rejections."""
    from pyspark import StorageLevel
    from pyspark.sql.functions import col, when

    tables = list(DECODED)
    rejected = tables.index("rejected_records")
    wide = wide.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        reason = when(col("table") == rejected, col("rest.kind")).alias("reason")
        counted = wide.groupBy("table", reason).count().collect()
        rows = dict.fromkeys(tables, 0)
        for row in counted:
            rows[tables[row["table"]]] += row["count"]
        for table, frame in tables_of(wide, cluster).items():
            # The first batch makes every table, so that none is missing later.
            if rows[table] or batch_id == 0:
                frame.write.mode("overwrite").parquet(f"{out}/{table}/batch_id={batch_id}")
        reasons = {row["reason"]: row["count"] for row in counted if row["reason"] is not None}
        return {"rows": rows, "rejected": dict(sorted(reasons.items()))}
    finally:
        wide.unpersist()


class Capture:
    """A capture under way.

    Attributes:
        query: Spark's streaming query.
        topic: the topic as its cluster described it at the start.
    """

    def __init__(
        self, query: StreamingQuery, ledger: Ledger, topic: SourceTopic, address: str, failures: list[Exception]
    ) -> None:
        self.query = query
        self.topic = topic
        self._ledger = ledger
        self._address = address
        self._failures = failures
        self._stopped = False

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the end: of a capture of what is there, or of one that is stopped or fails.

        Args:
            timeout: how many seconds to wait; None waits as long as it takes.

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
        """Waits until what the topic held at the call is in the tables.

        Raises:
            CaptureError: it failed, or Spark's source passed over partitions that hold records.
        """
        self._of_query(self.query.processAllAvailable)
        if not self._stopped:
            self._check()

    def stop(self) -> None:
        """Ends it. The batch under way is not whole, and is read again by the next capture into the same folder."""
        self._stopped = True
        self.query.stop()

    def batches(self) -> dict[int, dict[str, Any]]:
        """The whole batches so far: by number `rows` by table, and `rejected` by reason."""
        return self._ledger.batches()

    def _of_query(self, run: Callable[[], bool | None]) -> bool | None:
        from pyspark.errors import StreamingQueryException

        try:
            return run()
        except StreamingQueryException as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> CaptureError:
        """What is behind a failed query: an exception of Kafka's or of Spark's, or an error of ours."""
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
        """Refuses silence: partitions that held records at the start must have been read."""
        unread = self.topic.unread(self._ledger.reached().get(self.topic.name, {}))
        if unread:
            some = ", ".join(map(str, unread[:10]))
            raise CaptureError(
                f"Spark's Kafka source gave nothing of partitions {some} of {self.topic.name}, which hold records: "
                "this connector does not read internal topics; use the jars of kafka_assignors.spark.connector_jars()"
            )
