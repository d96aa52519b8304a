"""`kafka-assignors exporter` as a command: bad input is one sentence, and a cluster that is down does not end it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.embedded import EmbeddedKafka

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """The command as a process; yields the address of its metrics. SIGTERM must end it with status 0."""
    command = [sys.executable, "-m", "kafka_assignors.cli", "exporter", "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+/metrics)\n", line)
            assert found, line + process.stderr.read()
            yield found[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)
    assert process.returncode == 0


def until(address: str, text: str) -> str:
    """The metrics as soon as this text is in them."""
    deadline = time.monotonic() + 60
    while True:
        with urllib.request.urlopen(address) as answer:
            page: str = answer.read().decode()
        if text in page:
            return page
        assert time.monotonic() < deadline, page
        time.sleep(0.05)


def test_a_cluster_that_comes_up_later_is_read_then() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running("--bootstrap-server", f"127.0.0.1:{port}", "--interval", "1", "--timeout", "2") as address:
        page = until(address, "kafka_assignors_failed_looks_total 1.0")
        assert "kafka_assignors_up 0.0" in page
        assert "kafka_assignors_groups{" not in page
        with EmbeddedKafka(port=port):
            page = until(address, "kafka_assignors_up 1.0")
            assert 'kafka_assignors_groups{verdict="dead"} 0.0' in page


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "there is no broker; give --bootstrap-server"),
        (["--bootstrap-server", "localhost:1", "--listen", "nowhere"], "--listen is 'nowhere'; give HOST:PORT"),
        (["--bootstrap-server", "localhost:1", "--include", "("], "--include is '(', which is no regular expression"),
        (["--bootstrap-server", "localhost:1", "--reset", "now"], "--reset is 'now'"),
        (["--bootstrap-server", "localhost:1", "-X", "group.idd=x"], "which is no setting of a connection"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str) -> None:
    done = CliRunner().invoke(app, ["exporter", *arguments], env={"KAFKA_ASSIGNORS_BOOTSTRAP_SERVERS": ""})
    assert done.exit_code == 2, done.output
    assert sentence in done.output
    assert done.output.count("\n") == 1


def test_a_second_exporter_at_the_address_is_told_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["--bootstrap-server", "localhost:1", "--listen", f"127.0.0.1:{port}"]
        done = CliRunner().invoke(app, ["exporter", *arguments])
    assert done.exit_code == 2
    assert f"--listen is 127.0.0.1:{port}, where nothing can listen" in done.output


def test_without_its_library_there_is_one_sentence() -> None:
    script = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "from kafka_assignors.cli import main; sys.argv[1:] = ['exporter', '--bootstrap-server', 'x:1']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "pip install 'kafka-assignors[prometheus]'" in done.stderr
