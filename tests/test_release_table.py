"""The table on the page about releases has the recorded builds and test runs."""

import subprocess
import zipfile
from pathlib import Path

import pytest

import release_table
from debian_pythons import SUITES, write_program
from platforms import ABIS, PLATFORMS
from release_table import BUILT, TRIED, Tried, built_rows, read, record_built, record_tried, tried_rows
from try_wheels import SOURCES

PAGE = release_table.PAGE.read_text()


def test_the_tables_are_what_was_recorded() -> None:
    assert read(BUILT, release_table.Built)
    assert read(TRIED, Tried)
    assert release_table.with_tables(PAGE) == PAGE
    assert len(built_rows()) == len(PLATFORMS) * len(ABIS)


def test_each_python_of_the_page_can_be_tried() -> None:
    assert {name.partition("-")[0] for name in SOURCES} == {"3.12", *SUITES}


def test_a_new_result_replaces_that_of_the_same_wheel_and_python(tmp_path: Path) -> None:
    path = tmp_path / "more" / "tried.json"
    first = Tried("manylinux-x86_64 cp311-abi3", "3.13.5", "Debian's", 10, 1)
    free = Tried("manylinux-x86_64 cp314-cp314t", "3.14.8 free-threaded", "built from sources", 12, 1)
    record_tried(path, [free, first, Tried(first.wheel, "3.9.1", "the machine's", 11, 1)])
    record_tried(path, [Tried(first.wheel, first.python, first.by, 12, 1)])
    assert tried_rows(path) == [
        "| `manylinux-x86_64 cp311-abi3` | 3.9.1 | The machine's | 11 |",
        "| `manylinux-x86_64 cp311-abi3` | 3.13.5 | Debian's | 12 |",
        "| `manylinux-x86_64 cp314-cp314t` | 3.14.8 free-threaded | Built from sources | 12 |",
    ]
    rows = built_rows(tmp_path / "none.json", path)
    assert rows[0] == "| `manylinux-x86_64` | 3.11 and later | not yet | not yet | tests, on 3.9.1, 3.13.5 |"
    assert rows[1].endswith("| free-threaded 3.14 | not yet | not yet | tests, on 3.14.8 |")


def built_row(folder: Path) -> str:
    """The row of the only wheel that was built."""
    (row,) = [it for it in built_rows(folder / "built.json", folder / "none.json") if "not yet" not in it]
    return row


def test_what_was_built_and_did_not_run_is_said_to_be_so(tmp_path: Path) -> None:
    wheel = tmp_path / "kafka_assignors-1.2.3-cp311-abi3-win_amd64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("_core.pyd", bytes(1_200_000))
    record_built(tmp_path / "built.json", [(wheel, 61.4)], "dev")
    record_built(tmp_path / "built.json", [(wheel, 62.6)], "release")
    assert built_row(tmp_path) == (
        "| `windows-x86_64` | 3.11 and later | yes: 1.2 MB, 63 s | abi3audit, pefile | built and checked, not run |"
    )
    record_built(tmp_path / "built.json", [(wheel, 7.0)], "dev")
    assert "| unoptimised |" in built_row(tmp_path)


@pytest.mark.parametrize(
    ("kind", "loader", "libraries"),
    [
        ("amd64", "lib64/ld-linux-x86-64.so.2", "{0}/usr/lib/x86_64-linux-gnu:{0}/usr/lib"),
        ("musl", "lib/ld-musl-x86_64.so.1", "{0}/usr/lib/x86_64-linux-musl"),
    ],
)
def test_the_program_of_a_python_starts_it_by_its_own_loader(
    tmp_path: Path, kind: str, loader: str, libraries: str
) -> None:
    root = tmp_path / "python"
    (root / loader).parent.mkdir(parents=True)
    (root / loader).write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (root / loader).chmod(0o755)
    program = root / "usr" / "bin" / "python"
    program.parent.mkdir(parents=True)
    write_program(program, "python3.13", kind)
    said = subprocess.check_output([program, "-c", "pass"], text=True).splitlines()
    # Python takes the name with which it is started for its own path, and searches its modules from there.
    wanted = ["--argv0", str(program), "--library-path", libraries.format(root), f"{program.parent}/python3.13"]
    assert said == [*wanted, "-c", "pass"]


def test_a_page_without_its_tables_is_told() -> None:
    with pytest.raises(ValueError, match="has no table with the head"):
        release_table.with_tables("# Releases\n")
