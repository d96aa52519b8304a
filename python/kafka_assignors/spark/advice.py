"""A recommendation for each group, from the table `rebalances`, on Spark."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_assignors import _core
from kafka_assignors.errors import OptionError
from kafka_assignors.report.model import OBSERVED, GroupFigures, StrategyFigures
from kafka_assignors.report.recommend import KEEP, Limits, recommend, saved, today
from kafka_assignors.spark.schemas import checked
from kafka_assignors.spark.summary import load_ratios

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["ALL", "RECOMMENDATIONS", "by_group", "group_figures", "pattern", "recommendations"]

RECOMMENDATIONS = (
    "cluster string, group_id string, strategy string, rule string, reason string, running string, by_broker boolean, "
    "today string, moved_today bigint, moved_recommended bigint, saved bigint, nobody_gets_today double, "
    "nobody_gets_recommended double"
)
"""The columns of `recommendations`.

`running` is the strategy in use; `today` names the row with the present figures: `observed`, or the strategy in use.
Figures are null if they are not known; `nobody_gets` is the part of the partitions without a reader.
"""

ALL = "all strategies"
"""The strategy of the row of a group that could not be replayed with any."""

_KEYS = ("cluster", "group_id")


def by_group(rebalances: DataFrame, events: DataFrame | None = None) -> DataFrame:
    """One row for each group: the figures of each strategy in a list, and the strategy that the group runs."""
    import pyspark.sql.functions as f

    # Rows without figures are left out. A strategy with no other rows failed for the group; a row without a strategy
    # means that all of them failed.
    sound = f.col("moved").isNotNull()
    named = rebalances.withColumn("strategy", f.coalesce("strategy", f.lit(ALL)))
    by_strategy = named.groupBy(*_KEYS, "strategy").agg(
        f.count_if(sound).alias("rebalances"),
        f.coalesce(f.sum("moved"), f.lit(0)).alias("moved"),
        f.coalesce(f.sum("moved_needed"), f.lit(0)).alias("moved_needed"),
        f.coalesce(f.avg(f.col("max_count") - f.col("min_count")), f.lit(0.0)).alias("spread"),
        f.coalesce(f.avg("balance_score"), f.lit(0.0)).alias("balance_score"),
        f.coalesce(f.avg("lag_skew"), f.lit(1.0)).alias("lag_skew"),
        f.coalesce(f.max("max_lag"), f.lit(0)).alias("max_lag"),
        f.coalesce(f.sum("copartition_violations"), f.lit(0)).alias("copartition_violations"),
        f.when(f.count_if(sound) == 0, f.coalesce(f.min("error"), f.lit("it has no figures"))).alias("error"),
        f.coalesce(f.sum("assigned"), f.lit(0)).alias("assigned"),
        f.coalesce(f.sum(f.col("partitions") - f.col("assigned")), f.lit(0)).alias("unassigned"),
        *load_ratios(),
        f.coalesce(f.max("members"), f.lit(0)).alias("members"),
        f.coalesce(f.max("partitions"), f.lit(0)).alias("partitions"),
    )
    figures = [name for name in by_strategy.columns if name not in _KEYS]
    found = by_strategy.groupBy(*_KEYS).agg(f.sort_array(f.collect_list(f.struct(*figures))).alias("strategies"))
    if events is None:
        return found.withColumns({"running": f.lit(None).cast("string"), "by_broker": f.lit(False)})
    return found.join(_in_use(events), list(_KEYS), "left")


def _in_use(events: DataFrame) -> DataFrame:
    """The strategy of each group: the last captured protocol, and whether it is a KIP-848 group.

    The kind of a captured event shows the type of its group: `snapshot` is of a classic group, `join` and `leave` of a
    KIP-848 group.
    """
    import pyspark.sql.functions as f

    own = checked(events, "membership_events")
    by_broker = f.col("kind").isin("join", "leave") & f.col("src_offset").isNotNull()
    named = f.when(f.length("protocol") > 0, f.struct("seq", "row", by_broker.alias("by_broker"), "protocol"))
    last = f.max(f.struct("seq", "row", by_broker.alias("by_broker")))["by_broker"]
    found = own.groupBy(*_KEYS).agg(last.alias("by_broker"), f.max(named).alias("named"))
    # A protocol from before a change of the group's type is not its present one.
    same = f.col("named.by_broker") == f.col("by_broker")
    return found.select(*_KEYS, f.when(same, f.col("named.protocol")).alias("running"), "by_broker")


def group_figures(row: Mapping[str, Any], joined: _core.Expression | None) -> GroupFigures:
    """A row of `by_group` as the input of the rules."""
    strategies = {}
    for each in row["strategies"]:
        values = {name: each[name] for name in StrategyFigures.__slots__}
        strategies[each["strategy"]] = StrategyFigures(**values)
    return GroupFigures(
        row["cluster"],
        row["group_id"],
        max(each["members"] for each in row["strategies"]),
        max(each["partitions"] for each in row["strategies"]),
        _in_order(strategies),
        joined is not None and row["group_id"] is not None and joined.matches([row["group_id"]])[0],
        row["running"],
        bool(row["by_broker"]),
    )


def _in_order(strategies: Mapping[str, StrategyFigures]) -> dict[str, StrategyFigures]:
    """Sorts `observed` first, then by moves."""
    return dict(sorted(strategies.items(), key=lambda item: (item[0] != OBSERVED, item[1].moved, item[0])))


def _recommended(
    batches: Iterable[pyarrow.RecordBatch], *, joined: str | None, limits: Limits, schema: pyarrow.Schema
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow

    # Each worker compiles the expression, since a compiled one cannot be pickled.
    expression = pattern(joined)
    for batch in batches:
        rows = []
        for row in batch.to_pylist():
            figures = group_figures(row, expression)
            found = recommend(figures, limits)
            present = today(figures)
            moved = figures.strategies[present].moved if present is not None else None
            gain = saved(figures, found)
            advised = present if found.strategy == KEEP else found.strategy
            rows.append(
                {
                    "cluster": figures.cluster,
                    "group_id": figures.group_id,
                    "strategy": found.strategy,
                    "rule": found.rule,
                    "reason": found.reason,
                    "running": figures.running,
                    "by_broker": figures.by_broker,
                    "today": present,
                    "moved_today": moved,
                    "moved_recommended": None if moved is None else moved - gain,
                    "saved": None if moved is None else gain,
                    "nobody_gets_today": _unread(figures, present),
                    "nobody_gets_recommended": _unread(figures, advised),
                }
            )
        yield pyarrow.RecordBatch.from_pylist(rows, schema=schema)


def _unread(figures: GroupFigures, name: str | None) -> float | None:
    own = None if name is None else figures.strategies.get(name)
    return None if own is None else own.unassigned_share


def pattern(joined: str | None) -> _core.Expression | None:
    """The expression that finds groups which join their topics, in RE2's syntax; matched in linear time.

    Raises:
        OptionError: the text is no regular expression.
    """
    if joined is None:
        return None
    try:
        return _core.Expression.search(joined)
    except (OptionError, TypeError) as error:
        raise OptionError(f"joined is {joined!r}; give a regular expression of group ids ({error})") from error


def recommendations(
    rebalances: DataFrame,
    *,
    events: DataFrame | None = None,
    joined: str | None = None,
    limits: Limits | None = None,
) -> DataFrame:
    """A strategy for each group, with the reason, by the rules of `kafka_assignors.report.recommend`.

    Args:
        rebalances: the table of that name.
        events: `membership_events`, for the strategy of each group: the captured protocol, or the broker's.
        joined: a regular expression (RE2's syntax); groups with a match in their id join their topics by partition
            number.
        limits: the thresholds of the rules.

    Returns:
        One row for each (cluster, group), with the columns of `RECOMMENDATIONS`.

    Raises:
        TableError: a table lacks a column.
        OptionError: `joined` is no regular expression.
    """
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    schema: Any = StructType.fromDDL(RECOMMENDATIONS)
    # Checked here, so that the error is raised in the caller and not on a worker.
    pattern(joined)
    find = partial(_recommended, joined=joined, limits=limits or Limits(), schema=to_arrow_schema(schema))
    return by_group(checked(rebalances, "rebalances"), events).mapInArrow(find, schema)
