"""The checks of a release: the contents of the wheel, and the list of its files."""

import fnmatch
import re
import sys
import zipfile
from pathlib import Path

import pytest

import check_files
from platforms import expected

ROOT = Path(__file__).parent.parent
# The Makefile notes which wheel is installed: `.installed-dev` for that of target/wheels/dev.
BUILDS = [each.name.removeprefix(".installed-") for each in Path(sys.prefix).glob(".installed-*")]
WHEELS = [wheel for build in BUILDS for wheel in (ROOT / "target" / "wheels" / build).glob("*.whl")]
# Without such a note, the wheel of `make release` is installed.
WHEELS = WHEELS or sorted((ROOT / "dist").glob("*-abi3-*.whl"))


def names() -> list[str]:
    """The files of a complete release of version 1.2.3."""
    return [name.replace("-*-", "-1.2.3-").replace("-*.", "-1.2.3.").replace("*", "") for name in expected()]


def test_the_wheel_under_test_has_what_the_repository_has() -> None:
    assert len(WHEELS) == 1
    assert check_files.of_wheel(WHEELS[0]) == []


def test_a_wheel_without_a_module_or_with_a_stranger_is_told(tmp_path: Path) -> None:
    copy = tmp_path / WHEELS[0].name
    with zipfile.ZipFile(WHEELS[0]) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            if name not in ("kafka_assignors/assignor.py", "kafka_assignors/_core.abi3.so"):
                target.writestr(name, b"")
        target.writestr("tests/test_lag.py", b"")
    assert check_files.of_wheel(copy) == [
        "kafka_assignors/assignor.py is missing",
        "tests/test_lag.py does not belong there",
        "it has 0 extension modules instead of one",
    ]


def test_a_release_has_one_file_for_each_platform_and_abi() -> None:
    paths = [Path(name) for name in names()]
    assert len(paths) == 17
    assert check_files.of_release(paths) == []


def test_a_missing_a_further_and_another_versions_file_are_told() -> None:
    given = names()
    musl = next(name for name in given if fnmatch.fnmatch(name, "*abi3-musllinux*aarch64*"))
    given.remove(musl)
    given.append("kafka_assignors-1.2.3-cp311-cp311-linux_x86_64.whl")
    given[0] = "kafka_assignors-1.2.2.tar.gz"
    assert check_files.of_release([Path(name) for name in given]) == [
        "kafka_assignors-*-cp311-abi3-*musllinux_1_2_aarch64.whl: no such file",
        "kafka_assignors-1.2.3-cp311-cp311-linux_x86_64.whl: no platform has it",
        "files of several versions: ['1.2.2', '1.2.3']",
    ]


def pins(path: Path) -> dict[str, str]:
    """Every requirement of a file, with the rest of its line after the name."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    found = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {line.split("==")[0].strip(): line for line in found}


@pytest.mark.parametrize("name", ["constraints", "installer", "release", "try", "musl"])
def test_every_package_of_ci_has_one_version_and_its_hashes(name: str) -> None:
    of_all, found = (pins(ROOT / "requirements" / f"{each}.txt") for each in ("constraints", name))
    assert found
    for package, line in found.items():
        assert re.match(r"[a-z0-9.\-]+(\[[a-z,-]+\])?==\S+ ", line), line
        assert "--hash=sha256:" in line, line
        # A release is checked with the versions that CI tests.
        assert line.split()[0] == of_all[package].split()[0]


def test_workflows_and_targets_install_nothing_that_is_not_pinned() -> None:
    commands = [ROOT / "Makefile", *sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
    lines = [line.strip() for path in commands for line in path.read_text().replace("\\\n", " ").splitlines()]
    # A wheel that was just built is installed by its path, without a hash.
    installs = [line for line in lines if re.search(r"pip install", line) and not line.endswith("*.whl; \\")]
    installs = [line for line in installs if not re.search(r"--no-deps --reinstall \S+\*\.whl", line)]
    assert installs
    assert [line for line in installs if "--require-hashes" not in line] == []
    assert [line for line in lines if re.search(r"toolchain install.*nightly|\+nightly", line)] == []
    assert [line for line in lines if re.search(r"cargo install(?!.*@\d)", line)] == []
    actions = [line for line in lines if "uses:" in line]
    assert [line for line in actions if not re.search(r"@[0-9a-f]{40} # v", line)] == []
    assert sum("PyO3/maturin-action" in line for line in actions) == sum("maturin-version: v" in line for line in lines)
    assert any(re.fullmatch(r"NIGHTLY: nightly-\d{4}-\d\d-\d\d", line) for line in lines)


def test_what_is_published_is_built_without_the_floors_of_the_benchmarks() -> None:
    """`.github/release/try_wheel.py` checks each wheel; this test checks the program that builds them."""
    program = (ROOT / ".github" / "release" / "build_wheels.py").read_text()
    assert '"maturin"' in program
    assert "--features" not in program
