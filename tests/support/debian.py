"""A program of Debian's for tests, installed where it is missing and the user may install it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def install(package: str, executable: Callable[[], str | None], missing: str) -> int:
    """Installs a package if the program is missing; returns the exit status.

    Args:
        package: its name.
        executable: finds the program.
        missing: the message for a user who may not install it.
    """
    if executable() is not None:
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(missing, file=sys.stderr)
        return 1
    # The installation of a package must not start its service.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    commands = (
        ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", "update"],
        ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", package],
    )
    # One process at a time: a second `apt-get update` fails while the first one holds its lock.
    with (Path(tempfile.gettempdir()) / "kafka-assignors-apt.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        for command in commands:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            # An error of `apt-get update` is no failure by itself: the package may come from another source.
            if done.returncode and "install" in command:
                print(f"{done.stdout}\n{' '.join(command)} failed. {missing}", file=sys.stderr)
                return 1
    return 0 if executable() is not None else 1
