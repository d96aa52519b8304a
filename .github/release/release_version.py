"""The version of a release: its places in the files, whether all of them agree, and its tag.

    python .github/release/release_version.py                    prints it, or what disagrees
    python .github/release/release_version.py --set 0.2.0        writes it into every place, and dates the changelog
    python .github/release/release_version.py --tag              tags HEAD, if all places agree and all is committed

The workspace's Cargo.toml is the source. The binding crate asks for the core of exactly this version, CITATION.cff
names it, and CHANGELOG.md has a section of it with a date.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"\d+\.\d+\.\d+")
# The place of the version in each file: the first group is the number.
PLACES = {
    "Cargo.toml": re.compile(r'(?<=\[workspace\.package\]\nversion = ")([^"]+)'),
    "rust/python/Cargo.toml": re.compile(r'(?<=kafka-assignors-core = \{ path = "\.\./core", version = "=)([^"]+)'),
    "CITATION.cff": re.compile(r"(?<=\nversion: )(\S+)"),
}
UNRELEASED = "## [Unreleased]\n"


def version(root: Path = ROOT) -> str:
    """The version of the workspace."""
    found: str = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    return found


def faults_of(root: Path = ROOT, *, released: bool = False) -> list[str]:
    """The places that do not have the version, one per line.

    Args:
        root: The repository.
        released: Whether the changelog must have a section of this version. Until a release its changes are under
            Unreleased.
    """
    wanted, wrong = version(root), []
    if not NUMBER.fullmatch(wanted):
        wrong.append(f"Cargo.toml: {wanted} is not of the form 1.2.3")
    for name, pattern in PLACES.items():
        found = pattern.search((root / name).read_text())
        if found is None or found[1] != wanted:
            wrong.append(f"{name} has {found[1] if found else 'no version'} instead of {wanted}")
    changes = (root / "CHANGELOG.md").read_text()
    if UNRELEASED not in changes:
        wrong.append("CHANGELOG.md has no section [Unreleased]")
    if released and not re.search(rf"^## \[{re.escape(wanted)}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        wrong.append(f"CHANGELOG.md has no dated section [{wanted}]: --set {wanted} writes it")
    return wrong


def set_version(new: str, today: datetime.date, root: Path = ROOT) -> None:
    """Write a version into every place; the changelog's section Unreleased becomes the section of this version.

    Raises:
        ValueError: the version is not of the form 1.2.3, or the changelog has nothing unreleased.
    """
    if not NUMBER.fullmatch(new):
        raise ValueError(f"{new} is not of the form 1.2.3")
    changes = (root / "CHANGELOG.md").read_text()
    before, _, after = changes.partition(UNRELEASED)
    if not after.partition("\n## ")[0].strip():
        raise ValueError("CHANGELOG.md has nothing under [Unreleased]")
    for name, pattern in PLACES.items():
        text = (root / name).read_text()
        (root / name).write_text(pattern.sub(new, text, count=1))
    cited = (root / "CITATION.cff").read_text()
    (root / "CITATION.cff").write_text(re.sub(r"(?<=\ndate-released: )\S+", str(today), cited))
    (root / "CHANGELOG.md").write_text(f"{before}{UNRELEASED}\n## [{new}] - {today}\n{after}")
    # cargo writes the version of the workspace's own crates into the lock.
    lock = (root / "Cargo.lock").read_text()
    own = re.compile(r'(?<=\[\[package\]\]\nname = "kafka-assignors-)(core|python)"\nversion = "[^"]+')
    (root / "Cargo.lock").write_text(own.sub(rf'\g<1>"\nversion = "{new}', lock))


def tag_of_head(root: Path = ROOT) -> str | None:
    """The tag of a version that HEAD has."""
    command = ["git", "tag", "--points-at", "HEAD", "--list", "v*"]
    found = subprocess.check_output(command, cwd=root, text=True).split()
    return found[-1] if found else None


def tag(root: Path = ROOT) -> str:
    """Tag HEAD with the version.

    Raises:
        ValueError: places disagree, files are not committed, or the tag exists.
    """
    wrong = faults_of(root, released=True)
    if subprocess.check_output(["git", "status", "--porcelain"], cwd=root, text=True).strip():
        wrong.append("there are files that are not committed")
    name = f"v{version(root)}"
    if subprocess.run(["git", "rev-parse", "--quiet", "--verify", name], cwd=root, capture_output=True).returncode == 0:
        wrong.append(f"there is a tag {name}")
    if wrong:
        raise ValueError("\n".join(wrong))
    subprocess.run(
        ["git", "tag", "--annotate", name, "--message", f"kafka-assignors {version(root)}"], cwd=root, check=True
    )
    return name


def main(arguments: list[str]) -> int:
    """Returns the exit status: 0, or 1 after printing what is wrong."""
    parser = argparse.ArgumentParser(description="Print, set or tag the version of a release.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--set", metavar="VERSION", help="write this version into every place, and date the changelog")
    choice.add_argument(
        "--tag", action="store_true", help="tag HEAD; pushing the tag starts the workflow that publishes"
    )
    given = parser.parse_args(arguments)
    try:
        if given.set:
            set_version(given.set, datetime.datetime.now(datetime.UTC).date())
        elif given.tag:
            print(tag())
    except ValueError as error:
        print(error)
        return 1
    wrong = faults_of()
    print("\n".join(wrong) or version())
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
