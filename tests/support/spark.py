"""A Spark session for tests: local, quiet, with the Kafka connector; one for each process that runs tests."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from support import jars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark session on two cores. Tests share it where `@pytest.mark.xdist_group("spark")` keeps them together."""
    jars.tool("java")
    with pytest.MonkeyPatch.context() as environment:
        # Workers would otherwise run whatever python3 comes first on the path.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        # The driver's JVM must not look for settings of another Spark on this machine.
        for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
            environment.delenv(name, raising=False)
        from kafka_assignors.spark.session import session as made

        scratch = tmp_path_factory.mktemp("spark")
        session = made(
            "local[2]",
            jars.spark_connector(),
            **{
                "spark.driver.memory": "512m",
                "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
                "spark.sql.warehouse.dir": str(scratch / "warehouse"),
                "spark.local.dir": str(scratch),
            },
        )
        yield session
        session.stop()
        _end_the_jvm()


def _end_the_jvm() -> None:
    """`stop` leaves the JVM and its pipes to the end of the process; pytest would call that a leak."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(30)
        SparkContext._gateway = SparkContext._jvm = None
