"""The notes in a capture's folder: which batches are complete, and the topic that they come from.

A capture's folder holds its tables, each with a folder `batch_id=N` for every micro-batch that gave it rows, and

- `_capture.json`: cluster, topic and the topic's id;
- `_batches/N.json`: written after all tables of batch N, with its numbers of records and rows;
- `_checkpoint`: the checkpoint of Spark.

Spark skips names that begin with an underscore when it reads tables. All files are read and written with Hadoop's file
systems, so that the folder may be on any file system of Spark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from kafka_assignors.errors import CaptureError, TableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Ledger"]

_FORMAT = 1


class Ledger:
    """The notes in a capture's folder.

    Args:
        spark: any session; its file systems are used.
        path: the folder.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path.rstrip("/")
        self._jvm = cast(Any, spark.sparkContext._jvm)
        root = self._jvm.org.apache.hadoop.fs.Path(self.path)
        self._files = root.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    @property
    def checkpoint(self) -> str:
        """The folder of Spark's checkpoint."""
        return f"{self.path}/_checkpoint"

    @property
    def is_capture(self) -> bool:
        """Whether the folder is a capture's."""
        return self._exists("_capture.json")

    def open(self, cluster: str, topic: str, topic_id: str) -> None:
        """Starts a capture, or continues one of the same topic.

        Raises:
            CaptureError: the folder holds the tables of another topic, or tables without their checkpoint.
        """
        mine = {"format": _FORMAT, "cluster": cluster, "topic": topic, "topic_id": topic_id}
        if not self.is_capture:
            if self._exists("_checkpoint") or self._exists("_batches"):
                raise CaptureError(f"{self.path} is no capture's folder, though it looks like one; give another")
            self._write("_capture.json", mine)
            return
        there = self._read("_capture.json")
        for name, what in (
            ("format", "format"),
            ("topic", "topic"),
            ("cluster", "cluster"),
            ("topic_id", "topic's id"),
        ):
            if there.get(name) != mine[name]:
                again = " (the topic has been made anew: its offsets begin anew too)" if name == "topic_id" else ""
                raise CaptureError(
                    f"{self.path} holds a capture whose {what} is {there.get(name)!r}, not {mine[name]!r}{again}; give "
                    "another folder"
                )
        if self.last() is not None and not self._exists("_checkpoint/offsets"):
            raise CaptureError(
                f"{self.path} holds a capture's tables, but its _checkpoint is gone: going on would repeat or "
                "overwrite them; give another folder"
            )

    def finished(self, batch_id: int) -> bool:
        """Whether all tables of a batch are written."""
        return self._exists(f"_batches/{batch_id}.json")

    def finish(self, batch_id: int, counts: dict[str, Any]) -> None:
        """Notes that all tables of a batch are written."""
        self._write(f"_batches/{batch_id}.json", {"batch_id": batch_id, **counts})

    def batches(self, after: int = -1) -> dict[int, dict[str, Any]]:
        """The complete batches with a number above `after`, in order, with their numbers of records and rows."""
        return {batch_id: self._read(f"_batches/{batch_id}.json") for batch_id in self._ids() if batch_id > after}

    def last(self) -> int | None:
        """The last complete batch; all earlier ones are complete too."""
        return max(self._ids(), default=None)

    def require(self) -> int:
        """The last complete batch.

        Raises:
            TableError: the folder holds no capture, or no complete batch.
        """
        last = self.last() if self.is_capture else None
        if last is None:
            raise TableError(f"{self.path} holds no finished batch of a capture; give the --out of one")
        return last

    def reached(self, batch_id: int | None = None) -> dict[str, dict[str, int]]:
        """The position after a batch, by default the last one that was begun.

        Returns:
            By topic and partition number, as text, the next offset. Empty if the batch is not in the checkpoint, which
            keeps the last hundred.
        """
        numbers = [int(name) for name in self._names("_checkpoint/offsets") if name.isdigit()]
        wanted = max(numbers, default=-1) if batch_id is None else batch_id
        if wanted not in numbers:
            return {}
        # Spark's offset log: its version, the batch's metadata, and one line for each source.
        lines = self._text(f"_checkpoint/offsets/{wanted}").splitlines()
        found: dict[str, dict[str, int]] = json.loads(lines[-1])
        return found

    def _ids(self) -> list[int]:
        names = self._names("_batches")
        return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())

    def _names(self, folder: str) -> list[str]:
        if not self._exists(folder):
            return []
        return [str(each.getPath().getName()) for each in self._files.listStatus(self._at(folder))]

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}")

    def _exists(self, name: str) -> bool:
        return bool(self._files.exists(self._at(name)))

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(self._text(name))
        except ValueError as error:
            raise CaptureError(f"{self.path}/{name} is damaged; give another folder") from error
        if not isinstance(found, dict):
            raise CaptureError(f"{self.path}/{name} is damaged; give another folder")
        return found

    def _text(self, name: str) -> str:
        stream = self._files.open(self._at(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def _write(self, name: str, value: dict[str, Any]) -> None:
        # Written under another name and renamed, so that no reader sees half of it.
        unfinished = self._at(f"{name}.unfinished")
        stream = self._files.create(unfinished, True)
        try:
            stream.write(bytearray(json.dumps(value).encode()))
        finally:
            stream.close()
        # Some file systems do not rename onto an existing file.
        self._files.delete(self._at(name), False)
        if not self._files.rename(unfinished, self._at(name)):
            raise CaptureError(f"{self.path}/{name} cannot be written")
