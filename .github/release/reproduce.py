"""Build files of a release twice, in two folders, and compare them byte by byte.

    python .github/release/reproduce.py [--with dist] manylinux-x86_64 sdist

Each build is of a clone of HEAD (or of the commit of `--commit`) in a folder of its own, so that no path, no time and
nothing that an earlier build left can be the same by chance. With `--with` the files of that folder are the first
build. Prints what differs and exits with 1.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


def built(folder: Path, commit: str, names: list[str]) -> Path:
    """The folder with the files that a new clone in this folder builds, from the arguments of build_wheels.py.

    Raises:
        CalledProcessError: the clone or the build failed.
    """
    clone = folder / "kafka-assignors"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "checkout", "--quiet", "--detach", commit], cwd=clone, check=True)
    script = clone / ".github" / "release" / "build_wheels.py"
    subprocess.run([sys.executable, str(script), "--out", str(clone / "dist"), *names], check=True)
    return clone / "dist"


def digests(path: Path) -> dict[str, str]:
    """The SHA-256 of every file in a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: hashlib.sha256(wheel.read(name)).hexdigest() for name in wheel.namelist()}
    with tarfile.open(path) as sdist:
        files = {member.name: sdist.extractfile(member) for member in sdist}
        return {name: hashlib.sha256(file.read()).hexdigest() for name, file in files.items() if file}


def differences(first: Path, second: Path) -> Iterator[str]:
    """The differences between the files of two folders. Each file of the second has to be in the first."""
    for path in sorted(second.iterdir()):
        other = first / path.name
        if not other.exists():
            yield f"{path.name} was built once only"
        elif path.read_bytes() != other.read_bytes():
            ours, theirs = digests(path), digests(other)
            inside = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
            yield f"{path.name} differs in {', '.join(inside) or 'its order, times or attributes'}"


def main(arguments: list[str]) -> int:
    """Returns the exit status: 0, or 1 after printing what differs."""
    parser = argparse.ArgumentParser(description="Build files of a release twice and compare them.")
    parser.add_argument("names", nargs="*", metavar="platform", help="as for build_wheels.py, and its options")
    parser.add_argument("--with", dest="first", type=Path, help="a folder with the files of a build of HEAD")
    parser.add_argument("--commit", default="HEAD", help="the commit that is built; HEAD")
    given, options = parser.parse_known_args(arguments)
    names = [*options, *given.names]
    # HEAD may move while the first build runs.
    wanted = ["git", "rev-parse", "--verify", f"{given.commit}^{{commit}}"]
    commit = subprocess.check_output(wanted, cwd=ROOT, text=True).strip()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory(prefix="another-folder-") as two:
        first = given.first or built(Path(one), commit, names)
        second = built(Path(two) / "deeper", commit, names)
        wrong = list(differences(first, second))
        for path in sorted(second.iterdir()):
            print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
    print("\n".join(wrong) or "built twice, equal byte by byte")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
