"""Keys from files: lines of text, hex or base64, or a column of Parquet or CSV."""

from __future__ import annotations

import base64
import binascii
import sys
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kafka_assignors.errors import KeyFileError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

__all__ = ["FORMATS", "read_keys"]

FORMATS = ("text", "hex", "base64", "parquet", "csv")
"""The forms of a file of keys; the last two need pyarrow."""

# No key is longer than a record, by default 1 MiB; base64 and hex need up to twice as much.
_LONGEST_LINE = 4 << 20


def read_keys(
    path: str, *, form: str | None = None, column: str | None = None, most: int = 1_000_000
) -> list[bytes | None]:
    """The keys in a file, at most the first `most`.

    Args:
        path: the file; `-` is standard input, for text, hex and base64.
        form: one of `FORMATS`. None takes the ending of the file's name, `.parquet` or `.csv`, and else `text`. In
            `text` each line is a key, without its line end, and an empty line is an empty key; in `hex` and `base64`
            each line encodes the bytes of one key.
        column: of Parquet and CSV; not needed if there is only one. Text is encoded as UTF-8; null stays None.
        most: how many keys to read.

    Raises:
        KeyFileError: the file, a line or the column cannot be read; the message says where.
        MissingDependencyError: Parquet or CSV, and no pyarrow.
    """
    if most < 1:
        raise KeyFileError(f"{path}: {most} keys are asked for; give at least 1")
    if form is None:
        ending = Path(path).suffix.lower().removeprefix(".")
        form = ending if ending in ("parquet", "csv") else "text"
    if form not in FORMATS:
        raise KeyFileError(f"{path}: the format {form!r} is not one; give one of {', '.join(FORMATS)}")
    try:
        if form in ("parquet", "csv"):
            return _keys_of_column(path, form, column, most)
        if column is not None:
            raise KeyFileError(f"{path}: {form} has no column {column!r}; leave it out, or give Parquet or CSV")
        if path == "-":
            return list(islice(_lines(sys.stdin.buffer, path, form), most))
        with Path(path).open("rb") as lines:
            return list(islice(_lines(lines, path, form), most))
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror or error}") from error


def _lines(lines: IO[bytes], path: str, form: str) -> Iterator[bytes]:
    decode: Callable[[bytes], bytes] = {
        "text": lambda line: line,
        "hex": binascii.unhexlify,
        "base64": lambda line: base64.b64decode(line, validate=True),
    }[form]
    number = 0
    while line := lines.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE:
            raise KeyFileError(f"{path}, line {number}: longer than {_LONGEST_LINE} bytes, which no key is")
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield decode(line)
        except binascii.Error as error:
            raise KeyFileError(f"{path}, line {number}: not {form} ({error})") from error


def _keys_of_column(path: str, form: str, column: str | None, most: int) -> list[bytes | None]:
    try:
        import pyarrow as arrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(f"keys from {form} need pyarrow: pip install kafka-assignors[arrow]") from error
    keys: list[bytes | None] = []
    try:
        with (_ParquetFile if form == "parquet" else _CsvFile)(arrow, path) as file:
            name = _column_of(path, column, file.columns)
            for batch in file.batches(name):
                keys += _bytes_of(arrow, path, name, batch.column(0))
                if len(keys) >= most:
                    break
    except arrow.ArrowException as error:
        raise KeyFileError(f"{path} cannot be read as {form}: {error}") from error
    return keys[:most]


def _column_of(path: str, column: str | None, names: list[str]) -> str:
    """The column that was asked for, or the only one."""
    if column is None and len(names) == 1:
        return names[0]
    if column not in names:
        asked = "no column is named" if column is None else f"there is no column {column!r}"
        raise KeyFileError(f"{path}: {asked}; give one of {', '.join(names[:20])}")
    assert column is not None
    return column


class _ParquetFile:
    """A Parquet file that is closed at the end of the `with`."""

    def __init__(self, arrow: Any, path: str) -> None:
        self._file = arrow.parquet.ParquetFile(path)
        self.columns: list[str] = self._file.schema_arrow.names

    def batches(self, column: str) -> Iterator[Any]:
        found: Iterator[Any] = self._file.iter_batches(columns=[column])
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _CsvFile:
    """A CSV file with a line of column names; the column that is read is closed at the end of the `with`."""

    def __init__(self, arrow: Any, path: str) -> None:
        self._arrow, self._path = arrow, path
        self._reader: Any = None
        with arrow.csv.open_csv(path) as head:
            self.columns: list[str] = head.schema.names

    def batches(self, column: str) -> Iterator[Any]:
        # Without a type, Arrow would read the key "007" as the number 7.
        options = self._arrow.csv.ConvertOptions(
            include_columns=[column], column_types={column: self._arrow.binary()}, strings_can_be_null=False
        )
        self._reader = self._arrow.csv.open_csv(self._path, convert_options=options)
        found: Iterator[Any] = self._reader
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()


def _bytes_of(arrow: Any, path: str, name: str, column: Any) -> list[bytes | None]:
    kind = column.type
    if arrow.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    types = arrow.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        column = column.cast(arrow.large_binary() if types.is_large_string(kind) else arrow.binary())
    elif not (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    ):
        raise KeyFileError(
            f"{path}: column {name!r} is of type {kind}; give text or binary, as the producer's serializer makes it"
        )
    found: list[bytes | None] = column.to_pylist()
    return found
