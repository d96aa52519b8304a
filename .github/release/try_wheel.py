"""Install the package from a folder of wheels (or from one file) into an empty environment, and use it there.

    python .github/release/try_wheel.py dist

First the wheel is installed alone, since it has no dependencies. Then the packages are added that the tests in
core-tests.txt need; these tests need no client, no JVM and no Spark.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

# It runs without pip: it imports only the standard library and the wheel.
ALONE = """
import importlib.metadata, sys
before = set(sys.modules)
from kafka_assignors import Group, Member, StickyAssignor, _core
plan = StickyAssignor().assign(Group(topics={"orders": 12}, members=[Member("a", ["orders"]), Member("b", ["orders"])]))
assert plan.verify(require_optimal=True).optimal and sum(map(len, plan["a"].values())) == 6
assert _core.build_profile == "release", _core.build_profile
floors = [name for name in dir(_core) if name.endswith("_floor")]
assert not floors, f"{floors} are of the feature `bench`, with which no wheel is published"
needed = [it for it in importlib.metadata.requires("kafka-assignors") or () if "extra ==" not in it]
assert not needed, needed
foreign = {name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names - {"kafka_assignors"}
assert not foreign, foreign
if sys.abiflags == "t" or "free-threading" in sys.version:
    assert not sys._is_gil_enabled(), "the extension turned the GIL on"
print("alone:", importlib.metadata.version("kafka-assignors"), "on", sys.version)
"""


def main(arguments: list[str]) -> None:
    """Raise `CalledProcessError` if a step fails."""
    (given,) = arguments
    found = Path(given).resolve()
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        if found.is_dir():
            # Without an index pip can only choose one of these wheels.
            run([*pip, "--no-index", "--find-links", str(found), "--pre", "kafka-assignors"])
        else:
            run([*pip, str(found)])
        run([python, "-P", "-c", ALONE])
        run([*pip, "--require-hashes", "--requirement", str(ROOT / "requirements" / "try.txt")])
        # Without the conftest, which imports clients, and uses options of plugins that are not installed here.
        tests = [str(ROOT / line) for line in (HERE / "core-tests.txt").read_text().split()]
        options = ["--noconftest", "-o", "addopts=-ra --strict-markers", "-q", "-p", "no:cacheprovider"]
        run([python, "-P", "-m", "pytest", *options, f"--rootdir={ROOT}", *tests])


def run(command: list[str]) -> None:
    """Run a command in another folder than the sources, so that nothing is imported from them."""
    print("$", *command[:6], "…" if len(command) > 6 else "", flush=True)
    subprocess.run(command, check=True, cwd=tempfile.gettempdir())


if __name__ == "__main__":
    main(sys.argv[1:])
