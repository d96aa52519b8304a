"""Counts of the core's instructions (by callgrind) and allocations. They do not depend on the machine's load.

The counted program is rust/gate, compiled as the wheel is.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import offsets_records
from race.points import Point

__all__ = ["CASES", "COUNTED", "GROWTH", "Case", "Count", "Few", "History", "Records", "build", "count"]

ROOT = Path(__file__).parent.parent
# callgrind counts this function of the program, and the functions that it calls.
_COUNTED = "*gate::counted*"


@dataclass(frozen=True)
class Case:
    """A strategy and the group that it plans."""

    strategy: str
    point: Point

    @property
    def name(self) -> str:
        return f"{self.strategy}, {self.point.name}"

    def arguments(self, directory: Path) -> list[str]:
        """The program's arguments. The group is a file in the directory."""
        self.point.group().write(directory / "group")
        return [self.strategy, str(directory / "group")]


@dataclass(frozen=True)
class History:
    """A group of one topic, replayed with the sticky strategy: all members join, then one leaves or comes back."""

    rebalances: int
    partitions: int
    members: int

    @property
    def name(self) -> str:
        return f"replay, {self.rebalances:,} rebalances, {self.partitions:,} partitions, {self.members:,} members"

    def arguments(self, directory: Path) -> list[str]:
        """The program's arguments."""
        del directory
        return ["replay", str(self.rebalances), str(self.partitions), str(self.members)]


@dataclass(frozen=True)
class Few:
    """A plan of a group whose members read few of the topics: by lag, or under restrictions with its verification."""

    kind: Literal["lag", "restricted"]
    topics: int
    partitions: int
    members: int

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.topics:,} x {self.partitions:,}, {self.members:,} members on 4 topics each"

    def arguments(self, directory: Path) -> list[str]:
        """The program's arguments."""
        del directory
        return [self.kind, str(self.topics), str(self.partitions), str(self.members)]


@dataclass(frozen=True)
class Records:
    """Records of `__consumer_offsets` that become rows."""

    kind: Literal["offset commits", "generations of 50 members"]
    count: int

    @property
    def name(self) -> str:
        return f"decoder, {self.count:,} {self.kind}"

    def arguments(self, directory: Path) -> list[str]:
        """The program's arguments. The records are a file in the directory."""
        table = (offsets_records.commits if self.kind == "offset commits" else offsets_records.groups)(self.count)
        columns = [table.column(name).to_pylist() for name in ("key", "value")]
        parts = [part for record in zip(*columns, strict=True) for part in record]
        sized = b"".join(struct.pack(">i", len(part)) + part for part in parts)
        (directory / "records").write_bytes(struct.pack(">i", self.count) + sized)
        return ["decode", str(directory / "records")]


@dataclass(frozen=True)
class Count:
    """The counts of one rebalance, of one replay, or of the decoding of all records."""

    instructions: float
    allocations: float


CASES = [
    Case("sticky", Point(200, 100, 100, "equal", "fresh")),
    Case("sticky", Point(200, 100, 100, "equal", "one joins")),
    Case("sticky", Point(200, 100, 100, "equal", "one joins", racks=True)),
    Case("sticky", Point(1000, 10, 100, "equal", "fresh", racks=True)),
    Case("sticky", Point(200, 100, 100, "one odd member", "one leaves")),
    Case("sticky", Point(200, 100, 100, "5 buckets", "10 % replaced")),
    Case("sticky", Point(200, 100, 100, "random", "redrawn")),
    Case("sticky", Point(200, 100, 100, "skewed", "doubled")),
    Case("sticky", Point(200, 100, 100, "chain", "10 % replaced")),
    Case("sticky", Point(100, 5, 10, "random", "10 % replaced")),
    Case("sticky", Point(1000, 10, 1000, "uneven chain", "fresh")),
    Case("sticky", Point(1000, 10, 1000, "skewed", "10 % replaced")),
    Case("sticky", Point(1000, 50, 100, "skewed", "one leaves", racks=True)),
    Case("cooperative-sticky", Point(200, 100, 100, "equal", "one joins")),
    Case("cooperative-sticky", Point(200, 100, 100, "random", "redrawn")),
    Case("range", Point(200, 100, 100, "equal", "fresh")),
    Case("roundrobin", Point(200, 100, 100, "random", "fresh")),
]
COUNTED: list[Case | Few | History | Records] = [
    *CASES,
    Few("lag", 100, 10, 600),
    Few("restricted", 200, 10, 200),
    History(20, 100, 8),
    History(20, 1000, 50),
    Records("offset commits", 1000),
    Records("generations of 50 members", 10),
]
# Each case has twice as many partitions as the one before it.
GROWTH = {
    "equal: one joins": [Case("sticky", Point(200, each, 100, "equal", "one joins")) for each in (100, 200)],
    "random: redrawn": [Case("sticky", Point(200, each, 100, "random", "redrawn")) for each in (100, 200)],
}


def build(*, slowed: bool = False) -> Path:
    """Builds the program. The slowed one has its own directory, so that no other build uses its files."""
    target = ROOT / "target" / "slowdown" if slowed else ROOT / "target"
    # make's job server is not open to the children of a recipe, and cargo would warn.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    command = ["cargo", "build", "--quiet", "--profile", "optimized", "--locked", "--package", "kafka-assignors-gate"]
    if slowed:
        command += ["--features", "slowdown"]
    subprocess.run([*command, "--target-dir", target], cwd=ROOT, env=environment, check=True)
    return target / "optimized" / "gate"


@cache
def count(program: Path, case: Case | Few | History | Records) -> Count:
    """The instructions of a case, by callgrind, and the allocations, which the program counts."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise RuntimeError("valgrind is not on PATH: it counts the instructions (Debian: apt-get install valgrind)")
    with tempfile.TemporaryDirectory(prefix="gate-") as directory:
        collected = Path(directory) / "callgrind"
        options = ["--quiet", "--tool=callgrind", f"--toggle-collect={_COUNTED}", f"--callgrind-out-file={collected}"]
        output = subprocess.check_output([valgrind, *options, program, *case.arguments(Path(directory))], text=True)
        totals = re.search(r"^totals: (\d+)$", collected.read_text(), re.MULTILINE)
    counts = json.loads(output)
    if totals is None or int(totals[1]) == 0:
        raise RuntimeError(f"callgrind collected nothing: has {program} no function {_COUNTED}?")
    return Count(int(totals[1]) / counts["calls"], counts["allocations"] / counts["calls"])
