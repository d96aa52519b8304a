"""The hashes in the ad-hoc signature of a Mach-O file: macOS kills a process that loads a page with another hash.

The layout is that of Apple's cs_blobs.h: a super blob with its parts, of which part 0 is the code directory.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodeDirectory:
    """Where a file has the hashes of its pages.

    Attributes:
        at: The offset of the first hash in the file. Each is a SHA-256 of 32 bytes.
        count: The number of hashes.
        page: The bytes of a page.
        limit: The bytes of the file that have hashes: those before the signature.
    """

    at: int
    count: int
    page: int
    limit: int

    def hashes(self, content: bytes | bytearray) -> bytes:
        """The hashes that the pages of the file should have, one after the other."""
        ends = [min((index + 1) * self.page, self.limit) for index in range(self.count)]
        return b"".join(hashlib.sha256(content[index * self.page : end]).digest() for index, end in enumerate(ends))


def code_directory(content: bytes | bytearray, at: int) -> CodeDirectory:
    """The code directory of the signature at this offset.

    Raises:
        ValueError: the signature is of another kind.
        struct.error: the file ends too early.
    """
    magic, _, count = struct.unpack_from(">III", content, at)
    if magic != 0xFADE0CC0:
        raise ValueError(f"its signature has the magic number {magic:#x}")
    parts = dict(struct.unpack_from(">II", content, at + 12 + 8 * index) for index in range(count))
    start = at + parts.get(0, 0)
    fields = struct.unpack_from(">9I4B", content, start)
    hashes, _, _, pages, limit, hash_size, hash_type, _, page_bits = fields[4:]
    if fields[0] != 0xFADE0C02 or (hash_size, hash_type) != (32, 2) or limit != at:
        raise ValueError(f"its code directory is of another kind, or for {limit} of {at} bytes")
    return CodeDirectory(start + hashes, pages, 1 << page_bits, limit)
