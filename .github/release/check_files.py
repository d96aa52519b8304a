"""Are these the files of a release, and is in them what the repository has?

    python .github/release/check_files.py target/wheels/*.whl
    python .github/release/check_files.py --release dist/*

Every wheel holds the extension, the Python files and types of the repository under python/, and what describes it; the
sdist holds what is needed to build one, and neither tests nor anything that git ignores. With `--release` there must be
one file for each line of expected.txt, all of one version. Prints what is wrong and exits with 1.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).with_name("expected.txt")
EXTENSION = re.compile(r"kafka_assignors/_core(\.abi3|\.cpython-\w+-[\w-]+|\.cp\w+-\w+)?\.(so|pyd)")
# What maturin adds to describe the wheel; the list of the crates inside (an SBOM, PEP 770) is among it.
DESCRIPTION = re.compile(
    r"kafka_assignors-[^/]+\.dist-info/"
    r"(METADATA|WHEEL|RECORD|entry_points\.txt|licenses/LICENSE|sboms/kafka-assignors-python\.cyclonedx\.json)"
)
# An sdist is for building: the two crates, the package, and what pyproject.toml names.
SDIST = re.compile(r"PKG-INFO|Cargo\.(toml|lock)|LICENSE|README\.md|pyproject\.toml|python/.*|rust/(core|python)/.*")


def tracked(*folders: str) -> set[str]:
    """The files in these folders that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(listed.stdout.split("\n")) - {""}


def of_wheel(path: Path) -> list[str]:
    """What is wrong with a wheel, a line each."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
    sources = {name.removeprefix("python/") for name in tracked("python")}
    extensions = {name for name in names if EXTENSION.fullmatch(name)}
    described = {name for name in names if DESCRIPTION.fullmatch(name)}
    wrong = [f"{name} is missing" for name in sorted(sources - names)]
    wrong += [f"{name} does not belong there" for name in sorted(names - sources - extensions - described)]
    if len(extensions) != 1:
        wrong.append(f"it has {len(extensions)} extension modules instead of one")
    if len(described) != 6:
        wrong.append(f"of its description there are {sorted(described)} only")
    return wrong


def of_sdist(path: Path) -> list[str]:
    """What is wrong with an sdist, a line each."""
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    known = tracked() | {"PKG-INFO"}
    needed = {name for name in tracked("python", "rust/core/src", "rust/python") if not name.endswith(".md")}
    wrong = [f"{name} is missing" for name in sorted(needed - names)]
    return wrong + [
        f"{name} does not belong there" for name in sorted(names) if name not in known or not SDIST.fullmatch(name)
    ]


def of_release(paths: list[Path]) -> list[str]:
    """What is missing from a release or does not belong to it, a line each."""
    patterns = [line for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#")]
    wrong = []
    for pattern in patterns:
        found = [path.name for path in paths if fnmatch.fnmatchcase(path.name, pattern)]
        if len(found) != 1:
            wrong.append(f"{pattern}: {found or 'no such file'}")
    unexpected = [path for path in paths if not any(fnmatch.fnmatchcase(path.name, pattern) for pattern in patterns)]
    wrong += [f"{path.name}: expected.txt does not name it" for path in unexpected]
    versions = {re.split(r"-|\.tar\.gz", path.name)[1] for path in paths}
    if len(versions) > 1:
        wrong.append(f"files of several versions: {sorted(versions)}")
    return wrong


def main(arguments: list[str]) -> int:
    """How a process ends: 0, or 1 with what is wrong printed."""
    paths = [Path(argument) for argument in arguments if argument != "--release"]
    wrong = [] if paths else ["no files given"]
    for path in paths:
        faults = of_sdist(path) if path.name.endswith(".tar.gz") else of_wheel(path)
        wrong += [f"{path.name}: {fault}" for fault in faults]
    if "--release" in arguments:
        wrong += of_release(paths)
    print("\n".join(wrong) or f"{len(paths)} files, all as they should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
