"""Check that these are the files of a release, and that they contain the files of the repository.

    python .github/release/check_files.py target/wheels/*.whl
    python .github/release/check_files.py --release dist/*

A wheel contains the extension, the Python files and types of the repository under python/, and its metadata. The sdist
contains the files that are needed to build a wheel, but no tests, and no files that git ignores. With `--release` there
must be the sdist and one wheel for each platform and ABI of platforms.py, all of one version. Prints the errors and
exits with 1.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from platforms import expected

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = re.compile(r"kafka_assignors/_core(\.abi3|\.cpython-\w+-[\w-]+|\.cp\w+-\w+)?\.(so|pyd)")
# The metadata that maturin adds to the wheel, with the list of its crates (an SBOM, PEP 770).
DESCRIPTION = re.compile(
    r"kafka_assignors-[^/]+\.dist-info/"
    r"(METADATA|WHEEL|RECORD|entry_points\.txt|licenses/LICENSE|sboms/kafka-assignors-python\.cyclonedx\.json)"
)
# The contents of an sdist: the two crates, the package, and the files that pyproject.toml names.
SDIST = re.compile(r"PKG-INFO|Cargo\.(toml|lock)|LICENSE|README\.md|pyproject\.toml|python/.*|rust/(core|python)/.*")


def tracked(*folders: str) -> set[str]:
    """The files in these folders that git tracks or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(listed.stdout.split("\n")) - {""}


def of_wheel(path: Path) -> list[str]:
    """The errors of a wheel, one per line."""
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
    """The errors of an sdist, one per line."""
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    known = tracked() | {"PKG-INFO"}
    needed = {name for name in tracked("python", "rust/core/src", "rust/python") if not name.endswith(".md")}
    wrong = [f"{name} is missing" for name in sorted(needed - names)]
    return wrong + [
        f"{name} does not belong there" for name in sorted(names) if name not in known or not SDIST.fullmatch(name)
    ]


def of_release(paths: list[Path]) -> list[str]:
    """The files that a release lacks, and those that it must not have, one per line."""
    patterns = expected()
    wrong = []
    for pattern in patterns:
        found = [path.name for path in paths if fnmatch.fnmatchcase(path.name, pattern)]
        if len(found) != 1:
            wrong.append(f"{pattern}: {found or 'no such file'}")
    unexpected = [path for path in paths if not any(fnmatch.fnmatchcase(path.name, pattern) for pattern in patterns)]
    wrong += [f"{path.name}: no platform has it" for path in unexpected]
    versions = {re.split(r"-|\.tar\.gz", path.name)[1] for path in paths}
    if len(versions) > 1:
        wrong.append(f"files of several versions: {sorted(versions)}")
    return wrong


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0, or 1 after printing the errors."""
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
