"""`make matrix`: the clients' tests on every supported release of each client, each in an environment of its own.

    python -m support.matrix --wheel target/wheels/dev/*.whl            all of them
    python -m support.matrix --wheel ... --ends                          the oldest and the newest of each client, but
                                                                         for those that `make test` has run already
    python -m support.matrix --wheel ... --only kafka-python-2           those whose name begins so
    python -m support.matrix --lock                                      requirements/clients.txt again, without a run

An environment has the release, the newest releases of the other two clients, which the tests use beside it, our wheel,
and what runs tests. uv links them from its cache, so that the second environment costs a second. Results are kept in
docs/figures/clients/matrix.json, from which the table in docs/clients.md is written.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from support.releases import CLIENTS, NEWEST, Environment, ends, environments

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "target" / "matrix"
LOCKED = ROOT / "requirements" / "clients.txt"
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
RESULTS = ROOT / "docs" / "figures" / "clients" / "matrix.json"
PAGE = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- written by make matrix -->", "<!-- end of what make matrix writes -->"
# If the tests of an environment fail, so many lines of its log are printed.
FAILURE_LINES = 300
# Unpacks Debian's Python of a version that is missing on this machine.
DEBIAN_PYTHONS = ROOT / ".github" / "release" / "debian_pythons.py"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Warnings of old clients on newer Pythons. Our code does not cause them, and the newest releases do not give them.
IGNORED = (
    "ignore::DeprecationWarning",
    "ignore::ImportWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::kafka_assignors.errors.ClientReleaseWarning",
)


def uv() -> str:
    """The installer beside this interpreter."""
    return str(Path(sys.executable).with_name("uv"))


def installed_pythons(versions: Sequence[str]) -> dict[str, str]:
    """The interpreters of these versions: those that uv finds on this machine, else those of Debian's packages."""
    found = {PYTHONS[0]: sys.executable} if sys.version_info[:2] == (3, 11) else {}
    for each in versions:
        if each in found:
            continue
        find = [uv(), "python", "find", "--no-project", "--no-python-downloads", each]
        unpack = [sys.executable, "-B", str(DEBIAN_PYTHONS), str(ROOT / "target" / "pythons"), each]
        for command in (find, unpack):
            answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
            if answer.returncode == 0:
                found[each] = answer.stdout.strip()
                break
    return found


def locked() -> dict[str, str]:
    """Each tested release as a requirement with its hashes, by `package==release`."""
    blocks = re.split(r"\n(?=[a-z])", LOCKED.read_text())
    return {block.split(" ", 1)[0]: block for block in blocks if not block.startswith("#")}


def lock() -> None:
    """Writes requirements/clients.txt."""
    blocks = []
    for package, client in CLIENTS.items():
        for release in client.releases:
            with tempfile.TemporaryDirectory() as folder:
                asked = Path(folder, "client.in")
                asked.write_text(f"{package}=={release}\n")
                options = ["--quiet", "--no-config", "--no-deps", "--no-header", "--no-annotate", "--universal"]
                options += ["--generate-hashes", "--python-version", PYTHONS[0]]
                command = [uv(), "pip", "compile", *options, str(asked)]
                blocks.append(subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout)
    head = "# The releases that `make matrix` tests, each with its hashes. This file was made by: make lock\n"
    LOCKED.write_text(head + "".join(blocks))


def runs_here(environment: Environment) -> bool:
    """Whether this program runs on the Python and the releases of an environment: `make test` has run its tests."""
    releases = NEWEST | {environment.package: environment.release}
    installed = {package: version(package) for package in releases}
    return environment.python == ".".join(map(str, sys.version_info[:2])) and installed == releases


def make(environment: Environment, interpreter: str, wheel: Path) -> Path:
    """Makes the environment. Returns its interpreter."""
    folder = FOLDER / environment.name
    python = folder / "bin" / "python"
    requirements = locked()
    wanted = NEWEST | {environment.package: environment.release}
    if not python.exists():
        subprocess.run([uv(), "venv", "--quiet", "--no-project", "--python", interpreter, str(folder)], check=True)
    listed = folder / "clients.txt"
    listed.write_text("\n".join(requirements[f"{package}=={release}"] for package, release in wanted.items()))
    install = [uv(), "pip", "install", "--quiet", "--no-config", "--python", str(python)]
    constraints = ["--constraint", str(_constraints(folder))]
    groups = ["--group", f"{ROOT / 'pyproject.toml'}:matrix"]
    subprocess.run([*install, "--require-hashes", *constraints, *groups, "--requirement", str(listed)], check=True)
    subprocess.run([*install, "--no-deps", "--reinstall", str(wheel)], check=True)
    return python


def _constraints(folder: Path) -> Path:
    """The constraints of everything but the three clients."""
    blocks = re.split(r"\n(?=[a-zA-Z0-9])", CONSTRAINTS.read_text())
    path = folder / "constraints.txt"
    path.write_text("\n".join(block for block in blocks if block.split("==")[0] not in CLIENTS))
    return path


def test(environment: Environment, python: Path, workers: int) -> dict[str, int]:
    """Runs the tests. Returns how many passed and failed."""
    client = CLIENTS[environment.package]
    folder = FOLDER / environment.name
    report, log = folder / "tests.xml", folder / "tests.log"
    report.unlink(missing_ok=True)
    command = [str(python), "-P", "-m", "pytest", "-v", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += ["-n", str(workers), "--dist", "loadgroup", "-m", "not needs", "-k", client.names]
    # A signal does not reach a process that waits inside of librdkafka; therefore a thread ends the process. xdist may
    # wait for ever for a new process in its place; therefore it may start none.
    command += ["--timeout-method=thread", "--max-worker-restart=0"]
    command += [argument for warning in IGNORED for argument in ("-W", warning)]
    command += [f"tests/{name}" for name in client.tests]
    setting = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with log.open("w") as output:
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env=setting | {"KAFKA_ASSIGNORS_INSTALLED": "1"},
            stdout=output,
            stderr=output,
            check=False,
        )
    counts = {"passed": 0, "failed": 1}
    if report.exists():
        (suite,) = ElementTree.parse(report).getroot()
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        counts = {"passed": int(suite.get("tests", 0)) - failed, "failed": failed}
    if ended.returncode:
        counts["failed"] = max(1, counts["failed"])
    return counts


def table(results: dict[str, dict[str, int]]) -> str:
    """The results as a table: a row for each release, a column for each Python."""
    seen = {environment.name: environment for environment in environments(list(PYTHONS))}
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for name, counts in results.items():
        environment = seen.get(name)
        if environment is None:
            continue
        what = f"{counts['passed']} passed" + (f", {counts['failed']} failed" if counts["failed"] else "")
        rows.setdefault((environment.package, environment.release), {})[environment.python] = what
    pythons = [python for python in PYTHONS if any(python in row for row in rows.values())]
    lines = [f"| client | release | {' | '.join(f'Python {python}' for python in pythons)} |"]
    lines.append("|---" * (len(pythons) + 2) + "|")
    for package, client in CLIENTS.items():
        for release in client.releases:
            row = rows.get((package, release))
            if row is not None:
                lines.append(f"| {package} | {release} | {' | '.join(row.get(python, '') for python in pythons)} |")
    return "\n".join(lines)


def write(results: dict[str, dict[str, int]]) -> None:
    """Puts the table into its page."""
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}")


def keep(environment: Environment, counts: dict[str, int]) -> None:
    """Adds one result to the results that are kept, and writes the table."""
    results: dict[str, dict[str, int]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[environment.name] = counts
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    write(results)


def main() -> int:
    """The program. Ends with 1 if a test failed."""
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--ends", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--write-nothing", action="store_true", help="leave the results and the table as they are")
    parser.add_argument("--lock", action="store_true")
    options = parser.parse_args()
    if options.lock:
        lock()
        return 0
    pythons = installed_pythons(PYTHONS[:1] if options.ends else PYTHONS)
    versions = [each for each in PYTHONS if each in pythons]
    if not options.ends:
        for each in PYTHONS:
            if each not in pythons:
                print(f"Python {each}: not on this machine, so none of its environments runs", flush=True)
    wanted = ends(versions) if options.ends else environments(versions)
    wanted = [each for each in wanted if each.name.startswith(options.only)]
    failed = 0
    for environment in wanted:
        if options.ends and runs_here(environment):
            print(f"{environment.name}: what this environment has, so `make test` runs its tests", flush=True)
            continue
        python = make(environment, pythons[environment.python], options.wheel)
        counts = test(environment, python, options.workers)
        failed += counts["failed"]
        print(f"{environment.name}: {counts['passed']} passed, {counts['failed']} failed", flush=True)
        if counts["failed"]:
            # The output must contain the log: the files of CI's machine are deleted after the run.
            log = (FOLDER / environment.name / "tests.log").read_text()
            print("\n".join(line[:500] for line in log.splitlines()[-FAILURE_LINES:]), flush=True)
        if not options.write_nothing:
            keep(environment, counts)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
