"""The public API of the core crate, as rustdoc reads it. A test compares it with `tests/core-names.txt`.

rustdoc writes the API as JSON. The crate public-api (rust/public-api), the library of cargo-public-api, makes a list
from the JSON. A line is a name with its type or signature. After an intended change, `make core-names` writes the list.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "core-names.txt"
TARGET = ROOT / "target" / "core-names"
RUST: str = tomllib.loads((ROOT / ".github" / "release" / "toolchain.toml").read_text())["rust"]["version"]


def toolchain() -> dict[str, str]:
    """The environment in which cargo is that of the releases: another release writes another version of the JSON."""
    said = subprocess.check_output(["rustc", "--version"], cwd=ROOT, text=True)
    if said.split()[1] == RUST:
        return {}
    install = ["rustup", "toolchain", "install", "--profile", "minimal", RUST]
    subprocess.run(install, check=True, capture_output=True)
    return {"RUSTUP_TOOLCHAIN": RUST}


def cargo(*arguments: str, **environ: str) -> str:
    """Run cargo with a target folder of its own, and return its output.

    Raises:
        AssertionError: it failed; the message has its output.
    """
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    command = ["cargo", *arguments]
    run = subprocess.run(
        command, cwd=ROOT, env={**own, **toolchain(), **environ, "CARGO_TARGET_DIR": str(TARGET)}, capture_output=True
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode()


def lines() -> list[str]:
    """The list, in the order of the crate public-api: the same for the same sources."""
    # The format of the JSON is unstable; therefore rustdoc requires this flag. `toolchain` fixes the format.
    unstable = ("--", "-Z", "unstable-options", "--output-format", "json")
    # Both commands need this variable: whenever it changes, cargo compiles the crates that they share again.
    flag = {"RUSTC_BOOTSTRAP": "1"}
    of_core = ("--quiet", "--locked", "--package", "kafka-assignors-core", "--lib")
    cargo("rustdoc", *of_core, *unstable, **flag)
    program = ("--quiet", "--locked", "--manifest-path", "rust/public-api/Cargo.toml")
    return cargo("run", *program, "--", str(TARGET / "doc" / "kafka_assignors_core.json"), **flag).split("\n")[:-1]


if __name__ == "__main__":
    print("\n".join(lines()))
