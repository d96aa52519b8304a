"""A Mach-O file without what zig's linker leaves to chance.

Two links of the same files differ in the table of indirect symbols, which names the symbol of each pointer of the
section `__got`. For a pointer to a symbol of the file itself zig writes another number in each link, where the format
has a constant (INDIRECT_SYMBOL_LOCAL, in Apple's mach-o/loader.h). The loader of macOS binds these pointers by
LC_DYLD_INFO_ONLY instead. The file's UUID and the hashes of its signature follow from its bytes: both are computed
again.
"""

from __future__ import annotations

import hashlib
import struct

from macholib import mach_o

from code_signature import code_directory

SECTION_TYPE, NON_LAZY_POINTERS = 0xFF, 6
INDIRECT_SYMBOL_LOCAL = 0x80000000
# A 64-bit header; the size of a segment's command up to its sections; and the size of a section.
HEADER, SEGMENT, SECTION = 32, 72, 80


def reproducible(content: bytes) -> bytes:
    """The same file with constants for the numbers that are chance, and with the UUID and the signature of its bytes.

    Args:
        content: A little-endian 64-bit Mach-O file; with a signature or without one.

    Raises:
        ValueError: it is no such file, or has another signature than an ad-hoc one.
        struct.error: it ends too early.
    """
    if content[:4] != b"\xcf\xfa\xed\xfe":
        raise ValueError(f"a 64-bit Mach-O file begins with cffaedfe, this one with {content[:4].hex()}")
    file = bytearray(content)
    pointers: list[tuple[int, int, int]] = []
    table, uuid, signature = 0, None, None
    at = HEADER
    for _ in range(struct.unpack_from("<I", file, 16)[0]):
        command, size = struct.unpack_from("<II", file, at)
        if command == mach_o.LC_SEGMENT_64:
            for section in range(at + SEGMENT, at + size, SECTION):
                length, offset = struct.unpack_from("<QI", file, section + 40)
                flags, first = struct.unpack_from("<II", file, section + 64)
                if flags & SECTION_TYPE == NON_LAZY_POINTERS:
                    pointers.append((offset, length // 8, first))
        elif command == mach_o.LC_DYSYMTAB:
            (table,) = struct.unpack_from("<I", file, at + 56)
        elif command == mach_o.LC_UUID:
            uuid = at + 8
        elif command == mach_o.LC_CODE_SIGNATURE:
            (signature,) = struct.unpack_from("<I", file, at + 8)
        at += size
    for offset, count, first in pointers:
        for index in range(count):
            # The linker fills in the address of a symbol of the file, and zero for one that the loader looks up.
            if struct.unpack_from("<Q", file, offset + 8 * index) != (0,):
                struct.pack_into("<I", file, table + 4 * (first + index), INDIRECT_SYMBOL_LOCAL)
    if uuid is not None:
        file[uuid : uuid + 16] = bytes(16)
        digest = bytearray(hashlib.sha256(file[:signature]).digest()[:16])
        # The version and the variant of a UUID made from a hash (RFC 9562, version 8).
        digest[6], digest[8] = digest[6] & 0x0F | 0x80, digest[8] & 0x3F | 0x80
        file[uuid : uuid + 16] = digest
    if signature is not None:
        directory = code_directory(file, signature)
        file[directory.at : directory.at + 32 * directory.count] = directory.hashes(file)
    return bytes(file)
