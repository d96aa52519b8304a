"""The page on releases says what ran, as it was recorded, and names every platform."""

import re
from pathlib import Path

from debian_pythons import SUITES
from platforms import ABIS, PLATFORMS
from try_wheels import SOURCES, Tried, record, rows

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "releases.md").read_text()
RECORDED = ROOT / "docs" / "figures" / "releases" / "tried.json"


def test_the_table_is_what_was_recorded() -> None:
    listed = rows(RECORDED)
    assert listed
    wheels = "|".join(f"{platform.name} {abi.name}" for platform in PLATFORMS for abi in ABIS)
    assert re.findall(rf"^\| `(?:{wheels})` \|.*$", PAGE, re.MULTILINE) == listed


def test_each_platform_and_python_is_on_the_page() -> None:
    assert [platform.name for platform in PLATFORMS if f"`{platform.name}`" not in PAGE] == []
    assert {name.partition("-")[0] for name in SOURCES} == {"3.12", *SUITES}


def test_a_new_result_replaces_that_of_the_same_wheel_and_python(tmp_path: Path) -> None:
    path = tmp_path / "more" / "tried.json"
    first = Tried("manylinux-x86_64 cp311-abi3", "3.13.5", "Debian's", 10, 1)
    record(path, [first, Tried("manylinux-x86_64 cp311-abi3", "3.9.1", "the machine's", 11, 1)])
    record(path, [Tried(first.wheel, first.python, first.by, 12, 1)])
    assert rows(path) == [
        "| `manylinux-x86_64 cp311-abi3` | 3.9.1 | The machine's | 11 |",
        "| `manylinux-x86_64 cp311-abi3` | 3.13.5 | Debian's | 12 |",
    ]
