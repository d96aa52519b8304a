"""Build the wheels of a release for every platform, and the sdist, on this one machine.

    python .github/release/build_wheels.py --out dist                          all
    python .github/release/build_wheels.py --out dist macos-arm64 sdist        some

maturin compiles, and zig links: for an old C library, for musl, for macOS and for Windows. The tools are pinned:
maturin and zig by hash (requirements/release.txt), the crates by Cargo.lock, the compiler by toolchain.toml. Two builds
of one commit give the same bytes wherever the repository lies: times are the commit's, and this machine's paths are
replaced.

The last half of a build is one thread, which optimises all crates as one. So two platforms are built at a time, each in
a folder of cargo's own: a second build in the same folder would wait for its lock. The wheels of one platform are built
in one folder one after the other, so that the second build reuses the crates that do not depend on Python.
"""

from __future__ import annotations

import argparse
import base64
import csv
import gzip
import hashlib
import io
import os
import queue
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import release_table
from description import absolute
from platforms import ABIS, PLATFORMS, Abi, Platform, chosen
from reproducible_mach_o import reproducible

ROOT = Path(__file__).resolve().parents[2]
RUST: str = tomllib.loads(Path(__file__).with_name("toolchain.toml").read_text())["rust"]["version"]
SDIST = "sdist"


@dataclass(frozen=True, slots=True)
class Built:
    """A wheel, and the times of its build.

    Attributes:
        path: The file.
        seconds: The elapsed time.
        processor_seconds: The processor time, which other work on the machine hardly changes.
    """

    path: Path
    seconds: float
    processor_seconds: float


def remapped_paths(root: Path, home: Path, cargo: Path, target: Path) -> list[str]:
    """rustc's options to replace this machine's folders. Of several prefixes that fit, rustc takes the last."""
    folders = {home: "/home", cargo: "/cargo", root: "/kafka-assignors"}
    # A registry's folder has the name of its host, so that a mirror would give other bytes.
    folders |= dict.fromkeys(sorted((cargo / "registry" / "src").glob("*")), "/crates")
    # Crates generate sources below this folder, and chance decides in which folder a platform is built.
    folders[target] = "/target"
    return [f"--remap-path-prefix={folder}={name}" for folder, name in folders.items()]


def environment(root: Path, target: Path, cargo_target: Path) -> dict[str, str]:
    """The environment of a build, without those variables of the machine that would change a wheel.

    Args:
        root: The repository.
        target: The folder with the caches of all builds.
        cargo_target: The folder of cargo for this build.

    Raises:
        CalledProcessError: `root` is no git repository; its commit gives the time.
    """
    own = ("MAKE", "MFLAGS", "RUSTFLAGS", "CARGO_BUILD", "CARGO_PROFILE")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    cargo = Path(environ.get("CARGO_HOME", Path.home() / ".cargo")).resolve()
    epoch = subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=root, text=True).strip()
    caches = target / "zig"
    return environ | {
        "SOURCE_DATE_EPOCH": epoch,
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(remapped_paths(root, Path.home(), cargo, cargo_target)),
        "CARGO_TARGET_DIR": str(cargo_target),
        "CARGO_INCREMENTAL": "0",
        # The wheel is stripped: lines for a debugger would only cost time.
        "CARGO_PROFILE_RELEASE_DEBUG": "false",
        "RUSTUP_TOOLCHAIN": RUST,
        # The oldest macOS with processors of both kinds; zig and rustc read it.
        "MACOSX_DEPLOYMENT_TARGET": "11.0",
        "CARGO_ZIGBUILD_CACHE_DIR": str(caches / "zigbuild"),
        "ZIG_GLOBAL_CACHE_DIR": str(caches / "global"),
        "ZIG_LOCAL_CACHE_DIR": str(caches / "local"),
        # zig is a program in this environment.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }


def add_targets(platforms: list[Platform]) -> None:
    """Install the pinned compiler and the standard libraries of these platforms, with rustup.

    Raises:
        SystemExit: rustup is missing, or cannot have one of them.
    """
    if shutil.which("rustup") is None:
        sys.exit(f"rustup is missing: the wheels need Rust {RUST} with the standard libraries of other platforms.")
    names = [platform.target for platform in platforms]
    listed = ["rustup", "target", "list", "--installed", "--toolchain", RUST]
    had = subprocess.run(listed, capture_output=True, text=True)
    if had.returncode != 0:
        subprocess.run(["rustup", "toolchain", "install", "--profile", "minimal", RUST], check=True)
    if missing := sorted(set(names) - set(had.stdout.split())):
        subprocess.run(["rustup", "--quiet", "target", "add", "--toolchain", RUST, *missing], check=True)


def build(
    platform: Platform, abi: Abi, out: Path, target: Path, root: Path, *, profile: str = "release", stream: int = 0
) -> Built:
    """Build one wheel into a folder, as cargo's profile of that name has it.

    Args:
        platform: Where the wheel runs.
        abi: For which Pythons.
        out: The folder for the wheel.
        target: The folder for caches and compiled files.
        root: The repository.
        profile: cargo's profile.
        stream: Which of the folders of cargo; builds at the same time have different ones.

    Raises:
        CalledProcessError: the build failed; maturin has said why.
    """
    command = ["maturin", "build", "--quiet", "--locked", "--profile", profile, "--zig", "--target", platform.target]
    command += ["--interpreter", abi.interpreter, *abi.arguments]
    if platform.compatibility:
        command += ["--compatibility", platform.compatibility]
    environ = environment(root, target, target / f"cargo-{stream}")
    if platform.format == "mach-o":
        # Relative to the workspace, where cargo starts the linker: cargo hashes the flags into the names of symbols.
        environ["CARGO_ENCODED_RUSTFLAGS"] += "\x1f-Clink-arg=-F.github/release/macos_frameworks"
    if platform.format == "pe":
        environ["CARGO_ZIGBUILD_PYTHON_PATH"] = str(root / ".github" / "release" / "python_with_zig.py")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=target) as folder:
        process = subprocess.Popen([*command, "--out", folder], cwd=root, env=environ)
        # The usage includes the children that the process has waited for: cargo, the compiler, zig.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command)
        (built,) = Path(folder).glob("*.whl")
        path = finished_wheel(built, out, root)
    return Built(path, time.monotonic() - began, used.ru_utime + used.ru_stime)


def build_all(
    platforms: list[Platform], abis: list[Abi], out: Path, target: Path, root: Path, *, profile: str, streams: int
) -> list[Built]:
    """Build the wheels of these platforms and ABIs, some platforms at a time; print the times of each build.

    Raises:
        CalledProcessError: as `build`. It is raised when the other running builds have ended.
    """
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for each in range(streams):
        free.put(each)

    def of_platform(platform: Platform) -> list[Built]:
        stream, found = free.get(), []
        try:
            for abi in abis:
                built = build(platform, abi, out, target, root, profile=profile, stream=stream)
                print(
                    f"=== wheels: {built.path.name}, {built.seconds:.0f} s, "
                    f"{built.processor_seconds:.0f} s of a processor",
                    flush=True,
                )
                found.append(built)
        finally:
            free.put(stream)
        return found

    with ThreadPoolExecutor(streams) as pool:
        running = [pool.submit(of_platform, platform) for platform in platforms]
        try:
            return [built for each in running for built in each.result()]
        finally:
            pool.shutdown(cancel_futures=True)


def build_sdist(out: Path, target: Path, root: Path) -> Path:
    """Build the source distribution into a folder.

    Raises:
        CalledProcessError: the build failed; maturin has said why.
    """
    with tempfile.TemporaryDirectory(dir=target) as folder:
        command = ["maturin", "sdist", "--out", folder]
        environ = environment(root, target, target / "cargo-0")
        # Any compiler will do: cargo only lists the files.
        del environ["RUSTUP_TOOLCHAIN"]
        subprocess.run(command, cwd=root, env=environ, check=True)
        (built,) = Path(folder).glob("*.tar.gz")
        return finished_sdist(built, out, root)


def finished_wheel(wheel: Path, out: Path, root: Path) -> Path:
    """A copy of the wheel as it is published.

    README's links become addresses. In the list of crates, where maturin writes `path+file://` and the folder of the
    sources, the folder is replaced. In an extension for macOS, the bytes that depend on chance are replaced, too
    (reproducible_mach_o.py). RECORD gets the new hashes.
    """
    folder = f"file://{root}/".encode()
    copy = out / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(copy, "w") as target:
        contents = {entry.filename: source.read(entry) for entry in source.infolist()}
        changed = {}
        for name, content in contents.items():
            if name.endswith(".cyclonedx.json"):
                changed[name] = content.replace(folder, b"file:///kafka-assignors/")
            elif name.endswith(".dist-info/METADATA"):
                changed[name] = absolute(content.decode(), wheel.name.split("-")[1], root).encode()
            elif name.endswith(".so") and "-macosx_" in wheel.name:
                changed[name] = reproducible(content)
        (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(io.StringIO(contents[record].decode())))
        rows = [_recorded(row[0], changed[row[0]]) if row[0] in changed else row for row in rows]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        contents |= changed | {record: text.getvalue().encode()}
        for entry in source.infolist():
            target.writestr(entry, contents[entry.filename], compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
    return copy


def _recorded(name: str, content: bytes) -> list[str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return [name, f"sha256={digest}", str(len(content))]


def finished_sdist(sdist: Path, out: Path, root: Path) -> Path:
    """A copy of the source distribution as it is published: README's links are addresses in its PKG-INFO."""
    copy = out / sdist.name
    version = sdist.name.removesuffix(".tar.gz").split("-")[1]
    with (
        tarfile.open(sdist) as source,
        copy.open("wb") as file,
        # Without a file name and a time in the header, so that two builds give the same bytes.
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in source:
            content = source.extractfile(member)
            read = content.read() if content else b""
            if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO"):
                read = absolute(read.decode(), version, root).encode()
                member.size = len(read)
            target.addfile(member, io.BytesIO(read))
    return copy


def main(arguments: list[str]) -> None:
    """Build what the arguments name, or everything."""
    parser = argparse.ArgumentParser(description="Build the wheels of a release, and the sdist.")
    parser.add_argument("names", nargs="*", metavar="platform", help=f"{SDIST}, {', '.join(p.name for p in PLATFORMS)}")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the files; what is in it stays")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (this one)")
    abis = [abi.name for abi in ABIS]
    parser.add_argument("--abi", choices=abis, action="append", help="wheels of this ABI only; may be repeated")
    parser.add_argument("--profile", default="release", help="cargo's profile; dev shows sooner that a platform builds")
    parser.add_argument("--at-a-time", type=int, default=2, metavar="PLATFORMS", help="how many are built at once: 2")
    parser.add_argument("--record", type=Path, help="a file for what was built: docs/figures/releases/built.json")
    given = parser.parse_args(arguments)
    root, out = given.root.resolve(), given.out.resolve()
    target = root / "target" / "wheels-of-release"
    for folder in (out, target):
        folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in given.names if name != SDIST]
    try:
        platforms = chosen(names) if names or not given.names else []
    except ValueError as error:
        parser.error(str(error))
    if platforms:
        add_targets(platforms)
    if SDIST in given.names or not given.names:
        print(f"=== wheels: {build_sdist(out, target, root).name}", flush=True)
    began = time.monotonic()
    wheels = build_all(
        platforms,
        [abi for abi in ABIS if abi.name in (given.abi or abis)],
        out,
        target,
        root,
        profile=given.profile,
        streams=given.at_a_time,
    )
    if wheels:
        total = sum(built.processor_seconds for built in wheels)
        print(
            f"=== wheels: {len(wheels)} in {time.monotonic() - began:.0f} s, {total:.0f} s of a processor", flush=True
        )
    if given.record:
        release_table.record_built(given.record, [(it.path, it.processor_seconds) for it in wheels], given.profile)


if __name__ == "__main__":
    main(sys.argv[1:])
