"""Check wheels as far as a machine can that does not run them.

    python .github/release/check_wheels.py dist/*

Each file passes `twine check --strict`, each stable-ABI wheel `abi3audit --strict`, each Linux wheel `auditwheel`. The
extension module is for the platform, the libraries and the oldest system of the wheel's tag (extension_files.py). No
file has a path of this machine, and every link of the description leads somewhere. Prints the faults and exits with 1.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from description import relative_links
from extension_files import faults_of
from platforms import of_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
# The folders in which people and CI services keep sources and tools. In an extension module every such text is a leak.
BUILD_PATH = re.compile(
    rb"(?:/(?:root|home|Users|tmp|work|github|builds?|runner)/|[A-Z]:\\(?:Users|a)\\)[\x21-\x7e]{3,60}"
)


def machine_folders(root: Path = ROOT) -> list[bytes]:
    """The folders of this machine that no file of a release may name."""
    cargo = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
    rustup = os.environ.get("RUSTUP_HOME", Path.home() / ".rustup")
    found = {str(folder) for folder in (root, cargo, rustup, tempfile.gettempdir(), sysconfig.get_path("purelib"))}
    return sorted(f"{folder}/".encode() for folder in found)


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files in a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist())
    else:
        with tarfile.open(path) as sdist:
            for member in sdist:
                if file := sdist.extractfile(member):
                    yield member.name, file.read()


def paths_in(path: Path, folders: list[bytes]) -> Iterator[str]:
    """Where a file of a release names a folder of the machine that built it."""
    for name, content in contents(path):
        found = [folder.decode() for folder in folders if folder in content]
        if name.endswith((".so", ".pyd")):
            found += [match[0].decode() for match in BUILD_PATH.finditer(content)][:3]
        yield from (f"{name} names {text}" for text in found)


def dead_links_in(path: Path) -> Iterator[str]:
    """The links of the description that an index would not find."""
    for name, content in contents(path):
        if name.endswith(".dist-info/METADATA") or (name.count("/") == 1 and name.endswith("/PKG-INFO")):
            yield from (f"{name} links to {target}, which no index has" for target in relative_links(content.decode()))


def audited(path: Path, tag: str) -> Iterator[str]:
    """The faults that auditwheel finds: a Linux wheel must run on the oldest systems of its tag."""
    with tempfile.TemporaryDirectory() as nowhere:
        # An empty folder of libraries: this machine's may be of another C library or processor than the wheel.
        command = [sys.executable, "-m", "auditwheel", "show", "--json", "--ldpaths", nowhere, str(path)]
        run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        yield f"auditwheel: {(run.stdout + run.stderr).strip()}"
        return
    said = json.loads(run.stdout)
    if said["sym_tag"] != tag:
        yield f"auditwheel gives it {said['sym_tag']} instead of {tag}"
    # auditwheel takes musl itself for a foreign library, since it looks for musl among the libraries of this machine.
    foreign = set(said["external_libs"]) - ({"libc.so"} if tag.startswith("musl") else set())
    yield from (f"auditwheel: it needs {name}" for name in sorted(foreign))


def faults(path: Path) -> Iterator[str]:
    """The faults of one file, one per line."""
    yield from paths_in(path, machine_folders())
    yield from dead_links_in(path)
    if path.suffix != ".whl":
        return
    try:
        platform, abi = of_wheel(path.name)
    except ValueError as error:
        yield str(error)
        return
    extensions = [content for name, content in contents(path) if name.endswith((".so", ".pyd"))]
    for content in extensions:
        yield from faults_of(platform, abi, content)
    if len(extensions) != 1:
        yield f"it has {len(extensions)} extension modules"
    if platform.format == "elf":
        yield from audited(path, platform.tag)


def tools(paths: list[Path]) -> Iterator[str]:
    """The faults that twine and abi3audit find."""
    commands = [["twine", "check", "--strict", *map(str, paths)]]
    commands += [["abi3audit", "--strict", "--verbose", str(path)] for path in paths if "-abi3-" in path.name]
    for command in commands:
        run = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
        if run.returncode != 0:
            yield f"{command[0]}: {(run.stdout + run.stderr).strip()}"


def main(arguments: list[str]) -> int:
    """Returns the exit status: 0, or 1 after printing the faults."""
    paths = [Path(argument) for argument in arguments]
    wrong = [f"{path.name}: {fault}" for path in paths for fault in faults(path)]
    wrong += tools(paths) if paths else ["no files given"]
    print("\n".join(wrong) or f"{len(paths)} files, checked: {', '.join(path.name for path in paths)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
