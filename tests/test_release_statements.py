"""The statements of a release about its files, and the comparison of the files of an index with them."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import statements
import verify_published
from platforms import ABIS, PLATFORMS

COMMIT = "1f" * 20


def wheel(
    folder: Path, platform: str, *, abi: str = "cp311-abi3", crates: tuple[str, ...] = ("pkg:cargo/a@1",)
) -> Path:
    """A wheel without code, which pip takes for one of ours."""
    path = folder / f"kafka_assignors-1.2.3-{abi}-{platform}.whl"
    info = "kafka_assignors-1.2.3.dist-info"
    root = {"bom-ref": "bindings", "name": "kafka-assignors-python"}
    names = [crate.partition("=")[0] for crate in crates]
    bom = {
        "metadata": {"component": root},
        "components": [{"bom-ref": name, "purl": crate} for name, crate in zip(names, crates, strict=True)],
        "dependencies": [{"ref": "bindings", "dependsOn": names}],
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: kafka-assignors\nVersion: 1.2.3\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nTag: {abi}-{platform}\n")
        archive.writestr(f"{info}/sboms/x.cyclonedx.json", json.dumps(bom))
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_the_sums_are_what_sha256sum_checks(tmp_path: Path) -> None:
    path = wheel(tmp_path, "win_amd64")
    (tmp_path / "SHA256SUMS").write_text(statements.sums([path]))
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)


def test_the_materials_name_the_files_and_the_crates(tmp_path: Path) -> None:
    files = [wheel(tmp_path, "win_amd64"), wheel(tmp_path, "macosx_11_0_arm64")]
    found = statements.materials(files)
    component = found["metadata"]["component"]
    assert component["purl"] == "pkg:pypi/kafka-assignors@1.2.3"
    assert [it["url"] for it in component["externalReferences"]] == [path.name for path in files]
    assert component["externalReferences"][1]["hashes"] == [{"alg": "SHA-256", "content": statements.sha256(files[1])}]
    assert component["components"] == [{"bom-ref": "bindings", "name": "kafka-assignors-python"}]
    assert found["components"] == [{"bom-ref": "pkg:cargo/a@1", "purl": "pkg:cargo/a@1"}]


def test_the_materials_have_what_one_platform_needs(tmp_path: Path) -> None:
    files = [wheel(tmp_path, "win_amd64"), wheel(tmp_path, "win_arm64", crates=("pkg:cargo/b@1", "pkg:cargo/a@1"))]
    found = statements.materials(files)
    assert [crate["purl"] for crate in found["components"]] == ["pkg:cargo/a@1", "pkg:cargo/b@1"]
    assert found["dependencies"] == [{"ref": "bindings", "dependsOn": ["pkg:cargo/a@1", "pkg:cargo/b@1"]}]


def test_two_descriptions_of_a_crate_are_told(tmp_path: Path) -> None:
    other = wheel(tmp_path, "macosx_11_0_arm64", crates=("pkg:cargo/a@1=other",))
    with pytest.raises(ValueError, match=f"{other.name}: another description of pkg:cargo/a@1"):
        statements.materials([wheel(tmp_path, "win_amd64"), other])
    with pytest.raises(ValueError, match="without a wheel"):
        statements.materials([tmp_path / "kafka_assignors-1.2.3.tar.gz"])


def test_the_provenance_names_what_decides_the_bytes(tmp_path: Path) -> None:
    path = wheel(tmp_path, "win_amd64")
    said = statements.provenance([path], COMMIT, {})
    assert said["subject"] == [{"name": path.name, "digest": {"sha256": statements.sha256(path)}}]
    build, run = said["predicate"]["buildDefinition"], said["predicate"]["runDetails"]
    assert build["resolvedDependencies"][0]["digest"] == {"gitCommit": COMMIT}
    assert [it["uri"] for it in build["resolvedDependencies"][1:]] == list(statements.LOCKS)
    assert run["builder"]["id"].endswith("docs/releases.md#by-hand")
    run_of = {
        "GITHUB_SERVER_URL": "https://git.example",
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_WORKFLOW_REF": "a/b/.github/workflows/wheels.yml@refs/tags/v1.2.3",
        "GITHUB_RUN_ID": "7",
        "GITHUB_REF": "refs/tags/v1.2.3",
    }
    predicate = statements.provenance([path], COMMIT, run_of)["predicate"]
    assert predicate["runDetails"] == {
        "builder": {"id": "https://git.example/a/b/.github/workflows/wheels.yml@refs/tags/v1.2.3"},
        "metadata": {"invocationId": "https://git.example/a/b/actions/runs/7"},
    }
    assert predicate["buildDefinition"]["externalParameters"]["ref"] == "refs/tags/v1.2.3"


@pytest.mark.needs("release")
@pytest.mark.first
@pytest.mark.parametrize("abi", [abi.name for abi in ABIS])
def test_each_published_wheel_is_found_and_compared(index: Path, tmp_path: Path, abi: str) -> None:
    paths = [wheel(index, platform.tag, abi=abi) for platform in PLATFORMS]
    assert [verify_published.fault(path) for path in (paths[0], paths[-1])] == [None] * 2
    ours = wheel(tmp_path, PLATFORMS[4].tag, abi=abi, crates=("pkg:cargo/b@1",))
    fault = verify_published.fault(ours)
    assert fault is not None
    assert "DO NOT MATCH THE HASHES" in fault


def test_a_file_that_the_index_lacks_is_told(index: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    path = wheel(tmp_path / "dist", "win_amd64")
    wheel(index, "win_arm64")
    script = [sys.executable, verify_published.__file__, str(path.parent)]
    run = subprocess.run(script, capture_output=True, text=True)
    assert run.returncode == 1
    assert f"DIFFERS  {path.name}\n{path.name}: ERROR: Could not find a version" in run.stdout
