"""The summaries of the table `rebalances`, by group and by strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.errors import OptionError
from kafka_assignors.spark.schemas import SUMMED, TABLES, checked, needs_pyspark
from kafka_assignors.spark.strategies import OBSERVED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

__all__ = ["BEST_BY", "group_summary", "strategy_summary", "three_digits"]

BEST_BY = ("balance_score_total", "moved_total", "lag_skew_p95")
"""The default order that decides the best strategy of a group: evenness first, then moves, then lag."""

_KEY = ("cluster", "group_id")


def group_summary(rebalances: DataFrame, *, best_by: Sequence[str] = BEST_BY) -> DataFrame:
    """The table `group_summary`: a row for each group and strategy.

    For `moved`, `moved_needed`, `balance_score`, `copartition_violations`, `kernel_ns` and `ownerless_ms` the total,
    the median, the 95th percentile and the largest over the group's rebalances; for `lag_skew` all but the total.
    Percentiles are exact, with linear interpolation between two values. `load_ratio_mean` and `load_ratio_max` are of
    `worst_load` divided by `load_bound`, which only weighted strategies have. `share_moved` is the sum of moved
    partitions divided by the sum of all partitions; `unassigned_total` is the sum of subscribed partitions without an
    owner, `share_unassigned` their part of all. `rebalances` counts rows with figures, `errors` rows with an error; a
    group that could not be replayed has a row without a strategy.

    Args:
        rebalances: the table `rebalances`. It is read once.
        best_by: columns of this table; `best` marks the strategy of each group with the least value of the first, of
            equal ones the least of the second, and so on, and at last the first by name. `observed` is never marked,
            and neither is a strategy that leaves a larger part of the partitions without an owner than `observed` (or,
            if that is not known, than another strategy).

    Raises:
        MissingDependencyError: PySpark is not installed.
        OptionError: `best_by` names no column with a number.
        TableError: a column is missing, or has another type.
    """
    try:
        from pyspark.sql import Window
        from pyspark.sql.functions import col, greatest, lit, row_number, when
        from pyspark.sql.functions import min as least_of
    except ImportError as error:
        raise needs_pyspark() from error
    numbers = [column.name for column in TABLES["group_summary"] if column.type in ("bigint", "double")]
    unknown = [name for name in best_by if name not in numbers]
    if unknown or isinstance(best_by, str):
        raise OptionError(f"best_by is {best_by!r}; give some of {', '.join(numbers)}")
    rows = checked(rebalances, "rebalances")
    summed = rows.groupBy(*_KEY, "strategy").agg(*_figures())
    replayed = (col("rebalances") > 0) & (col("strategy") != lit(OBSERVED))
    # A strategy must not win by leaving partitions without a reader.
    group = Window.partitionBy(*_KEY)
    unread = col("share_unassigned")
    today = least_of(when((col("rebalances") > 0) & (col("strategy") == lit(OBSERVED)), unread)).over(group)
    bound = greatest(least_of(when(replayed, unread)).over(group), today)
    summed = summed.withColumn("bound", bound)
    candidate = replayed & (unread <= col("bound"))
    order = [*(col(name).asc_nulls_last() for name in best_by), col("strategy")]
    place = row_number().over(Window.partitionBy(*_KEY, candidate).orderBy(*order))
    # A null strategy makes the candidate null.
    best = (candidate & (place == 1)).eqNullSafe(lit(True))
    return checked(summed.withColumn("best", best), "group_summary")


def strategy_summary(rebalances: DataFrame, groups: DataFrame) -> DataFrame:
    """The table `strategy_summary`: a row for each strategy, with the columns of `group_summary` over all groups.

    `groups` are the groups with this strategy, `best_groups` those where it is marked as the best. Groups that could
    not be replayed are in the row without a strategy. Medians and percentiles are of values rounded to three digits:
    the memory for exact ones grows with the number of different values in the fleet, and must fit into Spark's heap.

    Args:
        rebalances: the table `rebalances`.
        groups: `group_summary` of it.

    Raises:
        MissingDependencyError: PySpark is not installed.
        TableError: a column is missing, or has another type.
    """
    try:
        from pyspark.sql.functions import col, count, lit
        from pyspark.sql.functions import sum as total
    except ImportError as error:
        raise needs_pyspark() from error
    summed = checked(rebalances, "rebalances").groupBy("strategy").agg(*_figures(three_digits))
    counted = (
        checked(groups, "group_summary")
        .groupBy(col("strategy").alias("of"))
        .agg(count(lit(1)).alias("groups"), total(col("best").cast("bigint")).alias("best_groups"))
    )
    # The row of groups that could not be replayed has a null for its strategy.
    both = summed.join(counted, col("strategy").eqNullSafe(col("of")), "left")
    return checked(both, "strategy_summary")


def three_digits(value: Column) -> Column:
    """A figure that is not negative, cut to its first three digits; whole numbers below 1,000 stay.

    So there are few different values for any number of rows: 900 for each further digit, and those below 1,000.
    """
    from pyspark.sql.functions import floor, lit, log10, power, round, when

    unit = power(lit(10.0), floor(log10(value)) - 2)
    return when(value < 1_000, round(value.cast("double"), 2)).otherwise(round(value / unit) * unit)


def load_ratio() -> Column:
    """The load of the heaviest member in a rebalance, divided by the bound.

    1 is the least possible, and the value for a plan without load. Null for a strategy without weights.
    """
    from pyspark.sql.functions import col, lit, when

    bound = col("load_bound")
    return when(bound > 0, col("worst_load") / bound).when(bound == 0, lit(1.0))


def load_ratios() -> list[Column]:
    """`load_ratio` over rebalances: `load_ratio_mean` and `load_ratio_max`."""
    from pyspark.sql.functions import avg
    from pyspark.sql.functions import max as largest

    return [avg(load_ratio()).alias("load_ratio_mean"), largest(load_ratio()).alias("load_ratio_max")]


def _figures(rounded: Callable[[Column], Column] = lambda value: value) -> list[Column]:
    from pyspark.sql.functions import array, coalesce, col, count, least, lit, percentile, when
    from pyspark.sql.functions import max as largest
    from pyspark.sql.functions import sum as total

    def summed(name: str) -> Column:
        # A score may be the largest bigint. A plain sum of such scores would overflow and fail the query.
        wide = coalesce(total(col(name).cast("decimal(20, 0)")), lit(0).cast("decimal(30, 0)"))
        return least(wide, lit(2**63 - 1).cast("decimal(30, 0)")).cast("bigint")

    def half_and_most(name: str) -> list[Column]:
        both = percentile(rounded(col(name)), array(lit(0.5), lit(0.95)))
        return [both[0].alias(f"{name}_p50"), both[1].alias(f"{name}_p95"), largest(name).alias(f"{name}_max")]

    partitions = coalesce(total(col("partitions").cast("bigint")), lit(0).cast("bigint"))
    assigned = coalesce(total(col("assigned").cast("bigint")), lit(0).cast("bigint"))
    share = when(partitions > 0, total("moved") / partitions)
    columns = [
        count("moved").alias("rebalances"),
        count("error").alias("errors"),
        coalesce(share, lit(0.0)).alias("share_moved"),
        (partitions - assigned).alias("unassigned_total"),
        coalesce(when(partitions > 0, (partitions - assigned) / partitions), lit(0.0)).alias("share_unassigned"),
    ]
    for name in SUMMED:
        # `observed` has no `ownerless_ms` in any row. Its total must be null, and not 0.
        sum_ = when(count(name) > 0, summed(name)) if name == "ownerless_ms" else summed(name)
        columns += [sum_.alias(f"{name}_total"), *half_and_most(name)]
    return [*columns, *half_and_most("lag_skew"), *load_ratios()]
