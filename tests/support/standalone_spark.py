"""A standalone Spark cluster on this machine: a master and two workers of one core each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WORKERS", "standalone"]

WORKERS = 2


@contextmanager
def standalone(folder: Path, memory: str = "5g") -> Iterator[str]:
    """The address of the master. Each worker offers `memory` to executors, even if the machine has less."""
    with ExitStack() as running:
        master_at = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = running.enter_context(_started(master_at, folder / "master.log", r"Starting Spark master at (\S+)"))
        for number in range(WORKERS):
            worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", memory]
            worker += ["--webui-port", "0", "--work-dir", str(folder / f"work{number}"), master]
            log = folder / f"worker{number}.log"
            running.enter_context(_started(worker, log, r"(Successfully registered with master)"))
        yield master


@contextmanager
def _started(arguments: list[str], log: Path, said: str) -> Iterator[str]:
    """A process of Spark, from the time when its output contains `said`; gives that output."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    with log.open("w") as out:
        command = [str(home / "bin" / "spark-class"), *arguments]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 120
            while (match := re.search(said, log.read_text())) is None:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield match[1]
        finally:
            process.terminate()
            process.wait(60)
