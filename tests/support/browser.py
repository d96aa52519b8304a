"""A real browser for tests: Chromium without a window. Its DevTools protocol goes over two pipes.

`python -m support.browser` installs Debian's Chromium if there is no browser and the user may install it
(`make browser`).
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from support import debian

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "Chromium is not installed: `make browser` as root installs Debian's package chromium; otherwise install it "
    "(apt-get install chromium), or put chromium or google-chrome on PATH"
)


def executable() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


# The browser reads commands from file descriptor 3 and writes its answers to 4. The pipe for the commands may have
# number 4, and the other pipe number 3: `dup2` to 3 would then close that other pipe. Therefore both are first
# duplicated to numbers from 5 on.
_AT_3_AND_4 = """
import os, sys
reads, writes = (os.dup(int(each)) for each in sys.argv[1:3])
while reads < 5: reads = os.dup(reads)
while writes < 5: writes = os.dup(writes)
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser with one page.

    Attributes:
        complaints: the console's messages, and the requests that failed, since the last `open`.
    """

    def __init__(self, profile: Path) -> None:
        program = executable()
        if program is None:
            pytest.fail(MISSING)
        to_browser, self._commands = os.pipe()
        self._replies, from_browser = os.pipe()
        arguments = [
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AT_3_AND_4, str(to_browser), str(from_browser), *arguments],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number = 0
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    _session: str | None = None

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._replies], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._replies, 1 << 20)
            if not chunk:
                raise ConnectionError(f"the browser has ended, with status {self._process.wait(10)}")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _call(self, method: str, timeout: float = 60.0, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        deadline = time.monotonic() + timeout
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._take(answer)

    def _take(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.complaints.append(f"console: {[each.get('value') for each in parameters['args']]}")
            case "Runtime.exceptionThrown":
                self.complaints.append(f"exception: {parameters['exceptionDetails']['text']}")
            case "Log.entryAdded":
                self.complaints.append(f"log: {parameters['entry']['text']}")
            case "Network.loadingFailed":
                self.complaints.append(f"network: {parameters['errorText']}")

    def open(self, address: str, *, width: int = 1280, dark: bool = False) -> None:
        """Opens a page, and waits until the page and all its pictures are loaded."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", features=scheme)
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self._events.clear()
        self.complaints.clear()
        self._call("Page.navigate", url=address)
        deadline = time.monotonic() + 60
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._take(self._read(deadline))
        self.run("Promise.all([...document.images].map(image => image.decode().catch(() => null))).then(() => 0)")

    @property
    def requests(self) -> list[str]:
        """The addresses of the requests since the last `open`."""
        sent = [event for event in self._events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def run(self, script: str) -> Any:
        """The value of a script in the page. If it is a promise, the promise is awaited."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def on_paper(self, width: int) -> None:
        """Shows the page as it is printed, at the width of the paper between its margins, in CSS pixels."""
        self._call("Emulation.setEmulatedMedia", media="print")
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def pdf(self) -> bytes:
        """The page as it is printed, with the paper size of its style sheet."""
        printed = self._call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(printed["data"])

    def screenshot(self, path: Path) -> None:
        """The whole page, as PNG."""
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """Ends the browser."""
        self._session = None
        try:
            self._call("Browser.close", timeout=20)
            self._process.wait(20)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(20)
        os.close(self._commands)
        os.close(self._replies)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for the tests of one module."""
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


def install() -> int:
    """Installs Debian's Chromium if there is no browser; returns the exit status."""
    return debian.install("chromium", executable, MISSING)


if __name__ == "__main__":
    sys.exit(install())
