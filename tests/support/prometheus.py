"""A real Prometheus for tests: it scrapes, answers queries, and evaluates rules.

`python -m support.prometheus` installs Debian's if there is none and the user may install it (`make prometheus`).
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Self

import pytest

from support import debian

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MISSING = (
    "prometheus and promtool are not installed: `make prometheus` as root installs Debian's package prometheus; "
    "otherwise install it (apt-get install prometheus), or put both on PATH"
)


def executable() -> str | None:
    """The Prometheus of this machine, if promtool is there too."""
    return shutil.which("prometheus") if shutil.which("promtool") else None


def promtool(*arguments: str | Path) -> str:
    """The output of promtool, which must succeed."""
    if executable() is None:
        pytest.fail(MISSING)
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Prometheus:
    """A Prometheus that scrapes these targets once a second. Use it as a context manager.

    Args:
        directory: for its configuration and its data.
        targets: job to HOST:PORT.
        rules: the file of its rules.
    """

    def __init__(self, directory: Path, targets: Mapping[str, str], rules: Path) -> None:
        program = executable()
        if program is None:
            pytest.fail(MISSING)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        jobs = [{"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()]
        seconds = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        # JSON is YAML.
        config = directory / "prometheus.yml"
        config.write_text(json.dumps({"global": seconds, "rule_files": [str(rules)], "scrape_configs": jobs}))
        self._command = [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={self._address}",
            "--log.level=error",
        ]
        self._log = directory / "prometheus.log"

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of the API.

        Raises:
            AssertionError: the API refuses the request.
        """
        address = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[Any]:
        """The samples of an expression now."""
        found: list[Any] = self.ask("query", query=expression)["result"]
        return found

    def until(self, expression: str, seconds: float = 60.0) -> list[Any]:
        """The samples of an expression as soon as it has any."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if found := self.query(expression):
                    return found
            except (OSError, AssertionError):
                # It is still starting.
                if self._process.poll() is not None:
                    raise AssertionError(self._log.read_text()) from None
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds:g} s: {expression}; {self._log.read_text()}")
            time.sleep(0.1)


def install() -> int:
    """Installs Debian's Prometheus if there is none; returns the exit status."""
    return debian.install("prometheus", executable, MISSING)


if __name__ == "__main__":
    sys.exit(install())
