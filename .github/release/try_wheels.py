"""Run the wheels of a release on every Python that this machine can run, and record the runs.

    python .github/release/try_wheels.py dist                                 all
    python .github/release/try_wheels.py dist 3.13-arm64 3.14                 some
    python .github/release/try_wheels.py --record docs/figures/releases/tried.json dist

For each Python uv chooses one of the wheels, as it would from an index, and installs it with the packages that the
tests need into an empty folder. The tests are those of core-tests.txt: planning, claims and verification, bytes on
the wire, partitioners, and two consumers on the embedded Kafka. A Python for another processor runs under qemu. The
Pythons come from this machine, out of Debian's packages (debian_pythons.py), and from sources (source_pythons.py).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import debian_pythons
import source_pythons
from platforms import of_wheel
from release_table import Tried, record_tried
from try_wheel import ALONE, HERE, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

# How long the tests of one Python may take, and one test, in seconds.
LIMIT, LIMIT_OF_TEST = 1200, 120
# qemu runs a program ten times slower.
EMULATED = 6


@dataclass(frozen=True, slots=True)
class Source:
    """Where a Python comes from.

    Attributes:
        what: One line for people.
        program: The function that finds, unpacks or builds it, below the folder for Pythons.
        platform: uv's name of the platform, if uv cannot find it out: uv looks for musl in the program that it starts,
            and this program is a script here.
        installer: A Python of the same version for this machine's C library, which uv starts in that case.
        slower: The factor by which its tests may exceed the usual limits.
    """

    what: str
    program: Callable[[Path], Path]
    platform: str | None = None
    installer: Callable[[Path], Path] | None = None
    slower: int = 1


def of_this_machine(version: str, folder: Path) -> Path:
    """A Python that is installed: on the path, or pyenv's, whose programs on the path run one version only.

    Raises:
        SystemExit: there is none.
    """
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin"))
    for place in [*os.environ["PATH"].split(os.pathsep), *map(str, pyenv)]:
        program = Path(place) / f"python{version}"
        if program.exists() and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
            return program
    sys.exit(f"there is no Python {version} on this machine")


def _debian(version: str) -> Source:
    return Source("Debian's", partial(debian_pythons.python, version=version))


def _emulated(version: str) -> Source:
    program = partial(debian_pythons.python, version=version, architecture="arm64")
    return Source("Debian's, under qemu", program, slower=EMULATED)


SOURCES = {
    "3.11": Source("the machine's", partial(of_this_machine, "3.11")),
    "3.12": Source("the machine's", partial(of_this_machine, "3.12")),
    "3.13": _debian("3.13"),
    "3.14": _debian("3.14"),
    "3.11-arm64": _emulated("3.11"),
    "3.13-arm64": _emulated("3.13"),
    "3.14-arm64": _emulated("3.14"),
}
SOURCES["3.13-musl"] = Source(
    "built from Debian's sources, on musl",
    source_pythons.musl,
    platform=source_pythons.PLATFORM,
    installer=SOURCES[source_pythons.VERSION].program,
)


def installed(source: Source, pythons: Path, dist: Path, folder: Path) -> str:
    """Install a wheel and the packages of the tests for a Python, and return which wheel it was.

    Raises:
        CalledProcessError: no wheel fits this Python, or a package is missing.
    """
    program = (source.installer or source.program)(pythons)
    install = ["uv", "pip", "install", "--quiet", "--python", str(program), "--target", str(folder)]
    if source.platform:
        install += ["--python-platform", source.platform]
    tests = ["--require-hashes", "--requirement", str(ROOT / "requirements" / "try.txt")]
    subprocess.run([*install, *tests], check=True)
    ours = ["--no-index", "--no-deps", "--find-links", str(dist), "--prerelease", "allow", "kafka-assignors"]
    subprocess.run([*install, *ours], check=True)
    (described,) = folder.glob("kafka_assignors-*.dist-info/WHEEL")
    (version,) = (path.name.split("-")[1].removesuffix(".dist") for path in folder.glob("kafka_assignors-*.dist-info"))
    tag = re.findall(r"^Tag: (\S+)$", described.read_text(), re.MULTILINE)[-1]
    platform, abi = of_wheel(f"kafka_assignors-{version}-{tag}.whl")
    return f"{platform.name} {abi.name}"


def tried(name: str, dist: Path, pythons: Path, *, profile: str = "release") -> Tried:
    """Use a wheel on one Python, and run the tests there.

    Raises:
        CalledProcessError: a step or a test failed, and has said why.
    """
    source = SOURCES[name]
    program = source.program(pythons)
    with tempfile.TemporaryDirectory() as folder:
        wheel = installed(source, pythons, dist, Path(folder))
        # With CI set, Hypothesis has no deadlines, which an emulated processor would miss.
        environ = os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
        environ.pop("PYTHONHOME", None)
        run = partial(subprocess.run, cwd=tempfile.gettempdir(), env=environ, text=True, timeout=LIMIT * source.slower)
        python = [str(program), "-P"]
        alone = ALONE.replace('"release"', f'"{profile}"')
        run([*python, "-c", alone], check=True, stdout=subprocess.PIPE)
        tests = [str(ROOT / line) for line in (HERE / "core-tests.txt").read_text().split()]
        options = ["--noconftest", "-o", "addopts=-ra --strict-markers", "-q", "-p", "no:cacheprovider"]
        options += ["--timeout", str(LIMIT_OF_TEST * source.slower)]
        began = time.monotonic()
        tested = run([*python, "-m", "pytest", *options, f"--rootdir={ROOT}", *tests], stdout=subprocess.PIPE)
        found = re.fullmatch(
            r"(\d+) passed in \S+s(?: \([\d:]+\))?", tested.stdout.strip().splitlines()[-1].strip("= ")
        )
        if tested.returncode != 0 or found is None:
            print(tested.stdout)
            raise subprocess.CalledProcessError(tested.returncode or 1, tested.args)
        version = run([*python, "-c", VERSION], check=True, stdout=subprocess.PIPE).stdout.strip()
        return Tried(wheel, version, source.what, int(found[1]), round(time.monotonic() - began))


VERSION = """
import platform, sys
free = " free-threaded" if "free-threading" in sys.version else ""
print(f"{platform.python_version()}{free}")
"""


def main(arguments: list[str]) -> None:
    """Try what the arguments name, or everything."""
    parser = argparse.ArgumentParser(description="Run the wheels of a release on every Python that there is.")
    parser.add_argument("dist", type=Path, help="the folder with the wheels")
    parser.add_argument("names", nargs="*", metavar="python", help=", ".join(SOURCES))
    parser.add_argument("--pythons", type=Path, default=ROOT / "target" / "pythons", help="the folder for Pythons")
    parser.add_argument("--record", type=Path, help="a file for the results: docs/figures/releases/tried.json")
    parser.add_argument(
        "--profile", default="release", help="the build_profile of the wheels: debug for those of cargo's dev profile"
    )
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(SOURCES):
        parser.error(f"there is no Python called {', '.join(sorted(unknown))}; there are {', '.join(SOURCES)}")
    results = []
    for name in given.names or SOURCES:
        result = tried(name, given.dist.resolve(), given.pythons.resolve(), profile=given.profile)
        results.append(result)
        print(
            f"{result.wheel}: Python {result.python} ({result.by}), {result.passed} tests, {result.seconds} s",
            flush=True,
        )
        if given.record:
            record_tried(given.record, results)


if __name__ == "__main__":
    main(sys.argv[1:])
