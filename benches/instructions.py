"""Instructions and allocations of the core, which do not depend on the machine's load: callgrind counts the former.

The program that is counted is the core's example `gate`, built as the wheel is.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from race.points import Point

__all__ = ["CASES", "GROWTH", "Case", "Count", "build", "count"]

ROOT = Path(__file__).parent.parent
# In the program: what is collected is this function and what it calls.
_COUNTED = "*gate::counted*"


@dataclass(frozen=True)
class Case:
    """A strategy and the group that it plans."""

    strategy: str
    point: Point

    @property
    def name(self) -> str:
        return f"{self.strategy}, {self.point.name}"


@dataclass(frozen=True)
class Count:
    """What one rebalance takes."""

    instructions: float
    allocations: float


CASES = [
    Case("sticky", Point(200, 100, 100, "equal", "fresh")),
    Case("sticky", Point(200, 100, 100, "equal", "one joins")),
    Case("sticky", Point(200, 100, 100, "equal", "one joins", racks=True)),
    Case("sticky", Point(200, 100, 100, "one odd member", "one leaves")),
    Case("sticky", Point(200, 100, 100, "5 buckets", "10 % replaced")),
    Case("sticky", Point(200, 100, 100, "random", "redrawn")),
    Case("sticky", Point(200, 100, 100, "skewed", "doubled")),
    Case("sticky", Point(200, 100, 100, "chain", "10 % replaced")),
    Case("cooperative-sticky", Point(200, 100, 100, "equal", "one joins")),
    Case("cooperative-sticky", Point(200, 100, 100, "random", "redrawn")),
    Case("range", Point(200, 100, 100, "equal", "fresh")),
    Case("roundrobin", Point(200, 100, 100, "random", "fresh")),
]
# Each with twice as many partitions as the one before it.
GROWTH = {
    "equal: one joins": [Case("sticky", Point(200, each, 100, "equal", "one joins")) for each in (100, 200)],
    "random: redrawn": [Case("sticky", Point(200, each, 100, "random", "redrawn")) for each in (100, 200)],
}


def build(*, slowed: bool = False) -> Path:
    """The program, up to date; slowed by a third in a directory of its own, so that nothing else is built like that."""
    target = ROOT / "target" / "slowdown" if slowed else ROOT / "target"
    # Without make's job server, which is not open to what a recipe starts.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    if slowed:
        environment["RUSTFLAGS"] = f"{environment.get('RUSTFLAGS', '')} --cfg slowdown".strip()
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "kafka-assignors-core"]
    subprocess.run([*command, "--example", "gate", "--target-dir", target], cwd=ROOT, env=environment, check=True)
    return target / "release" / "examples" / "gate"


@cache
def count(program: Path, case: Case) -> Count:
    """What one rebalance of the case takes, callgrind's instructions and the program's own count of allocations."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise RuntimeError("valgrind is not on PATH: it counts the instructions (Debian: apt-get install valgrind)")
    with tempfile.TemporaryDirectory(prefix="gate-") as directory:
        group, collected = Path(directory) / "group", Path(directory) / "callgrind"
        case.point.group().write(group)
        options = ["--quiet", "--tool=callgrind", f"--toggle-collect={_COUNTED}", f"--callgrind-out-file={collected}"]
        output = subprocess.check_output([valgrind, *options, program, case.strategy, group], text=True)
        totals = re.search(r"^totals: (\d+)$", collected.read_text(), re.MULTILINE)
    told = json.loads(output)
    if totals is None or int(totals[1]) == 0:
        raise RuntimeError(f"callgrind collected nothing: has {program} no function {_COUNTED}?")
    return Count(int(totals[1]) / told["calls"], told["allocations"] / told["calls"])
