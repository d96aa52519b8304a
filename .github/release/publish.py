"""Publish the files of a release, or show what would be published.

    python .github/release/publish.py dist               shows it: checks, statements, the files and their hashes
    python .github/release/publish.py --upload dist      does it

The checks are those of `make wheels`, the files have to be built from HEAD, and the version has to be that of the
changelog and, for an upload, of the tag of HEAD. twine uploads: with a token (TWINE_PASSWORD, or a configured
repository), or as a trusted publisher in a workflow, where none is stored. `verify_published.py` then reads the index.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import check_files
import check_wheels
import statements
from release_version import faults_of, tag_of_head, version

STATEMENTS = statements.ROOT / "target" / "statements"


def of_another_commit(path: Path, seconds: int) -> bool:
    """Whether a wheel is of another commit: all files in a wheel have the time of its commit (build_wheels.py)."""
    year, month, day, hour, minute, second = time.gmtime(seconds)[:6]
    with zipfile.ZipFile(path) as wheel:
        # A zip file stores times in steps of two seconds.
        return {each.date_time for each in wheel.infolist()} != {(year, month, day, hour, minute, second // 2 * 2)}


def obstacles(files: list[Path], *, upload: bool) -> list[str]:
    """Why these files cannot be published, one reason per line."""
    found = faults_of(released=upload)
    found += [f"{path.name} is not of version {version()}" for path in files if f"-{version()}" not in path.name]
    if upload and tag_of_head() != f"v{version()}":
        found.append(f"HEAD has no tag v{version()}: .github/release/release_version.py --tag sets it")
    # The provenance statement names HEAD.
    if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=statements.ROOT).returncode != 0:
        found.append("the sources differ from HEAD: commit or undo what git status shows")
    commit = int(subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=statements.ROOT, text=True))
    other = [path for path in files if path.suffix == ".whl" and of_another_commit(path, commit)]
    found += [f"{path.name} was not built from HEAD: make wheels builds it" for path in other]
    for path in files:
        faults = check_files.of_sdist(path) if path.name.endswith(".tar.gz") else check_files.of_wheel(path)
        found += [f"{path.name}: {fault}" for fault in [*faults, *check_wheels.faults(path)]]
    return [*found, *check_files.of_release(files), *check_wheels.tools(files)]


def main(arguments: list[str]) -> int:
    """Returns the exit status: 0, or 1 after printing why nothing was published."""
    parser = argparse.ArgumentParser(description="Publish the files of a release; without --upload show them.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--upload", action="store_true", help="publish: what is published stays for ever")
    parser.add_argument("--repository", help="twine's name of another index, of the user's configuration")
    given = parser.parse_args(arguments)
    files = sorted(given.folder.iterdir()) if given.folder.is_dir() else []
    found = obstacles(files, upload=given.upload) if files else [f"{given.folder}: no files; make wheels builds them"]
    if found:
        print("\n".join(found))
        return 1
    written = statements.write(files, STATEMENTS)
    print(statements.sums(files), *(f"{path}\n" for path in written), sep="")
    command = [sys.executable, "-m", "twine", "upload", "--non-interactive", "--disable-progress-bar"]
    command += ["--repository", given.repository] if given.repository else []
    if not given.upload:
        print(f"not uploaded: a dry run. --upload would publish these {len(files)} files.")
        return 0
    return subprocess.run([*command, *map(str, files)]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
