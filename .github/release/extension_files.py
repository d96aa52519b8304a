"""Checks of the headers of an extension module, for the platforms on which this machine cannot load it.

An ELF, Mach-O or PE file names its processor, the libraries that it needs, the oldest system that it runs on, and its
exports. Each reader returns the faults against the promise of the wheel's tag.
"""

from __future__ import annotations

import io
import re
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pefile
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection
from macholib import mach_o
from macholib.MachO import MachO
from macholib.SymbolTable import SymbolTable

from code_signature import code_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from platforms import Abi, Platform

# Libraries without types.
Reader: Any = MachO
Symbols: Any = SymbolTable
Dll: Any = pefile.PE

# The symbol that Python looks up in an extension module. The module needs to export no other symbol.
INIT = "PyInit__core"

# The libraries of a system, which are there wherever Python is. Python's own symbols come from the process.
GLIBC = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|util)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")
MUSL = re.compile(r"libc\.so|libc\.musl-\w+\.so\.1|libgcc_s\.so\.1")
MACOS = re.compile(
    r"/usr/lib/lib(System\.B|iconv\.2|charset\.1)\.dylib"
    r"|/System/Library/Frameworks/CoreFoundation\.framework/(Versions/A/)?CoreFoundation"
)
# The library ordinal of a symbol that the loader looks up in all libraries.
DYNAMIC_LOOKUP = 0xFE
# Windows 10 and later have these, the C library under the names of api-ms-win-crt. On Windows an extension also names
# Python's library: python3.dll, or that of one version where there is no stable ABI.
WINDOWS = re.compile(r"(kernel32|ntdll|advapi32|bcrypt|bcryptprimitives|ws2_32|userenv|api-ms-win-[\w-]+)\.dll")


def faults_of(platform: Platform, abi: Abi, content: bytes) -> list[str]:
    """The faults of an extension module for this platform and these Pythons, one per line."""
    readers = {"elf": _elf, "mach-o": _mach_o, "pe": _pe}
    try:
        return list(readers[platform.format](platform, abi, content))
    except (ValueError, struct.error, pefile.PEFormatError) as error:
        return [f"it cannot be read as {platform.format}: {error}"]
    except Exception as error:
        # pyelftools and macholib raise errors of many classes for bytes that are no such file.
        return [f"it cannot be read as {platform.format}: {type(error).__name__}: {error}"]


def _exports(names: Iterable[str]) -> Iterator[str]:
    found = sorted(names)
    if found != [INIT]:
        yield f"it exports {found[:5]} instead of {INIT}"


def _elf(platform: Platform, abi: Abi, content: bytes) -> Iterator[str]:
    file: Any = ELFFile(io.BytesIO(content))
    if file["e_machine"] != {62: "EM_X86_64", 183: "EM_AARCH64"}[platform.machine]:
        yield f"it is for the processor {file['e_machine']}"
    known = MUSL if platform.tag.startswith("musl") else GLIBC
    for section in file.iter_sections():
        if isinstance(section, DynamicSection):
            tag: Any
            for tag in section.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED" and not known.fullmatch(tag.needed):
                    yield f"it wants {tag.needed}"
                if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH", "DT_TEXTREL"):
                    yield f"it has {tag.entry.d_tag}"
        if isinstance(section, GNUVerNeedSection) and platform.tag.startswith("many"):
            for library, versions in section.iter_versions():
                for version in versions:
                    number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version.name)
                    if number and platform.oldest and (int(number[1]), int(number[2])) > platform.oldest:
                        yield f"it wants {version.name} of {library.name}"
        if section.name == ".dynsym" and isinstance(section, SymbolTableSection):
            yield from _exports(
                symbol.name
                for symbol in section.iter_symbols()
                if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")
            )
        if section.name.startswith((".debug_", ".symtab")):
            yield f"it has {section.name}: it is not stripped"
    segments = {segment["p_type"]: segment["p_flags"] for segment in file.iter_segments()}
    if segments.get("PT_GNU_STACK", 1) & 1:
        yield "its stack is executable"
    if "PT_GNU_RELRO" not in segments:
        yield "its relocations stay writable"


def _mach_o(platform: Platform, abi: Abi, content: bytes) -> Iterator[str]:
    # macholib reads files that have a name.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "extension"
        path.write_bytes(content)
        file = Reader(str(path), allow_unknown_load_commands=True)
        symbols = Symbols(file)
    (header,) = file.headers
    if header.header.cputype & 0xFFFFFFFF != platform.machine:
        yield f"it is for the processor {header.header.cputype:#x}"
    if header.header.filetype not in (mach_o.MH_DYLIB, mach_o.MH_BUNDLE):
        yield f"it is of the type {header.header.filetype}, which Python does not load"
    signed = False
    oldest = None
    for load, command, data in header.commands:
        kind = load.get_cmd_name()
        if kind in ("LC_LOAD_DYLIB", "LC_LOAD_WEAK_DYLIB", "LC_REEXPORT_DYLIB", "LC_LAZY_LOAD_DYLIB"):
            library = data.rstrip(b"\0").decode()
            if not MACOS.fullmatch(library):
                yield f"it wants {library}"
        elif kind == "LC_ID_DYLIB" and not data.startswith(b"@rpath/"):
            yield f"its own name is {data.rstrip(bytes(1)).decode()}"
        elif kind == "LC_RPATH":
            yield "it has LC_RPATH"
        elif kind == "LC_BUILD_VERSION":
            oldest = (command.minos >> 16, command.minos >> 8 & 0xFF)
        elif kind == "LC_VERSION_MIN_MACOSX":
            oldest = (command.version >> 16, command.version >> 8 & 0xFF)
        elif kind == "LC_CODE_SIGNATURE":
            signed = True
            yield from _signature(content, command.dataoff)
    if oldest is None or platform.oldest is None or oldest > platform.oldest:
        yield f"it is for macOS {oldest}, the tag is for {platform.oldest}"
    if not signed and platform.name == "macos-arm64":
        yield "it has no signature: macOS on arm64 loads no such code"
    # zig's linker for macOS takes no list of exports: names of Rust may be beside the one that Python looks for.
    if f"_{INIT}".encode() not in {name for _, name in symbols.extdefsyms}:
        yield from _exports(name.decode().removeprefix("_") for _, name in symbols.extdefsyms)
    for symbol, name in symbols.undefsyms:
        # Bound to no library: the loader looks for it everywhere, which is right for Python's own symbols only.
        if symbol.n_desc >> 8 & 0xFF == DYNAMIC_LOOKUP and not re.match(rb"__?Py", name):
            yield f"it takes {name.decode()} from anywhere"


def _signature(content: bytes, at: int) -> Iterator[str]:
    """Compares the hashes of the code directory with the pages."""
    try:
        directory = code_directory(content, at)
    except ValueError as error:
        yield str(error)
        return
    wanted = directory.hashes(content)
    for index in range(0, len(wanted), 32):
        if content[directory.at + index : directory.at + index + 32] != wanted[index : index + 32]:
            yield f"its page {index // 32} of {directory.count} has another hash than it was signed with"
            return


def _pe(platform: Platform, abi: Abi, content: bytes) -> Iterator[str]:
    file = Dll(data=content)
    if file.FILE_HEADER.Machine != platform.machine:
        yield f"it is for the processor {file.FILE_HEADER.Machine:#x}"
    version = abi.name.partition("-")[2].removeprefix("cp")
    python = "python3.dll" if abi.stable else f"python{version}.dll"
    libraries = {entry.dll.decode().lower() for entry in getattr(file, "DIRECTORY_ENTRY_IMPORT", [])}
    if python not in libraries:
        yield f"it does not want {python}"
    for library in sorted(libraries - {python}):
        if not WINDOWS.fullmatch(library):
            yield f"it wants {library}"
    header = file.OPTIONAL_HEADER
    if (header.MajorSubsystemVersion, header.MinorSubsystemVersion) > (10, 0):
        yield f"it is for Windows {header.MajorSubsystemVersion}.{header.MinorSubsystemVersion} and later"
    # 64-bit addresses at random, and no code in data: what Windows expects of every library.
    for name, bit in {"HIGH_ENTROPY_VA": 0x20, "DYNAMIC_BASE": 0x40, "NX_COMPAT": 0x100}.items():
        if not header.DllCharacteristics & bit:
            yield f"it lacks {name}"
    exported = getattr(file, "DIRECTORY_ENTRY_EXPORT", None)
    yield from _exports((symbol.name or b"?").decode() for symbol in (exported.symbols if exported else ()))
