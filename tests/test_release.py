"""The checks of a release: what is in the wheel, and which files there must be."""

import fnmatch
import importlib.util
import re
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
WHEELS = sorted((ROOT / "target" / "wheels").glob("*.whl"))


@pytest.fixture(scope="module")
def checks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_files", ROOT / ".github" / "release" / "check_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names(checks: ModuleType) -> list[str]:
    """A release of version 1.2.3 with nothing missing."""
    lines = checks.EXPECTED.read_text().splitlines()
    return [line.replace("*", "1.2.3") for line in lines if not line.startswith("#")]


def test_the_wheel_under_test_has_what_the_repository_has(checks: ModuleType) -> None:
    assert len(WHEELS) == 1
    assert checks.of_wheel(WHEELS[0]) == []


def test_a_wheel_without_a_module_or_with_a_stranger_is_told(checks: ModuleType, tmp_path: Path) -> None:
    copy = tmp_path / WHEELS[0].name
    with zipfile.ZipFile(WHEELS[0]) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            if name not in ("kafka_assignors/lag.py", "kafka_assignors/_core.abi3.so"):
                target.writestr(name, b"")
        target.writestr("tests/test_lag.py", b"")
    assert checks.of_wheel(copy) == [
        "kafka_assignors/lag.py is missing",
        "tests/test_lag.py does not belong there",
        "it has 0 extension modules instead of one",
    ]


def test_a_release_is_what_the_list_says(checks: ModuleType) -> None:
    paths = [Path(name) for name in names(checks)]
    assert len(paths) == 15
    assert checks.of_release(paths) == []


def test_a_missing_a_further_and_another_versions_file_are_told(checks: ModuleType) -> None:
    given = names(checks)
    musl = next(name for name in given if fnmatch.fnmatch(name, "*abi3-musllinux*aarch64*"))
    given.remove(musl)
    given.append("kafka_assignors-1.2.3-cp311-cp311-linux_x86_64.whl")
    given[0] = "kafka_assignors-1.2.2.tar.gz"
    assert checks.of_release([Path(name) for name in given]) == [
        f"{musl.replace('1.2.3', '*')}: no such file",
        "kafka_assignors-1.2.3-cp311-cp311-linux_x86_64.whl: expected.txt does not name it",
        "files of several versions: ['1.2.2', '1.2.3']",
    ]


def pins(path: Path) -> dict[str, str]:
    """Every requirement of a file, with all that stands behind its name."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    found = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {line.split("==")[0].strip(): line for line in found}


@pytest.mark.parametrize("name", ["constraints", "installer", "release", "try"])
def test_every_package_of_ci_has_one_version_and_its_hashes(name: str) -> None:
    of_all, found = (pins(ROOT / "requirements" / f"{each}.txt") for each in ("constraints", name))
    assert found
    for package, line in found.items():
        assert re.match(r"[a-z0-9.\-]+(\[[a-z,-]+\])?==\S+ ", line), line
        assert "--hash=sha256:" in line, line
        # The versions that CI tests are those that a release is checked with.
        assert line.split()[0] == of_all[package].split()[0]


def test_workflows_and_targets_install_nothing_that_is_not_pinned() -> None:
    commands = [ROOT / "Makefile", *sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
    lines = [line.strip() for path in commands for line in path.read_text().replace("\\\n", " ").splitlines()]
    # What has just been built is told by its path instead of by a hash.
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
