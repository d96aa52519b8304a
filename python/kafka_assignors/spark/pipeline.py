"""All steps on a made-up fleet: synth, lag, replay, report, with a progress bar."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from rich.console import Console

    from kafka_assignors.spark.progress import Steps

__all__ = ["run"]

# The durations of the steps relative to each other, for the progress bar.
_WEIGHTS = {
    "membership_events": 3.0,
    "topic_partitions": 1.0,
    "offset_snapshots": 3.0,
    "observed_assignments": 8.0,
    "lags": 2.0,
    "rebalances": 8.0,
    "group_summary": 2.0,
    "strategy_summary": 2.0,
    "recommendations": 2.0,
}
_START, _REPORT, _PAGE = 5.0, 8.0, 6.0


def run(
    out: Path, *, groups: int, seed: int, master: str | None, console: Console, conf: Mapping[str, str] | None = None
) -> None:
    """Makes a fleet, its lags, a replay with every strategy, and the report, all below `out`.

    The tables are in `out`/tables, in Parquet; report.html and report.json are in `out`. Existing files are replaced.

    Raises:
        MissingDependencyError: Spark, Java, or a library of the report is not installed.
        OptionError: a number that is too small.
    """
    from kafka_assignors.report.page import write
    from kafka_assignors.spark.lag import lags
    from kafka_assignors.spark.progress import Steps
    from kafka_assignors.spark.replay import replay
    from kafka_assignors.spark.report import recommendations, replayed_assignments, report
    from kafka_assignors.spark.session import opened
    from kafka_assignors.spark.summary import group_summary, strategy_summary
    from kafka_assignors.spark.synth import synth

    # `synth` gives this beginning to the ids of groups that join topics.
    joined = "^join-"
    with Steps(console, sum(_WEIGHTS.values()) + _START + _REPORT + _PAGE) as steps, ExitStack() as stack:
        with steps.step("Spark", _START):
            spark = stack.enter_context(opened(master, **(conf or {})))
        tables: dict[str, DataFrame] = {}

        def keep(name: str, table: DataFrame) -> None:
            tables[name] = _kept(spark, steps, out, name, table)

        for name, table in synth(spark, groups, seed).items():
            keep(name, table)
        keep("lags", lags(tables["offset_snapshots"]))
        events, counts = tables["membership_events"], tables["topic_partitions"]
        observed = tables["observed_assignments"]
        keep("rebalances", replay(events, counts, lags=tables["lags"], observed=observed))
        keep("group_summary", group_summary(tables["rebalances"]))
        keep("strategy_summary", strategy_summary(tables["rebalances"], tables["group_summary"]))
        keep("recommendations", recommendations(tables["rebalances"], events=events, joined=joined))
        with steps.step("report: figures", _REPORT, spark):
            found = report(
                tables["rebalances"],
                events=events,
                lags=tables["lags"],
                assignments=replayed_assignments(events, counts, tables["lags"], observed),
                joined=joined,
                advice=tables["recommendations"],
                title=f"A made-up fleet of {groups:,} consumer groups (seed {seed})",
            )
        with steps.step("report: page", _PAGE):
            html, _ = write(found, out)
    console.print(f"The report is there: {html}")


def _kept(spark: SparkSession, steps: Steps, out: Path, name: str, table: DataFrame) -> DataFrame:
    """Writes a table and reads it again, so that later steps do not compute it again."""
    path = str(out / "tables" / name)
    with steps.step(name, _WEIGHTS[name], spark):
        table.write.mode("overwrite").parquet(path)
    return spark.read.parquet(path)
