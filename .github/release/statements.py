"""The statements of a release about its files: their hashes, their materials, and their sources.

    python .github/release/statements.py dist target/statements

`SHA256SUMS` is for `sha256sum --check`. The list of materials (CycloneDX, JSON) names the crates in the extension
module, as cargo-cyclonedx found them in the build, and the files with their hashes. The provenance statement
(in-toto, SLSA v1) names the commit, the toolchain and the locks.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY: str = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
# The files that determine the bytes of a wheel, beside the sources: the crates, the compiler, maturin and zig.
LOCKS = ("Cargo.lock", ".github/release/toolchain.toml", "requirements/release.txt")


def sha256(path: Path) -> str:
    """The hash of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums(files: list[Path]) -> str:
    """The hashes in the format of sha256sum."""
    return "".join(f"{sha256(path)}  {path.name}\n" for path in files)


def materials(files: list[Path]) -> dict[str, Any]:
    """The list of materials of a release: the crates of all wheels, since each platform has some of its own.

    Raises:
        ValueError: no wheel, or one crate with two descriptions.
    """
    lists = {path.name: _of_wheel(path) for path in files if path.suffix == ".whl"}
    if not lists:
        raise ValueError("without a wheel there is no list of crates")
    first = next(iter(lists))
    crates: dict[str, Any] = {}
    needs: dict[str, set[str]] = {}
    for name, found in lists.items():
        for crate in found["components"]:
            if crates.setdefault(crate["bom-ref"], crate) != crate:
                raise ValueError(f"{name}: another description of {crate['bom-ref']} than in the wheels before it")
        for each in found.get("dependencies", ()):
            needs.setdefault(each["ref"], set()).update(each.get("dependsOn", ()))
    version = first.split("-")[1]
    whole = lists[first]
    whole["components"] = [crates[name] for name in sorted(crates)]
    whole["dependencies"] = [{"ref": name, "dependsOn": sorted(needs[name])} for name in sorted(needs)]
    whole["metadata"]["component"] = {
        "type": "library",
        "bom-ref": f"pkg:pypi/kafka-assignors@{version}",
        "name": "kafka-assignors",
        "version": version,
        "purl": f"pkg:pypi/kafka-assignors@{version}",
        "licenses": [{"expression": "Apache-2.0"}],
        "externalReferences": [
            {"type": "distribution", "url": path.name, "hashes": [{"alg": "SHA-256", "content": sha256(path)}]}
            for path in files
        ],
        # The crate of the bindings is the root that cargo-cyclonedx saw, and so is in no list of components.
        "components": [whole["metadata"]["component"]],
    }
    return whole


def _of_wheel(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".cyclonedx.json"))
        found: dict[str, Any] = json.loads(wheel.read(name))
    return found


def provenance(files: list[Path], commit: str, environ: dict[str, str]) -> dict[str, Any]:
    """The statement how the files were built, as in-toto and SLSA have it.

    Args:
        files: The files of the release.
        commit: The commit that they were built from.
        environ: The environment: GitHub's names the workflow and its run.
    """
    workflow = environ.get("GITHUB_WORKFLOW_REF")
    server, repository = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_REPOSITORY")
    builder = f"{server}/{workflow}" if workflow else f"{REPOSITORY}/blob/main/docs/releases.md#by-hand"
    run = f"{server}/{repository}/actions/runs/{environ.get('GITHUB_RUN_ID')}" if workflow else None
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": sha256(path)}} for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{REPOSITORY}/blob/main/docs/releases.md#the-build",
                "externalParameters": {"repository": REPOSITORY, "ref": environ.get("GITHUB_REF", commit)},
                "internalParameters": {"command": "make wheels"},
                "resolvedDependencies": [
                    {"uri": f"git+{REPOSITORY}", "digest": {"gitCommit": commit}},
                    *({"uri": name, "digest": {"sha256": sha256(ROOT / name)}} for name in LOCKS),
                ],
            },
            "runDetails": {
                "builder": {"id": builder},
                "metadata": {"invocationId": run} if run else {},
            },
        },
    }


def write(files: list[Path], out: Path) -> list[Path]:
    """Write the three statements into a folder, and return their paths.

    Raises:
        ValueError: as `materials`.
        CalledProcessError: the sources have no commit, or differ from it.
    """
    # A statement about a commit is false for sources that differ from it.
    subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT, check=True)
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        "SHA256SUMS": sums(files),
        "kafka-assignors.cyclonedx.json": json.dumps(materials(files), indent=2) + "\n",
        "kafka-assignors.provenance.json": json.dumps(provenance(files, commit, dict(os.environ)), indent=2) + "\n",
    }
    for name, text in texts.items():
        (out / name).write_text(text)
    return [out / name for name in texts]


if __name__ == "__main__":
    for written in write(sorted(Path(sys.argv[1]).iterdir()), Path(sys.argv[2])):
        print(written)
