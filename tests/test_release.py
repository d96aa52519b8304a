"""The checks of a release: what is in the wheel, and which files there must be."""

import fnmatch
import importlib.util
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
