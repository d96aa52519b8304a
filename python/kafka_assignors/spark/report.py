"""A report from the tables of a replay: Spark computes the sums, and a few rows reach the driver.

`recommendations` returns one row for each group; `report` returns the value that `kafka_assignors.report.page` draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import OptionError, TableError
from kafka_assignors.report.model import (
    OBSERVED,
    FailedReplay,
    GroupReport,
    Period,
    Quantiles,
    Report,
    StrategyTotals,
)
from kafka_assignors.report.recommend import KEEP
from kafka_assignors.spark.advice import ALL, RECOMMENDATIONS, pattern, recommendations
from kafka_assignors.spark.report_groups import groups_shown
from kafka_assignors.spark.schemas import checked
from kafka_assignors.spark.summary import load_ratio, three_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kafka_assignors.report.recommend import Limits

__all__ = [
    "RECOMMENDATIONS",
    "check_options",
    "find_table",
    "recommendations",
    "replayed_assignments",
    "report",
]

_KEYS = ("cluster", "group_id")
_FAILURES = 50
_MOST_GROUPS = 1_000
SECTIONS = 300
"""The default of `sections`: their timelines are about two megabytes of the page."""
_PERIODS = 72
_MINUTE = 60_000
_STEPS = tuple(_MINUTE * each for each in (1, 5, 15, 30, 60, 180, 360, 720, 1440, 10_080, 43_200))


def check_options(top: int, joined: str | None, sections: int = SECTIONS) -> None:
    """Checks the options of `report`.

    Raises:
        OptionError: `top` or `sections` is not a number from 0 to 1000, or `joined` is no regular expression.
    """
    for name, number in (("top", top), ("sections", sections)):
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 1_000:
            raise OptionError(f"{name} is {number!r}; give a number of groups, 0 to 1000")
    pattern(joined)


def find_table(spark: SparkSession, folders: Sequence[str], name: str) -> DataFrame | None:
    """The table of this name, in Parquet, from the first folder that has it; None if no folder has it.

    Raises:
        TableError: the table cannot be read.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    for folder in folders:
        path = f"{folder.rstrip('/')}/{name}"
        try:
            return spark.read.parquet(path)
        except (PySparkException, Py4JJavaError) as error:
            # A broken file fails while Spark reads its footer, with an exception that PySpark does not translate.
            if not isinstance(error, PySparkException):
                said = str(error.java_exception.getMessage())
            elif error.getCondition() == "PATH_NOT_FOUND":
                continue
            else:
                said = str(error)
            first = said.splitlines()[0]
            raise TableError(f"{path} cannot be read as Parquet ({first}); give the folder of a table") from error
    return None


def replayed_assignments(
    events: DataFrame, counts: DataFrame, lags: DataFrame | None = None, observed: DataFrame | None = None
) -> Callable[[DataFrame, Sequence[str]], DataFrame | None]:
    """A function for `report` that replays the shown groups to make the table `assignments`."""
    from kafka_assignors.spark.replay import assignments

    def make(keys: DataFrame, strategies: Sequence[str]) -> DataFrame | None:
        import pyspark.sql.functions as f

        def of_them(table: DataFrame | None) -> DataFrame | None:
            return None if table is None else table.join(f.broadcast(keys), list(_KEYS), "left_semi")

        asked = [name for name in strategies if name not in (OBSERVED, ALL)]
        if not asked:
            return None
        of_events = of_them(events)
        assert of_events is not None
        return assignments(
            of_events, counts, lags=of_them(lags), observed=of_them(observed), strategies=asked, large=None
        )

    return make


def report(
    rebalances: DataFrame,
    *,
    events: DataFrame | None = None,
    lags: DataFrame | None = None,
    assignments: DataFrame | Callable[[DataFrame, Sequence[str]], DataFrame | None] | None = None,
    joined: str | None = None,
    limits: Limits | None = None,
    top: int = 6,
    sections: int = SECTIONS,
    groups: Sequence[str] = (),
    advice: DataFrame | None = None,
    pages: Mapping[str, str] | None = None,
    title: str = "Consumer groups under each assignment strategy",
) -> Report:
    """The report of a replay, from its tables.

    Spark reads `rebalances` about six times: persist it if reading is slow. The number of rows that reach the driver
    does not grow with the fleet.

    Args:
        rebalances: the table of that name.
        events: `membership_events`, for the strategies that groups run, and for the instance ids of static members,
            which name them in timelines.
        lags: the table of that name, for the lags of members.
        assignments: the table of that name, for timelines. Or a function of the shown groups, a DataFrame with cluster
            and group_id, and of the strategies; it returns the table.
        joined: see `recommendations`.
        limits: see `recommendations`.
        top: how many groups are shown with pictures: those that gain the most.
        sections: how many more of the groups that should change have a folded section, those that gain the most
            first.
        groups: the ids of groups to show instead of both, whatever they gain.
        advice: the table `recommendations` of these rows, if it is written already.
        pages: further pages in the same folder: heading to address.
        title: of the page.

    Raises:
        TableError: a table lacks a column.
        OptionError: `top` or `sections` is not a number from 0 to 1000, `joined` is no regular expression, or the table
            lacks one of `groups`.
    """
    check_options(top, joined, sections)
    import pyspark.sql.functions as f

    rows = checked(rebalances, "rebalances")
    made = advice is None
    if advice is None:
        advice = recommendations(rows, events=events, joined=joined, limits=limits).persist()
    try:
        chosen, best = _chosen(advice, top, sections, groups)
        tally = {
            row["strategy"] or "none": row["count"]
            for row in advice.groupBy("strategy").count().orderBy(f.desc("count"), "strategy").collect()
        }
        seen = f.col("today") == OBSERVED
        moves = advice.agg(
            f.sum(f.when(seen, f.col("moved_today"))),
            f.sum(f.when(seen, f.col("moved_recommended"))),
            f.count_if(seen),
            f.count_if(~seen),
            f.count_if(f.col("by_broker") & f.col("today").isNull()),
            f.count_distinct("cluster"),
        ).first()
    finally:
        if made:
            advice.unpersist()
    facts = rows.agg(f.min("ts").alias("since"), f.max("ts").alias("until")).first()
    assert facts is not None
    assert moves is not None
    strategies = _totals(rows, tally)
    failures, failed_groups = _failures(rows)
    period_ms, periods = _periods(rows, facts["since"], facts["until"])
    of_chosen = _rows_of(rows, chosen).persist()
    try:
        shown = groups_shown(of_chosen, chosen, events, lags, assignments, joined, by_member=best)
    finally:
        of_chosen.unpersist()
    count = sum(tally.values())
    return Report(
        title=title,
        clusters=moves[5],
        groups=count,
        rebalances=max([each.rebalances for each in strategies], default=0),
        since=facts["since"],
        until=facts["until"],
        strategies=strategies,
        periods=periods,
        period_ms=period_ms,
        moved_today=moves[0] or 0,
        moved_recommended=moves[1] or 0,
        recommendations=tally,
        worst=shown[:best],
        changes=shown[best:],
        failures=failures,
        failed_groups=failed_groups,
        observed_groups=moves[2],
        notes=_notes(count, moves[2], moves[3], moves[4], shown[:best]),
        pages=dict(pages or {}),
    )


def _chosen(advice: DataFrame, top: int, sections: int, groups: Sequence[str]) -> tuple[list[Any], int]:
    """The rows of the shown groups, those with pictures first, and how many have pictures."""
    import pyspark.sql.functions as f

    # A row without a cluster or a group counts as a failure, and cannot be shown as a group.
    named = advice.where("cluster is not null and group_id is not null")
    order: list[Any] = [f.desc(f.coalesce("saved", f.lit(0))), *_KEYS]
    if groups:
        found = named.where(f.col("group_id").isin(list(groups))).orderBy(*order).limit(_MOST_GROUPS).collect()
        lacking = sorted(set(groups) - {row["group_id"] for row in found})
        if lacking:
            raise OptionError(f"the table rebalances has no group {lacking[0]!r}; give another one")
        return found, len(found)
    best = named.orderBy(*order).limit(top).collect()
    there = {(row["cluster"], row["group_id"]) for row in best}
    changing = named.where((f.col("strategy") != KEEP) & f.col("strategy").isNotNull())
    further = changing.orderBy(*order).limit(top + sections).collect() if sections else []
    rest = [row for row in further if (row["cluster"], row["group_id"]) not in there][:sections]
    return [*best, *rest], len(best)


def _rows_of(rows: DataFrame, chosen: Sequence[Any]) -> DataFrame:
    import pyspark.sql.functions as f

    keys = [(row["cluster"], row["group_id"]) for row in chosen]
    wanted = rows.sparkSession.createDataFrame(keys, "cluster string, group_id string")
    return rows.join(f.broadcast(wanted), list(_KEYS), "left_semi")


def _notes(groups: int, observed: int, running: int, by_broker: int, worst: Sequence[GroupReport]) -> list[str]:
    """Notes: the meaning of "today" on the page, and missing tables."""
    notes = []
    if observed < groups:
        parts = [f"What was really assigned is in the tables for {observed:,} of {groups:,} groups"]
        if running:
            parts.append(f"for {running:,} the strategy in use is known and replayed, and stands for today")
        if by_broker:
            parts.append(f"{by_broker:,} are assigned by the broker (KIP-848)")
        if rest := groups - observed - running - by_broker:
            parts.append(f"for {rest:,} nothing stands for today")
        notes.append("; ".join(parts) + ".")
    if worst and not any(each.ownership for each in worst):
        notes.append("There is no timeline of ownership: the table of assignments was not given.")
    return notes


_DISTRIBUTIONS = {"spread": "max_count - min_count", "score": "balance_score", "skew": "lag_skew"}


def _totals(rows: DataFrame, tally: Mapping[str, int]) -> list[StrategyTotals]:
    """Every strategy over the fleet: `observed` first, then by moves.

    Spark sums up each group first, and computes percentiles from the count of each different value. Both intermediate
    results are small, and Spark adds up neighbouring rows of a file before the shuffle.
    """
    import pyspark.sql.functions as f

    named = rows.where("strategy is not null")
    sound = f.col("moved").isNotNull()
    summed = ("assigned", "moved", "moved_needed", "copartition_violations", "kernel_ns")
    by_group = named.groupBy("strategy", *_KEYS).agg(
        f.count_if(sound).alias("rebalances"),
        *(f.sum(name).alias(name) for name in summed),
        f.sum(f.col("partitions") - f.col("assigned")).alias("unassigned"),
        *(f.max(f.expr(of)).alias(f"{name}_max") for name, of in _DISTRIBUTIONS.items()),
        f.sum(load_ratio()).alias("ratio"),
        f.count(load_ratio()).alias("ratios"),
        f.max(load_ratio()).alias("load_ratio_max"),
    )
    found = by_group.groupBy("strategy").agg(
        f.count("*").alias("groups"),
        f.count_if(f.col("rebalances") == 0).alias("failed"),
        *(f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in ("rebalances", *summed, "unassigned")),
        *(f.max(f"{name}_max").alias(f"{name}_max") for name in _DISTRIBUTIONS),
        f.try_divide(f.sum("ratio"), f.sum("ratios")).alias("load_ratio_mean"),
        f.max("load_ratio_max").alias("load_ratio_max"),
    )
    percentiles = _percentiles(named)

    def quantiles(row: Any, name: str, nothing: float) -> Quantiles:
        both = percentiles.get((row["strategy"], name))
        if both is None:
            return Quantiles(nothing, nothing, nothing)
        middle, high = both
        return Quantiles(float(middle), float(high), float(row[f"{name}_max"]))

    totals = [
        StrategyTotals(
            row["strategy"],
            row["groups"],
            row["failed"],
            row["rebalances"],
            row["assigned"],
            row["unassigned"],
            row["moved"],
            row["moved_needed"],
            quantiles(row, "spread", 0.0),
            quantiles(row, "score", 0.0),
            quantiles(row, "skew", 1.0),
            row["copartition_violations"],
            row["kernel_ns"] / 1e9,
            tally.get(row["strategy"], 0),
            row["load_ratio_mean"],
            row["load_ratio_max"],
        )
        for row in found.collect()
    ]
    return sorted(totals, key=lambda each: (each.strategy != OBSERVED, each.moved, each.strategy))


def _percentiles(rows: DataFrame) -> dict[tuple[str, str], tuple[float, float]]:
    """The median and the 95th percentile of each strategy and distribution, of values rounded to three digits."""
    import pyspark.sql.functions as f

    pairs = ", ".join(f"'{name}', cast({of} as double)" for name, of in _DISTRIBUTIONS.items())
    each = rows.select("strategy", f.expr(f"stack({len(_DISTRIBUTIONS)}, {pairs}) as (figure, value)"))
    rounded = each.where("value is not null").select("strategy", "figure", three_digits(f.col("value")).alias("value"))
    counted = rounded.groupBy("strategy", "figure", "value").agg(f.count("*").alias("times"))
    points = f.percentile("value", f.array(f.lit(0.5), f.lit(0.95)), f.col("times"))
    found = counted.groupBy("strategy", "figure").agg(points.alias("points")).collect()
    return {(row["strategy"], row["figure"]): tuple(row["points"]) for row in found}


def _failures(rows: DataFrame) -> tuple[list[FailedReplay], int]:
    """The first error of each group; groups that could not be replayed at all come first."""
    import pyspark.sql.functions as f

    wrong = (
        rows.where(f.col("error").isNotNull())
        .withColumn("strategy", f.coalesce("strategy", f.lit(ALL)))
        .groupBy(*_KEYS, "strategy")
        .agg(f.min_by("error", f.struct("ts", "seq")).alias("error"), f.bool_or(f.col("seq").isNull()).alias("fatal"))
        .groupBy(*_KEYS, "error")
        .agg(f.sort_array(f.collect_set("strategy")).alias("strategies"), f.bool_or("fatal").alias("fatal"))
    )
    count = wrong.agg(f.count_distinct(f.struct(*_KEYS))).first()
    shown = wrong.orderBy(f.desc("fatal"), *_KEYS, "error").limit(_FAILURES).collect()
    failures = [
        FailedReplay(row["cluster"] or "", row["group_id"] or "", ", ".join(row["strategies"]), row["error"])
        for row in shown
    ]
    return failures, 0 if count is None else count[0]


def _periods(rows: DataFrame, since: int | None, until: int | None) -> tuple[int, list[Period]]:
    """The moves over time, in periods for a picture."""
    import pyspark.sql.functions as f

    if since is None or until is None:
        return _STEPS[0], []
    step = next((each for each in _STEPS if (until - since) / each <= _PERIODS), None)
    if step is None:
        step = _STEPS[-1] * -(-(until - since) // (_PERIODS * _STEPS[-1]))
    found = (
        rows.where("moved is not null and strategy is not null")
        .groupBy(f.floor(f.col("ts") / step).alias("period"), "strategy")
        .agg(f.sum("moved").alias("moved"), f.count("*").alias("rebalances"))
        .collect()
    )
    moved: dict[int, dict[str, int]] = {}
    rebalances: dict[int, int] = {}
    for row in found:
        moved.setdefault(row["period"], {})[row["strategy"]] = row["moved"]
        rebalances[row["period"]] = max(rebalances.get(row["period"], 0), row["rebalances"])
    return step, [
        Period(period * step, rebalances.get(period, 0), dict(sorted(moved.get(period, {}).items())))
        for period in range(since // step, until // step + 1)
    ]
