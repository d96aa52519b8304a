"""The four jars of Spark's Kafka connector, which PySpark does not contain: pinned, and fetched once by Maven.

`connector.pom.xml` beside this module has the versions. They work together, batch and streaming, with PySpark 4.2 and
4.3 and with brokers up to 4.3. Their own dependencies are not fetched, because Spark contains them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

from kafka_assignors.errors import ConnectorError

__all__ = ["connector_jars", "default_cache"]

_TIMEOUT = 600.0
_POM = "connector.pom.xml"


def default_cache() -> Path:
    """The folder of the jars: `KAFKA_ASSIGNORS_CACHE`, or `kafka-assignors` in the user's cache folder."""
    own = os.environ.get("KAFKA_ASSIGNORS_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-assignors"


def connector_jars(cache: str | os.PathLike[str] | None = None) -> list[Path]:
    """The connector's jars, for `session(jars=...)`. The first call fetches them with Maven: about 10 s and 7 MB.

    Args:
        cache: the folder that keeps them; `default_cache()` by default. Jars that were copied by hand into
            `spark-kafka-<digest>` below it need no Maven: the error without Maven names folder and files.

    Raises:
        ConnectorError: the folder lacks them, and they cannot be fetched.
    """
    pom = files("kafka_assignors.spark").joinpath(_POM).read_bytes()
    names = _names(pom.decode())
    folder = (default_cache() if cache is None else Path(cache)) / f"spark-kafka-{hashlib.sha256(pom).hexdigest()[:12]}"
    jars = [folder / name for name in names]
    if not all(jar.is_file() for jar in jars):
        _fetch(pom, folder, names)
    return jars


def _names(pom: str) -> list[str]:
    """The files that the pom names."""
    found = re.findall(r"<dependency>.*?<artifactId>([^<]+)</artifactId>\s*<version>([^<]+)</version>", pom, re.DOTALL)
    return [f"{artifact}-{version}.jar" for artifact, version in found]


def _fetch(pom: bytes, folder: Path, names: list[str]) -> None:
    by_hand = f"or put {', '.join(names)} into {folder}"
    maven = shutil.which("mvn")
    if maven is None:
        raise ConnectorError(
            f"the jars of Spark's Kafka connector are not in {folder}, and Maven, which fetches them, is not on PATH; "
            f"install it (Debian: apt-get install maven), {by_hand}"
        )
    # The folder gets its name when it is complete. Otherwise a second process could use it before it has all jars.
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    try:
        unfinished.mkdir(parents=True, exist_ok=True)
        (unfinished / _POM).write_bytes(pom)
        goal = [maven, "-q", "-B", "-f", str(unfinished / _POM), "dependency:copy-dependencies"]
        done = subprocess.run(
            [*goal, f"-DoutputDirectory={unfinished}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
        missing = [name for name in names if not (unfinished / name).is_file()]
        if done.returncode != 0 or missing:
            lines = [line for line in done.stdout.splitlines() if "ERROR" in line] or done.stdout.splitlines()
            raise ConnectorError(
                f"Maven could not fetch the jars of Spark's Kafka connector ({' '.join(lines[:1])[:400]}); see its "
                f"settings for the registry, {by_hand}"
            )
        if not folder.exists():
            unfinished.rename(folder)
        else:
            for name in names:
                (unfinished / name).replace(folder / name)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConnectorError(
            f"the jars of Spark's Kafka connector could not be fetched ({error}); try again, {by_hand}"
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
