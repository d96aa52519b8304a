"""The readers of extension modules: files that this machine cannot load are read, and their faults reported."""

import calendar
import hashlib
import io
import struct
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

import build_wheels
import check_wheels
import description
import extension_files
import platforms
import publish
import release_version
import reproduce
from build_wheels import Built, finished_sdist, finished_wheel, remapped_paths
from kafka_assignors import _core
from reproduce import differences
from reproducible_mach_o import reproducible

MACOS = platforms.chosen(["macos-arm64"])[0]
WINDOWS = platforms.chosen(["windows-x86_64"])[0]
STABLE, FREE_THREADED = platforms.ABIS


# ---- Mach-O ---------------------------------------------------------------------------------------------------------


def padded(text: bytes) -> bytes:
    return text + bytes(-len(text) % 8)


def mach_o(
    *,
    processor: int = 0x0100000C,
    minimum: tuple[int, int] = (11, 0),
    libraries: tuple[bytes, ...] = (b"/usr/lib/libSystem.B.dylib",),
    exports: tuple[bytes, ...] = (b"_PyInit__core",),
    wants: tuple[bytes, ...] = (b"_PyList_New",),
    name: bytes = b"@rpath/_core.so",
    signed: bool = True,
    uuid: bytes = b"",
    pointers: tuple[tuple[int, int], ...] = (),
) -> bytes:
    """A dylib with its load commands, a symbol table, and an ad-hoc signature: no code.

    Each of `pointers` is one of the section `__got`, with its number in the table of indirect symbols.
    """
    commands = [struct.pack("<6I", 0x32, 24, 1, minimum[0] << 16 | minimum[1] << 8, 0, 0)]
    for kind, text in [(0xD, name), *((0xC, library) for library in libraries)]:
        body = padded(struct.pack("<6I", kind, 0, 24, 0, 0, 0) + text + b"\0")
        commands.append(body[:4] + struct.pack("<I", len(body)) + body[8:])
    if uuid:
        commands.append(struct.pack("<2I", 0x1B, 24) + uuid)
    count = len(commands) + 2 + signed + bool(pointers)
    size = sum(map(len, commands)) + 24 + 80 + 16 * signed + 152 * bool(pointers)
    symbols_at = 32 + size
    strings_at = symbols_at + 16 * len(exports + wants)
    strings, entries = b"\0", b""
    for symbol in exports + wants:
        # Defined in section 1, or wanted from any library.
        entries += struct.pack("<IBBHQ", len(strings), *((0x0F, 1, 0) if symbol in exports else (0x01, 0, 0xFE00)), 0)
        strings += symbol + b"\0"
    pointers_at = strings_at + len(padded(strings))
    table_at = pointers_at + 8 * len(pointers)
    table = padded(struct.pack(f"<{len(pointers)}I", *(number for _, number in pointers)))
    end = table_at + len(table)
    if pointers:
        segment = struct.pack("<2I16s4Q4I", 0x19, 152, b"__DATA", 0, 0, 0, 0, 3, 3, 1, 0)
        section = (b"__got", b"__DATA", 0, 8 * len(pointers), pointers_at, 3, 0, 0, 6, 0, 0, 0)
        commands.append(segment + struct.pack("<16s16s2Q8I", *section))
    commands.append(struct.pack("<6I", 0x2, 24, symbols_at, len(exports + wants), strings_at, len(strings)))
    commands.append(
        struct.pack(
            "<20I",
            0xB,
            80,
            0,
            0,
            0,
            len(exports),
            len(exports),
            len(wants),
            *([0] * 6),
            table_at,
            len(pointers),
            *([0] * 4),
        )
    )
    signature_size = 12 + 8 + 44 + 32 * -(-end // 4096)
    if signed:
        commands.append(struct.pack("<4I", 0x1D, 16, end, signature_size))
    header = struct.pack("<8I", 0xFEEDFACF, processor, 0, 6, count, size, 0, 0)
    body = header + b"".join(commands) + entries + padded(strings)
    body += struct.pack(f"<{len(pointers)}Q", *(pointer for pointer, _ in pointers)) + table
    assert len(body) == end
    if not signed:
        return body
    hashes = b"".join(hashlib.sha256(body[at : at + 4096]).digest() for at in range(0, end, 4096))
    directory = struct.pack(
        ">9I4B", 0xFADE0C02, 44 + len(hashes), 0x20400, 2, 44, 0, 0, len(hashes) // 32, end, 32, 2, 0, 12
    )
    directory += bytes(4) + hashes
    return body + struct.pack(">5I", 0xFADE0CC0, 20 + len(directory), 1, 0, 20) + directory


def test_a_mach_o_file_as_promised_has_no_fault() -> None:
    assert extension_files.faults_of(MACOS, STABLE, mach_o()) == []


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        (mach_o(processor=0x01000007), "it is for the processor 0x1000007"),
        (mach_o(minimum=(12, 3)), "it is for macOS (12, 3), the tag is for (11, 0)"),
        (mach_o(libraries=(b"/opt/lib/libz.dylib",)), "it wants /opt/lib/libz.dylib"),
        (mach_o(name=b"/build/_core.dylib"), "its own name is /build/_core.dylib"),
        (mach_o(exports=(b"_more",)), "it exports ['more'] instead of PyInit__core"),
        (mach_o(wants=(b"__Py_Dealloc", b"_CFRelease")), "it takes _CFRelease from anywhere"),
        (mach_o(signed=False), "it has no signature: macOS on arm64 loads no such code"),
    ],
)
def test_a_fault_of_a_mach_o_file_is_told(file: bytes, fault: str) -> None:
    assert extension_files.faults_of(MACOS, STABLE, file) == [fault]


def test_a_page_that_changed_after_signing_is_told() -> None:
    file = bytearray(mach_o())
    at = file.index(b"libSystem.B")
    file[at - 30 : at - 29] = b"?"
    assert any(
        "another hash than it was signed with" in it for it in extension_files.faults_of(MACOS, STABLE, bytes(file))
    )


@pytest.mark.parametrize("signed", [True, False])
def test_two_links_of_the_same_files_become_equal(signed: bool) -> None:
    """The first pointer is to a symbol of the file, whose number differs by chance; the loader looks up the second."""
    one = mach_o(signed=signed, uuid=b"a" * 16, pointers=((0x4000, 21909), (0, 1)))
    two = mach_o(signed=signed, uuid=b"b" * 16, pointers=((0x4000, 22052), (0, 1)))
    assert one != two
    same = reproducible(one)
    assert same == reproducible(two) == reproducible(same)
    assert same.count(struct.pack("<2I", 0x80000000, 1)) == 1
    assert extension_files.faults_of(MACOS, STABLE, same) == extension_files.faults_of(MACOS, STABLE, one)
    # Another file has another UUID.
    other = mach_o(signed=signed, uuid=b"a" * 16, pointers=((0x4008, 21909), (0, 1)))
    at = one.index(b"a" * 16)
    assert len({file[at : at + 16] for file in (one, same, reproducible(other))}) == 3


def test_a_file_that_is_no_mach_o_file_is_not_made_reproducible() -> None:
    with pytest.raises(ValueError, match="begins with cffaedfe, this one with 7f454c46"):
        reproducible(b"\x7fELF" + bytes(100))


# ---- PE -------------------------------------------------------------------------------------------------------------


def pe(
    *,
    processor: int = 0x8664,
    libraries: tuple[bytes, ...] = (b"python3.dll", b"KERNEL32.dll"),
    exports: tuple[bytes, ...] = (b"PyInit__core",),
    characteristics: int = 0x160,
    system: int = 6,
) -> bytes:
    """A DLL with one section, which has its tables of imports and exports: no code."""
    base = 0x1000
    section = bytearray(bytes(20 * (len(libraries) + 1)))

    def put(content: bytes) -> int:
        section.extend(bytes(-len(section) % 8))
        section.extend(content)
        return base + len(section) - len(content)

    for index, library in enumerate(libraries):
        function = put(struct.pack("<H", 0) + b"f\0")
        lookup, addresses = (put(struct.pack("<QQ", function, 0)) for _ in range(2))
        struct.pack_into("<5I", section, 20 * index, lookup, 0, 0, put(library + b"\0"), addresses)
    names = put(b"".join(struct.pack("<I", put(symbol + b"\0")) for symbol in exports))
    functions = put(struct.pack("<I", base) * len(exports))
    ordinals = put(b"".join(struct.pack("<H", index) for index in range(len(exports))))
    of_itself = put(b"_core.pyd\0")
    count = len(exports)
    table = put(struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, of_itself, 1, count, count, functions, names, ordinals))
    directories = [(table, 40), (base, 20 * (len(libraries) + 1))] + [(0, 0)] * 14
    optional = struct.pack("<HBBIIIII", 0x20B, 14, 0, 0, len(section), 0, 0, base)
    optional += struct.pack("<QIIHHHHHHI", 0x180000000, 0x1000, 0x200, 6, 0, 0, 0, system, 0, 0)
    size = 0x1000 * (2 + len(section) // 0x1000)
    optional += struct.pack("<IIIHHQQQQII", size, 0x400, 0, 2, characteristics, *([0x1000] * 4), 0, 16)
    optional += b"".join(struct.pack("<II", *each) for each in directories)
    header = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0"
    header += struct.pack("<HHIIIHH", processor, 1, 0, 0, 0, len(optional), 0x2022) + optional
    stored = -(-len(section) // 0x200) * 0x200
    header += struct.pack("<8sIIIIIIHHI", b".rdata", len(section), base, stored, 0x400, 0, 0, 0, 0, 0x40000040)
    return header.ljust(0x400, b"\0") + bytes(section).ljust(stored, b"\0")


def test_a_pe_file_as_promised_has_no_fault() -> None:
    assert extension_files.faults_of(WINDOWS, STABLE, pe()) == []
    assert extension_files.faults_of(WINDOWS, FREE_THREADED, pe(libraries=(b"python314t.dll",))) == []


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        (pe(processor=0xAA64), "it is for the processor 0xaa64"),
        (pe(libraries=(b"KERNEL32.dll",)), "it does not want python3.dll"),
        (pe(libraries=(b"python3.dll", b"libunwind.dll")), "it wants libunwind.dll"),
        (pe(exports=(b"other",)), "it exports ['other'] instead of PyInit__core"),
        (pe(characteristics=0x60), "it lacks NX_COMPAT"),
        (pe(system=11), "it is for Windows 11.0 and later"),
    ],
)
def test_a_fault_of_a_pe_file_is_told(file: bytes, fault: str) -> None:
    assert extension_files.faults_of(WINDOWS, STABLE, file) == [fault]


# ---- ELF, and whole files -------------------------------------------------------------------------------------------


def test_the_module_under_test_is_an_elf_file_for_this_processor() -> None:
    """The module is built for this machine's C library and is not stripped; both are reported as faults."""
    content = Path(_core.__file__).read_bytes()
    (platform,) = platforms.chosen(["manylinux-x86_64"])
    faults = extension_files.faults_of(platform, STABLE, content)
    assert [fault for fault in faults if not fault.startswith(("it wants GLIBC_", "it has ."))] == []
    other = extension_files.faults_of(platforms.chosen(["musllinux-aarch64"])[0], STABLE, content)
    assert {"it is for the processor EM_X86_64", "it wants libc.so.6"} <= set(other)


@pytest.mark.parametrize("platform", platforms.PLATFORMS, ids=lambda it: it.name)
@pytest.mark.parametrize(
    "content", [b"", b"MZ", bytes(4096), b"\xcf\xfa\xed\xfe" + b"\xff" * 28, b"\x7fELF\x02\x01" + b"\xff" * 99]
)
def test_bytes_that_are_no_such_file_are_a_fault(platform: platforms.Platform, content: bytes) -> None:
    (fault,) = extension_files.faults_of(platform, STABLE, content)
    assert fault.startswith(f"it cannot be read as {platform.format}: ")


def test_each_file_of_a_release_is_known_by_its_name() -> None:
    for pattern in platforms.expected()[1:]:
        found, abi = platforms.of_wheel(pattern.replace("-*-", "-1.2.3-").replace("*", "older."))
        assert f"{abi.name}-*{found.tag}.whl" in pattern
    with pytest.raises(ValueError, match="no release has such a wheel"):
        platforms.of_wheel("kafka_assignors-1.2.3-cp311-cp311-linux_x86_64.whl")
    with pytest.raises(ValueError, match="no platform is called amiga; there are manylinux-x86_64, "):
        platforms.chosen(["macos-arm64", "amiga"])


def wheel_of(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / "kafka_assignors-1.2.3-cp311-abi3-win_amd64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6)), content)
    return path


def test_no_file_names_the_machine(tmp_path: Path) -> None:
    path = wheel_of(
        tmp_path, {"a.json": b"at /srv/build/x/y", "_core.pyd": b"\0/home/me/core/src/lib.rs\0", "b.py": b"/home/me/x"}
    )
    assert list(check_wheels.paths_in(path, [b"/srv/build/"])) == [
        "a.json names /srv/build/",
        "_core.pyd names /home/me/core/src/lib.rs",
    ]


def test_the_list_of_crates_names_no_folder_and_the_record_fits(tmp_path: Path) -> None:
    bom, record = "x-1.dist-info/sboms/x.cyclonedx.json", "x-1.dist-info/RECORD"
    files = {bom: b'"path+file:///srv/build/rust/core#1"', record: f"{bom},sha256=old,1\n{record},,\n".encode()}
    (tmp_path / "out").mkdir()
    path = finished_wheel(wheel_of(tmp_path, files), tmp_path / "out", Path("/srv/build"))
    with zipfile.ZipFile(path) as wheel:
        assert wheel.read(bom) == b'"path+file:///kafka-assignors/rust/core#1"'
        assert wheel.getinfo(bom).date_time == (2026, 1, 2, 3, 4, 6)
        lines = wheel.read(record).decode().splitlines()
    assert lines == [f"{bom},sha256=_ht88FkkmhA8SDEX2i7leLPAsQyMiQ79W_VD0wvIigs,42", f"{record},,"]


README = """Metadata-Version: 2.4

![Before](docs/picture.svg) and [more](docs/more.md#there), [the folder](docs), [elsewhere](https://b.example/a),
[here](#below), `handlers[name](value)`.
"""
PUBLISHED = """Metadata-Version: 2.4

![Before](RAW/docs/picture.svg) and [more](BLOB/docs/more.md#there), [the folder](TREE/docs), [elsewhere](https://b.example/a),
[here](#below), `handlers[name](value)`.
"""


def test_the_links_of_a_published_readme_lead_to_the_tag(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("picture.svg", "more.md"):
        (tmp_path / "docs" / name).touch()
    (tmp_path / "out").mkdir()
    wanted = PUBLISHED
    for kind in ("RAW", "BLOB", "TREE"):
        wanted = wanted.replace(kind, f"{description.REPOSITORY}/{kind.lower()}/v1.2.3")
    files = {
        "x-1.dist-info/METADATA": README.encode(),
        "x-1.dist-info/RECORD": b"x-1.dist-info/METADATA,sha256=old,1\n",
    }
    wheel = finished_wheel(wheel_of(tmp_path, files), tmp_path / "out", tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("x-1.dist-info/METADATA").decode() == wanted
        assert archive.read("x-1.dist-info/RECORD").decode().endswith(f",{len(wanted)}\n")
    sdist = tmp_path / "kafka_assignors-1.2.3.tar.gz"
    with tarfile.open(sdist, "w:gz") as target:
        for name, content in {"PKG-INFO": README, "python/PKG-INFO": README}.items():
            member = tarfile.TarInfo(f"kafka_assignors-1.2.3/{name}")
            member.size, member.mtime = len(content), 7
            target.addfile(member, io.BytesIO(content.encode()))
    ours = finished_sdist(sdist, tmp_path / "out", tmp_path)
    found = dict(check_wheels.contents(ours))
    assert found["kafka_assignors-1.2.3/PKG-INFO"].decode() == wanted
    assert found["kafka_assignors-1.2.3/python/PKG-INFO"].decode() == README
    with tarfile.open(ours) as target:
        assert {member.mtime for member in target} == {7}
    (tmp_path / "more").mkdir()
    assert finished_sdist(sdist, tmp_path / "more", tmp_path).read_bytes() == ours.read_bytes()


def test_a_link_that_no_index_has_is_told(tmp_path: Path) -> None:
    path = wheel_of(tmp_path, {"x-1.dist-info/METADATA": b"[a](docs/releases.md) [b](https://b.example/docs)"})
    (fault,) = check_wheels.dead_links_in(path)
    assert fault == "x-1.dist-info/METADATA links to docs/releases.md, which no index has"


def test_the_compiler_is_told_no_folder(tmp_path: Path) -> None:
    (tmp_path / "cargo/registry/src/mirror-1f2e").mkdir(parents=True)
    target = Path("/srv/build/target/cargo-1")
    flags = remapped_paths(Path("/srv/build"), Path("/home/me"), tmp_path / "cargo", target)
    assert flags == [
        "--remap-path-prefix=/home/me=/home",
        f"--remap-path-prefix={tmp_path}/cargo=/cargo",
        "--remap-path-prefix=/srv/build=/kafka-assignors",
        f"--remap-path-prefix={tmp_path}/cargo/registry/src/mirror-1f2e=/crates",
        "--remap-path-prefix=/srv/build/target/cargo-1=/target",
    ]


def test_what_differs_between_two_builds_is_told(tmp_path: Path) -> None:
    for name, content in {"one": b"1", "two": b"2", "three": b"1"}.items():
        (tmp_path / name).mkdir()
        wheel_of(tmp_path / name, {"a.py": b"", "_core.pyd": content})
    name = "kafka_assignors-1.2.3-cp311-abi3-win_amd64.whl"
    assert list(differences(tmp_path / "one", tmp_path / "three")) == []
    assert list(differences(tmp_path / "one", tmp_path / "two")) == [f"{name} differs in _core.pyd"]
    (tmp_path / "one" / name).unlink()
    assert list(differences(tmp_path / "one", tmp_path / "two")) == [f"{name} was built once only"]


def test_a_wheel_of_another_commit_is_not_published(tmp_path: Path) -> None:
    path = wheel_of(tmp_path, {"a.py": b"", "b.py": b""})
    of_commit = calendar.timegm((2026, 1, 2, 3, 4, 7))
    assert not publish.of_another_commit(path, of_commit)
    assert not publish.of_another_commit(path, of_commit - 1)
    assert publish.of_another_commit(path, of_commit + 1)


def test_nothing_is_published_that_is_not_a_whole_release(tmp_path: Path) -> None:
    files = [wheel_of(tmp_path, {"a.py": b""})]
    found = publish.obstacles(files, upload=True)
    assert f"{files[0].name} is not of version {release_version.version()}" in found
    assert f"{files[0].name} was not built from HEAD: make wheels builds it" in found
    assert f"{files[0].name}: it has 0 extension modules" in found
    assert "kafka_assignors-*.tar.gz: no such file" in found
    assert any(fault.startswith("HEAD has no tag v") for fault in found)


def test_platforms_are_built_side_by_side_in_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cargo locks its folder: a second build in the same folder would wait, and replace the files of the first one."""
    busy: set[int] = set()
    seen: list[tuple[str, str, int]] = []
    met = threading.Barrier(2, timeout=30)

    def build(platform: platforms.Platform, abi: platforms.Abi, *_: Path, profile: str, stream: int) -> Built:
        assert profile == "release"
        assert stream not in busy
        busy.add(stream)
        met.wait()
        busy.remove(stream)
        met.wait()
        seen.append((platform.name, abi.name, stream))
        return Built(tmp_path / f"{platform.name}-{abi.name}", 1.0, 2.0)

    monkeypatch.setattr(build_wheels, "build", build)
    chosen = platforms.chosen(["macos-arm64", "macos-x86_64"])
    built = build_wheels.build_all(
        chosen, list(platforms.ABIS), tmp_path, tmp_path, tmp_path, profile="release", streams=2
    )
    wanted = [(platform.name, abi.name) for platform in chosen for abi in platforms.ABIS]
    assert [it.path.name for it in built] == ["-".join(each) for each in wanted]
    # Both ABIs of a platform are built in one folder: the second build reuses the crates that do not depend on Python.
    assert len({(name, stream) for name, _, stream in seen}) == len({stream for _, _, stream in seen}) == 2


@pytest.mark.needs("release")
@pytest.mark.first
def test_the_sdist_is_the_same_twice(capfd: pytest.CaptureFixture[str]) -> None:
    """The wheels take long: `make reproduce` compares them."""
    assert reproduce.main(["sdist"]) == 0
    assert capfd.readouterr().out.endswith("built twice, equal byte by byte\n")
