"""The version of a release: one number in every place, a dated section of the changelog, and a tag on a commit."""

import datetime
import shutil
import subprocess
from pathlib import Path

import pytest

from release_version import PLACES, ROOT, faults_of, set_version, tag, tag_of_head, version

TODAY = datetime.date(2027, 2, 3)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The files with a version, committed in a repository of their own."""
    for name in [*PLACES, "CHANGELOG.md", "Cargo.lock"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One thing.\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=tester", "-c", "user.email=tester@localhost", "-c", "tag.gpgsign=false"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--no-gpg-sign", "--message", "one")


def test_all_places_of_this_repository_agree() -> None:
    assert faults_of() == []


def test_a_new_version_is_in_every_place(repository: Path) -> None:
    set_version("7.8.9", TODAY, repository)
    assert version(repository) == "7.8.9"
    assert faults_of(repository, released=True) == []
    assert "## [Unreleased]\n\n## [7.8.9] - 2027-02-03\n\n### Added\n" in (repository / "CHANGELOG.md").read_text()
    assert "\ndate-released: 2027-02-03\n" in (repository / "CITATION.cff").read_text()
    lock = (repository / "Cargo.lock").read_text()
    assert lock.count('"\nversion = "7.8.9"') == 2
    assert 'name = "kafka-assignors-core"\nversion = "7.8.9"' in lock
    assert 'core = { path = "../core", version = "=7.8.9" }' in (repository / "rust/python/Cargo.toml").read_text()


@pytest.mark.parametrize("new", ["1.2", "1.2.3rc1", "v1.2.3", "1.2.3 "])
def test_a_version_of_another_form_is_refused(repository: Path, new: str) -> None:
    with pytest.raises(ValueError, match="is not of the form"):
        set_version(new, TODAY, repository)
    assert git(repository, "status", "--porcelain") == ""


def test_a_release_without_changes_is_refused(repository: Path) -> None:
    set_version("7.8.9", TODAY, repository)
    with pytest.raises(ValueError, match="nothing under"):
        set_version("7.9.0", TODAY, repository)


def test_each_place_with_another_version_is_told(repository: Path) -> None:
    for name, pattern in PLACES.items():
        path = repository / name
        if name != "Cargo.toml":
            path.write_text(pattern.sub("9.9.9", path.read_text(), count=1))
    had = version(repository)
    assert faults_of(repository, released=True) == [
        f"rust/python/Cargo.toml has 9.9.9 instead of {had}",
        f"CITATION.cff has 9.9.9 instead of {had}",
        f"CHANGELOG.md has no dated section [{had}]: --set {had} writes it",
    ]


def test_a_tag_is_set_once_on_what_is_committed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_NAME", "tester")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "tester@localhost")
    with pytest.raises(ValueError, match="no dated section"):
        tag(repository)
    set_version("7.8.9", TODAY, repository)
    with pytest.raises(ValueError, match="not committed"):
        tag(repository)
    commit(repository)
    assert tag_of_head(repository) is None
    assert tag(repository) == "v7.8.9" == tag_of_head(repository)
    with pytest.raises(ValueError, match=r"there is a tag v7\.8\.9"):
        tag(repository)
