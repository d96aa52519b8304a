"""The settings of the installed librdkafka, from librdkafka's own list."""

from __future__ import annotations

import ctypes
import glob
import os
import tempfile
from functools import cache

import confluent_kafka


@cache
def defaults() -> dict[str, str]:
    """Every setting of a consumer and of its topics, with its default. An empty text stands for no default."""
    folder = os.path.join(os.path.dirname(confluent_kafka.__file__), os.pardir, "confluent_kafka.libs")
    (path,) = glob.glob(os.path.join(folder, "librdkafka*"))
    library, system = ctypes.CDLL(path), ctypes.CDLL(None)
    system.fopen.restype, system.fopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]
    system.fclose.argtypes = library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    with tempfile.NamedTemporaryFile("r") as listing:
        file = system.fopen(listing.name.encode(), b"w")
        library.rd_kafka_conf_properties_show(file)
        system.fclose(file)
        rows = [[cell.strip() for cell in line.split(" | ")] for line in listing]
    return {row[0]: row[3] for row in reversed(rows) if len(row) >= 5 and row[1] in ("C", "*")}
