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

__all__ = ["FORMATS", "read_keys"]

FORMATS = ("text", "hex", "base64", "parquet", "csv")
"""What `read_keys` reads; the last two need pyarrow."""

# No key is longer than a record, by default 1 MiB; base64 and hex need up to twice as much.
_LONGEST_LINE = 4 << 20


def read_keys(
    path: str, *, form: str | None = None, column: str | None = None, most: int = 1_000_000
) -> list[bytes | None]:
    """The keys in a file, at most the first `most`.

    Args:
        path: the file; `-` is standard input, for text, hex and base64.
        form: one of `FORMATS`. By default as the file's name ends, `.parquet` or `.csv`; otherwise text. In `text` each
            line is a key, without its line end, and an empty line an empty key; the other two encode the bytes of one
            key in a line.
        column: of Parquet and CSV; not needed where there is only one. Text is taken as UTF-8; null stays None.
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
            return _column(path, form, column, most)
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


def _column(path: str, form: str, column: str | None, most: int) -> list[bytes | None]:
    try:
        import pyarrow as arrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(f"keys from {form} need pyarrow: pip install kafka-assignors[arrow]") from error
    keys: list[bytes | None] = []
    try:
        with _batches(arrow, path, form) as (names, batches):
            name = _chosen(path, column, names)
            for batch in batches(name):
                keys += _bytes_of(arrow, path, name, batch.column(0))
                if len(keys) >= most:
                    break
    except arrow.ArrowException as error:
        raise KeyFileError(f"{path} cannot be read as {form}: {error}") from error
    return keys[:most]


def _chosen(path: str, column: str | None, names: list[str]) -> str:
    if column is None and len(names) == 1:
        return names[0]
    if column not in names:
        asked = "no column is named" if column is None else f"there is no column {column!r}"
        raise KeyFileError(f"{path}: {asked}; give one of {', '.join(names[:20])}")
    assert column is not None
    return column


class _batches:  # noqa: N801 (used as a function)
    """The names of a file's columns, and the batches of one of them; the file is closed at the end."""

    def __init__(self, arrow: Any, path: str, form: str) -> None:
        self._arrow, self._path, self._form = arrow, path, form

    def __enter__(self) -> tuple[list[str], Callable[[str], Any]]:
        if self._form == "parquet":
            self._file = self._arrow.parquet.ParquetFile(self._path)
            return self._file.schema_arrow.names, lambda name: self._file.iter_batches(columns=[name])
        self._file = self._arrow.csv.open_csv(self._path)
        names = self._file.schema.names
        self._file.close()

        def batches(name: str) -> Any:
            # Text as it is: a key "007" is no number.
            options = self._arrow.csv.ConvertOptions(
                include_columns=[name], column_types={name: self._arrow.binary()}, strings_can_be_null=False
            )
            self._file = self._arrow.csv.open_csv(self._path, convert_options=options)
            return self._file

        return names, batches

    def __exit__(self, *_: object) -> None:
        self._file.close()


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
