"""The tables of docs/releases.md: the wheels that were built, their checks, and the Pythons on which they ran.

    python .github/release/release_table.py            writes them into the page
    python .github/release/release_table.py --show     prints them

They are made from two records, which `make wheels RECORD=yes` and `make try-wheels RECORD=yes` write. A wheel
without a record is shown as "not yet".
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from platforms import ABIS, PLATFORMS, Abi, Platform, of_wheel

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "releases.md"
BUILT = ROOT / "docs" / "figures" / "releases" / "built.json"
TRIED = ROOT / "docs" / "figures" / "releases" / "tried.json"
# Beside twine, the file list and the search for paths, which every wheel passes.
READERS = {"elf": "auditwheel, pyelftools", "mach-o": "macholib", "pe": "pefile"}
HEADS = {
    "built": "| Platform | Python | Built | Checked by | Run |\n| --- | --- | --- | --- | --- |",
    "tried": "| Wheel | Python | Where the Python is from | Tests that passed |\n| --- | --- | --- | --- |",
}


@dataclass(frozen=True, slots=True)
class Built:
    """A wheel that was built and passed the checks.

    Attributes:
        wheel: Its platform and its ABI.
        profile: cargo's profile. A wheel of another profile than `release` only shows that the platform builds.
        size: Its bytes; None if the size was not recorded.
        processor_seconds: The processor time of the build; the crates that do not depend on Python count for the first
            ABI. None if the time was not recorded.
    """

    wheel: str
    profile: str
    size: int | None
    processor_seconds: int | None

    @property
    def key(self) -> tuple[str, ...]:
        """The key of the result: a later result with the same key replaces it."""
        return (self.wheel,)


@dataclass(frozen=True, slots=True)
class Tried:
    """A test run: a wheel, a Python, and the number of tests that passed.

    Attributes:
        wheel: The platform and the ABI of the wheel that uv chose.
        python: The Python, as it names itself.
        by: Where it comes from, and what ran it.
        passed: How many tests passed; all did.
        seconds: How long they took.
    """

    wheel: str
    python: str
    by: str
    passed: int
    seconds: int

    @property
    def key(self) -> tuple[str, ...]:
        """The key of the result: a later result with the same key replaces it."""
        return (self.wheel, self.python, self.by)


Row = TypeVar("Row", Built, Tried)


def read(path: Path, row: type[Row]) -> list[Row]:
    """The rows of a record; none if there is no such file."""
    return [row(**each) for each in json.loads(path.read_text())] if path.exists() else []


def record(path: Path, results: list[Row], row: type[Row]) -> None:
    """Write rows into a record; one with the key of an older one takes its place."""
    rows = {each.key: each for each in [*read(path, row), *results]}
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered = [asdict(rows[key]) for key in sorted(rows, key=_place)]
    path.write_text(json.dumps(ordered, indent=2) + "\n")


def record_built(path: Path, wheels: list[tuple[Path, float]], profile: str) -> None:
    """Write into a record which files were built, the processor seconds of each, and with which profile of cargo."""
    found = []
    for wheel, seconds in wheels:
        platform, abi = of_wheel(wheel.name)
        found.append(Built(f"{platform.name} {abi.name}", profile, wheel.stat().st_size, round(seconds)))
    record(path, found, Built)


def record_tried(path: Path, results: list[Tried]) -> None:
    """Write test runs into a record."""
    record(path, results, Tried)


def _place(key: tuple[str, ...]) -> tuple[int, list[int], tuple[str, ...]]:
    """The place in a record: the order of platforms.py, then that of versions."""
    wheels = [f"{platform.name} {abi.name}" for platform in PLATFORMS for abi in ABIS]
    numbers = [int(it) for it in re.findall(r"\d+", key[1])] if len(key) > 1 else []
    return wheels.index(key[0]) if key[0] in wheels else len(wheels), numbers, key[2:]


def _pythons(abi: Abi) -> str:
    return "3.11 and later" if abi.stable else "free-threaded 3.14"


def _built_row(platform: Platform, abi: Abi, built: list[Built], tried: list[Tried]) -> str:
    name = f"{platform.name} {abi.name}"
    had = next((each for each in built if each.wheel == name), None)
    audit = "abi3audit, " if abi.stable else ""
    runs = [each.python.removesuffix(" free-threaded") for each in tried if each.wheel == name]
    runs = sorted(set(runs), key=lambda it: [int(part) for part in it.split(".")])
    if runs:
        run = f"tests, on {', '.join(runs)}"
    elif platform.format != "elf" and had:
        run = "built and checked, not run"
    else:
        run = "not run"
    if had is None:
        said = "not yet"
    elif had.profile != "release":
        said = "unoptimised"
    else:
        said = "yes" if had.size is None else f"yes: {had.size / 1e6:.1f} MB, {had.processor_seconds} s"
    checked = f"{audit}{READERS[platform.format]}" if had else "not yet"
    return f"| `{platform.name}` | {_pythons(abi)} | {said} | {checked} | {run} |"


def built_rows(built: Path = BUILT, tried: Path = TRIED) -> list[str]:
    """The rows of the wheels: each platform with each ABI."""
    had, ran = read(built, Built), read(tried, Tried)
    return [_built_row(platform, abi, had, ran) for platform in PLATFORMS for abi in ABIS]


def tried_rows(path: Path = TRIED) -> list[str]:
    """The rows of the test runs."""
    return [
        f"| `{each.wheel}` | {each.python} | {each.by[0].upper()}{each.by[1:]} | {each.passed} |"
        for each in read(path, Tried)
    ]


def with_tables(page: str) -> str:
    """The page with its two tables made anew.

    Raises:
        ValueError: the page lacks the head of a table.
    """
    for name, rows in {"built": built_rows(), "tried": tried_rows()}.items():
        head, found, rest = page.partition(HEADS[name])
        if not found:
            raise ValueError(f"docs/releases.md has no table with the head {HEADS[name].splitlines()[0]}")
        after = re.sub(r"\A(\n\|.*)*", "", rest)
        page = head + "\n".join([found, *rows]) + after
    return page


def main(arguments: list[str]) -> None:
    """Write the tables into the page, or show them."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/releases.md from the records.")
    parser.add_argument("--show", action="store_true", help="print them instead")
    if parser.parse_args(arguments).show:
        print("\n".join([HEADS["built"], *built_rows(), "", HEADS["tried"], *tried_rows()]))
    else:
        PAGE.write_text(with_tables(PAGE.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
