"""Build the wheels of a release for every platform, and the sdist, on this one machine.

    python .github/release/build_wheels.py --out dist                          all
    python .github/release/build_wheels.py --out dist macos-arm64 sdist        some

maturin compiles, and zig links: for an old C library, for musl, for macOS and for Windows. What takes part is pinned:
maturin and zig by hash (requirements/release.txt), the crates by Cargo.lock, the compiler by toolchain.toml. Two builds
of one commit give the same bytes wherever the repository lies: times are the commit's, and this machine's paths are
replaced.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

from platforms import ABIS, PLATFORMS, Abi, Platform, chosen

ROOT = Path(__file__).resolve().parents[2]
RUST: str = tomllib.loads(Path(__file__).with_name("toolchain.toml").read_text())["rust"]["version"]
SDIST = "sdist"


def remapped_paths(root: Path, home: Path, cargo: Path) -> list[str]:
    """What rustc writes in place of this machine's folders. Of several prefixes that fit, rustc takes the last."""
    folders = {home: "/home", cargo: "/cargo", root: "/kafka-assignors"}
    # A registry's folder has the name of its host, so that a mirror would give other bytes.
    folders |= dict.fromkeys(sorted((cargo / "registry" / "src").glob("*")), "/crates")
    return [f"--remap-path-prefix={folder}={name}" for folder, name in folders.items()]


def environment(root: Path, target: Path) -> dict[str, str]:
    """The environment of a build: nothing of the machine's own that would reach a wheel.

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
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(remapped_paths(root, Path.home(), cargo)),
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
    """Have the pinned compiler with the standard libraries of these platforms, by rustup.

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
        subprocess.run(["rustup", "target", "add", "--quiet", "--toolchain", RUST, *missing], check=True)


def build(platform: Platform, abi: Abi, out: Path, target: Path, root: Path, profile: str = "release") -> Path:
    """Build one wheel into a folder, as cargo's profile of that name has it.

    Raises:
        CalledProcessError: the build failed; maturin has said why.
    """
    with tempfile.TemporaryDirectory(dir=target) as folder:
        command = [
            "maturin",
            "build",
            "--quiet",
            "--locked",
            "--profile",
            profile,
            "--zig",
            "--target",
            platform.target,
        ]
        command += ["--interpreter", abi.interpreter, *abi.arguments, "--out", folder]
        if platform.compatibility:
            command += ["--compatibility", platform.compatibility]
        # PyO3 is compiled anew for another ABI. In one folder the two would drive each other out of cargo's cache.
        environ = environment(root, target) | {"CARGO_TARGET_DIR": str(target / abi.name)}
        if platform.format == "mach-o":
            frameworks = root / ".github" / "release" / "macos_frameworks"
            environ["CARGO_ENCODED_RUSTFLAGS"] += f"\x1f-Clink-arg=-F{frameworks}"
        if platform.format == "pe":
            environ["CARGO_ZIGBUILD_PYTHON_PATH"] = str(root / ".github" / "release" / "python_with_zig.py")
        subprocess.run(command, cwd=root, env=environ, check=True)
        (built,) = Path(folder).glob("*.whl")
        return without_machine_paths(built, out, root)


def build_sdist(out: Path, target: Path, root: Path) -> Path:
    """Build the source distribution into a folder.

    Raises:
        CalledProcessError: the build failed; maturin has said why.
    """
    with tempfile.TemporaryDirectory(dir=target) as folder:
        command = ["maturin", "sdist", "--out", folder]
        environ = environment(root, target)
        # Any compiler will do: cargo only lists the files.
        del environ["RUSTUP_TOOLCHAIN"]
        subprocess.run(command, cwd=root, env=environ, check=True)
        (built,) = Path(folder).glob("*.tar.gz")
        return Path(shutil.move(built, out / built.name))


def without_machine_paths(wheel: Path, out: Path, root: Path) -> Path:
    """A copy of the wheel whose list of crates names the repository and not where it lies.

    maturin writes the crates of this repository as `path+file://` and their folder. RECORD gets the new hashes.
    """
    folder = f"file://{root}/".encode()
    copy = out / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(copy, "w") as target:
        contents = {entry.filename: source.read(entry) for entry in source.infolist()}
        (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
        boms = [name for name in contents if name.endswith(".cyclonedx.json")]
        rows = list(csv.reader(io.StringIO(contents[record].decode())))
        for name in boms:
            contents[name] = contents[name].replace(folder, b"file:///kafka-assignors/")
            digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=").decode()
            rows = [[name, f"sha256={digest}", str(len(contents[name]))] if row[0] == name else row for row in rows]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        contents[record] = text.getvalue().encode()
        for entry in source.infolist():
            target.writestr(entry, contents[entry.filename], compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
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
    for platform in platforms:
        for abi in [abi for abi in ABIS if abi.name in (given.abi or abis)]:
            began = time.monotonic()
            wheel = build(platform, abi, out, target, root, given.profile)
            print(f"=== wheels: {wheel.name}, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
