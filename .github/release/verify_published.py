"""Compare the files in an index with the files of a release.

    python .github/release/verify_published.py dist

pip downloads each file as a user of its platform would, and refuses it unless it has the hash of the file here. The
index is the one that pip is configured for. It may need minutes to list a new release: pip asks for each file
again until --wait seconds are over.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from platforms import of_wheel
from statements import sha256


def download(path: Path, folder: Path) -> list[str]:
    """pip's arguments to download the published counterpart of a file, and nothing else."""
    name, published = "kafka-assignors", re.split(r"-|\.tar\.gz", path.name)[1]
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{name}=={published} --hash=sha256:{sha256(path)}\n")
    command = ["download", "--quiet", "--no-deps", "--no-cache-dir", "--require-hashes", "--disable-pip-version-check"]
    command += ["--requirement", str(requirement), "--dest", str(folder / "published")]
    if path.suffix != ".whl":
        return [*command, "--no-binary", ":all:", "--no-build-isolation"]
    platform, abi = of_wheel(path.name)
    python, _, tag = abi.name.partition("-")
    return [*command, "--only-binary", ":all:", "--platform", platform.tag, "--implementation", "cp",
            "--python-version", f"{python[2]}.{python[3:]}", "--abi", tag]  # fmt: skip


def fault(path: Path) -> str | None:
    """The fault of the published counterpart of a file; None if both are the same."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", *download(path, Path(folder))]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            return f"{path.name}: {(run.stderr or run.stdout).strip()}"
        names = [found.name for found in (Path(folder) / "published").iterdir()]
        return None if names == [path.name] else f"{path.name}: the index gave {names}"


def main(arguments: list[str]) -> int:
    """Returns the exit status: 0, or 1 after printing what is missing or differs."""
    parser = argparse.ArgumentParser(description="Compare what an index has with the files of a release.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wait", type=float, default=0, metavar="SECONDS", help="how long a file may be missing")
    given = parser.parse_args(arguments)
    until = time.monotonic() + given.wait
    wrong = []
    for path in sorted(given.folder.iterdir()):
        while (found := fault(path)) and time.monotonic() < until:
            time.sleep(15)
        wrong += [found] if found else []
        print(f"{'DIFFERS' if found else 'the same'}  {path.name}", flush=True)
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
