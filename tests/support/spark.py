"""A local Spark session for tests, with the Kafka connector and little log output. Each test process has one."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING

import pytest

from support import jars, jvm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def pytest_configure() -> None:
    """Sets the options of the JVMs that tests start with a command in a process of its own.

    The environments of `make matrix` have no Spark.
    """
    if importlib.util.find_spec("pyspark") is None:
        return
    os.environ.setdefault(jvm.SPARK_VARIABLE, jvm.spark_options())


# Spark generates code for each query. On tables of a few rows, compiling that code takes a tenth of the processor time
# and more. Sessions in processes that tests start run generated code, tests/spark/test_one_job.py among them.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark session on two cores. `@pytest.mark.xdist_group` lets tests share it in one process.

    The groups "spark" and "spark-2" take about the same time, so two processes run them side by side.
    """
    jars.tool("java")
    with pytest.MonkeyPatch.context() as environment:
        # Without this variable the workers run the first python3 on the path.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        # The JVM of the driver must not read the settings of another Spark on this machine.
        for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
            environment.delenv(name, raising=False)
        from kafka_assignors.spark.session import session as made

        scratch = tmp_path_factory.mktemp("spark")
        session = made(
            "local[2]",
            jars.spark_connector(),
            **{
                "spark.driver.memory": "512m",
                "spark.sql.warehouse.dir": str(scratch / "warehouse"),
                "spark.local.dir": str(scratch),
                **INTERPRETED,
            },
        )
        yield session
        session.stop()
        _end_the_jvm()


def _end_the_jvm() -> None:
    """Ends the JVM. `stop` leaves the JVM and its pipes open until the process ends; pytest would report a leak."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(30)
        SparkContext._gateway = SparkContext._jvm = None
