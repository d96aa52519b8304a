"""The groups that a report shows: their figures, timelines and lags, which reach the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_assignors.report.model import GroupReport, LagByMember, Ownership, Recommendation
from kafka_assignors.report.recommend import KEEP, today
from kafka_assignors.report.timelines import COLUMNS_SHOWN
from kafka_assignors.spark.advice import by_group, group_figures, pattern
from kafka_assignors.spark.schemas import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from kafka_assignors.report.model import GroupFigures

__all__ = ["groups_shown"]

_KEYS = ("cluster", "group_id")
# A timeline of more partitions is not readable. The rows of this number cost a driver almost nothing.
_MOST_PARTITIONS = 4_000
# The driver's heap holds several copies of the rows of one query: for 300 groups at once more than two gigabytes.
_GROUPS_AT_ONCE = 40


def groups_shown(
    rows: DataFrame,
    chosen: Sequence[Any],
    events: DataFrame | None,
    lags: DataFrame | None,
    assignments: DataFrame | Callable[[DataFrame, Sequence[str]], DataFrame | None] | None,
    joined: str | None,
    *,
    by_member: int,
) -> list[GroupReport]:
    """The figures, timelines and lags of these groups for the page, in their order.

    Args:
        rows: `rebalances`, at least of these groups. It is read several times.
        chosen: rows of `recommendations`.
        events: see `report`.
        lags: see `report`.
        assignments: see `report`.
        joined: see `report`.
        by_member: for how many of them, from the first on, the lag of each member under each strategy is shown too.
    """
    if not chosen:
        return []
    spark = rows.sparkSession
    keys = spark.createDataFrame(
        [(row["cluster"], row["group_id"]) for row in chosen], "cluster string, group_id string"
    )

    def of_them(table: DataFrame) -> DataFrame:
        import pyspark.sql.functions as f

        return table.join(f.broadcast(keys), list(_KEYS), "left_semi")

    expression = pattern(joined)
    figures = {
        (row["cluster"], row["group_id"]): group_figures(row.asDict(recursive=True), expression)
        for row in by_group(of_them(rows), None if events is None else of_them(events)).collect()
    }
    advised = {
        (row["cluster"], row["group_id"]): Recommendation(row["strategy"], row["rule"], row["reason"]) for row in chosen
    }
    compared = {key: _compared(figures[key], advice) for key, advice in advised.items()}
    small = {key: None for key, each in figures.items() if 0 < each.partitions <= _MOST_PARTITIONS}
    with_lag = [key for row in chosen[:by_member] if (key := (row["cluster"], row["group_id"])) in small]
    table = None if callable(assignments) else assignments
    if callable(assignments):
        wanted = spark.createDataFrame(list(small), "cluster string, group_id string") if small else None
        # All groups in one query: it reads the whole tables, for a few groups as for many.
        names = {name for key in small for name in compared[key]}
        names |= {name for key in with_lag for name in figures[key].strategies}
        table = assignments(wanted, sorted(names)) if wanted is not None else None
    instances = {} if events is None else _instances(of_them(checked(events, "membership_events")))
    assigned = _Assignments(
        None if table is None else of_them(checked(table, "assignments")),
        of_them(rows).where("moved is not null"),
        {key: names for key, names in compared.items() if key in small},
        with_lag,
    )
    last = {key: at for key in with_lag if (at := assigned.last(key)) is not None}
    known = {} if lags is None or not last else _lags_at(of_them(checked(lags, "lags")), last)
    found = []
    for row in chosen:
        key = row["cluster"], row["group_id"]
        named = instances.get(key, {})
        timelines = [line for name in compared[key] if (line := assigned.ownership(key, name, named)) is not None]
        lag = assigned.lag(key, list(figures[key].strategies), named, known.get(key, {})) if key in last else None
        found.append(GroupReport(figures[key], advised[key], row["saved"] or 0, timelines, lag))
    return found


def _compared(figures: GroupFigures, advice: Recommendation) -> list[str]:
    """The present strategy and the recommended one; if a group keeps its own, the one that moves least instead."""
    present = today(figures)
    other = advice.strategy
    if other in (None, KEEP, present):
        rest = [name for name, each in figures.strategies.items() if name != present and each.error is None]
        other = rest[0] if rest else None
    return [name for name in (present, other) if name is not None]


def _instances(events: DataFrame) -> dict[tuple[str, str], dict[str, str]]:
    """The instance ids of each group's static members, by member id."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    rows = events.where("instance_id is not null and instance_id != ''").select(*_KEYS, "member_id", "instance_id")
    for row in rows.distinct().collect():
        found.setdefault((row[0], row[1]), {})[row[2]] = row[3]
    return found


def _lags_at(lags: DataFrame, last: Mapping[tuple[str, str], tuple[int, int]]) -> dict[tuple[str, str], _Lags]:
    """The last known lag of each partition of these groups, at the time in `last` of its group."""
    import pyspark.sql.functions as f

    if not last:
        return {}
    times = [(*key, at[0]) for key, at in last.items()]
    until = lags.sparkSession.createDataFrame(times, "cluster string, group_id string, until bigint")
    at_that_time = (
        lags.join(f.broadcast(until), list(_KEYS))
        .where("lag is not null and ts <= until")
        .groupBy(*_KEYS, "topic", "partition")
        .agg(f.max_by("lag", f.struct("ts", "lag")).alias("lag"))
    )
    found: dict[tuple[str, str], _Lags] = {}
    for row in at_that_time.collect():
        found.setdefault((row["cluster"], row["group_id"]), {})[row["topic"], row["partition"]] = row["lag"]
    return found


_Lags: TypeAlias = "dict[tuple[str, int], int]"
# ts, seq and generation of a rebalance; and a (member, topic, partitions) for each member and topic.
_Moments: TypeAlias = "dict[tuple[int, int, int], list[tuple[str, str, list[int]]]]"


class _Assignments:
    """The shown rows of `assignments` of some groups.

    The driver gets the last rebalances of the compared strategies and, of the groups `with_lag`, the last rebalance
    that all strategies have. So their number does not grow with the length of a history.
    """

    def __init__(
        self,
        table: DataFrame | None,
        rebalances: DataFrame,
        compared: Mapping[tuple[str, str], Sequence[str]],
        with_lag: Sequence[tuple[str, str]],
    ) -> None:
        self._found: dict[tuple[tuple[str, str], str], _Moments] = {}
        self._moved: dict[tuple[tuple[str, str], str], dict[tuple[int, int, int], int]] = {}
        if table is None or not compared:
            return
        import pyspark.sql.functions as f

        spark, moment = table.sparkSession, ["ts", "seq", "generation"]
        pairs = [(*key, name) for key, names in compared.items() for name in names]
        shown = _last_of(rebalances, spark.createDataFrame(pairs, "cluster string, group_id string, strategy string"))
        wanted = []
        for cluster, group_id, strategy, *at, count in _tuples(shown):
            wanted.append((cluster, group_id, strategy, *at))
            self._moved.setdefault(((cluster, group_id), strategy), {})[tuple(at)] = count
        if with_lag:
            those = spark.createDataFrame(list(with_lag), "cluster string, group_id string")
            common = _last_common(rebalances.join(f.broadcast(those), list(_KEYS), "left_semi"))
            wanted = list(dict.fromkeys([*wanted, *_tuples(common)]))
        # There are millions of rows: a number stands for the six columns of each rebalance.
        numbered = spark.createDataFrame(
            [(*each, place) for place, each in enumerate(wanted)],
            "cluster string, group_id string, strategy string, ts bigint, seq bigint, generation bigint, step int",
        )
        found = table.join(f.broadcast(numbered), [*_KEYS, "strategy", *moment])
        for step, *assigned in _in_parts(found.select("step", "member_id", "topic", "partitions"), len(compared)):
            cluster, group_id, strategy, *at = wanted[step]
            steps = self._found.setdefault(((cluster, group_id), strategy), {})
            steps.setdefault(tuple(at), []).append(tuple(assigned))

    def last(self, key: tuple[str, str]) -> tuple[int, int] | None:
        """ts and seq of the last rebalance that every strategy has."""
        moments = [{moment[:2] for moment in steps} for (of, _), steps in self._found.items() if of == key]
        return max(set.intersection(*moments), default=None) if moments else None

    def ownership(self, key: tuple[str, str], strategy: str, named: Mapping[str, str]) -> Ownership | None:
        """The timeline of a group's last rebalances; None if it is not in the table."""
        found = self._found.get((key, strategy))
        if not found:
            return None
        moments = sorted(self._moved.get((key, strategy), {}).items())[-COLUMNS_SHOWN:]
        # A rebalance that assigned no partition has no rows.
        steps = [(moment, found.get(moment, [])) for moment, _ in moments]
        partitions = sorted({(topic, number) for _, step in steps for _, topic, numbers in step for number in numbers})
        places = {partition: place for place, partition in enumerate(partitions)}
        members: dict[str, int] = {}
        owners = []
        for _, step in steps:
            owner = [-1] * len(partitions)
            for member, topic, numbers in sorted(step, key=lambda row: row[:2]):
                place = members.setdefault(named.get(member, member), len(members))
                for number in numbers:
                    owner[places[topic, number]] = place
            owners.append(owner)
        times = [moment[0] for moment, _ in moments]
        return Ownership(strategy, times, list(members), partitions, owners, [moved for _, moved in moments])

    def lag(
        self,
        key: tuple[str, str],
        strategies: Sequence[str],
        named: Mapping[str, str],
        known: Mapping[tuple[str, int], int],
    ) -> LagByMember | None:
        """The lag of each member after the last rebalance that every strategy has; None if there is no lag."""
        last = self.last(key)
        if last is None or not any(known.values()):
            return None
        found = {}
        for name in strategies:
            if (key, name) not in self._found:
                continue
            steps = self._found[key, name]
            moment = max(moment for moment in steps if moment[:2] == last)
            totals: dict[str, int] = {}
            for member, topic, numbers in steps[moment]:
                own = named.get(member, member)
                totals[own] = totals.get(own, 0) + sum(known.get((topic, number), 0) for number in numbers)
            found[name] = dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
        return LagByMember(last[0], found)


def _tuples(frame: DataFrame) -> Iterator[Any]:
    """The rows as tuples, by way of Arrow, which takes a fraction of the time of Spark's `collect`."""
    table = frame.toArrow()
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _in_parts(frame: DataFrame, groups: int) -> Iterator[Any]:
    """The rows as tuples, about those of 40 groups at a time."""
    import pyspark.sql.functions as f
    from pyspark import StorageLevel

    parts = -(-groups // _GROUPS_AT_ONCE)
    if parts == 1:
        yield from _tuples(frame)
        return
    # Each part is a job of its own, and without the copy on disk each would replay all groups.
    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        for part in range(parts):
            yield from _tuples(kept.where(f.col("step") % parts == part))
    finally:
        kept.unpersist()


def _last_of(rebalances: DataFrame, wanted: DataFrame) -> DataFrame:
    """The last rebalances of each of these groups and strategies."""
    import pyspark.sql.functions as f
    from pyspark.sql import Window

    latest = Window.partitionBy(*_KEYS, "strategy").orderBy(f.desc("ts"), f.desc("seq"), f.desc("generation"))
    of_them = rebalances.join(f.broadcast(wanted), [*_KEYS, "strategy"], "left_semi")
    numbered = of_them.withColumn("place", f.row_number().over(latest))
    return numbered.where(f.col("place") <= COLUMNS_SHOWN).select(
        *_KEYS, "strategy", "ts", "seq", "generation", "moved"
    )


def _last_common(rebalances: DataFrame) -> DataFrame:
    """The rows of the last rebalance of each group that all its strategies have."""
    import pyspark.sql.functions as f

    at = rebalances.groupBy(*_KEYS, "ts", "seq").agg(
        f.collect_set("strategy").alias("of"), f.collect_list(f.struct("strategy", "generation")).alias("each")
    )
    all_of = rebalances.groupBy(*_KEYS).agg(f.count_distinct("strategy").alias("all"))
    common = at.join(all_of, list(_KEYS)).where(f.size("of") == f.col("all"))
    last = common.groupBy(*_KEYS).agg(f.max(f.struct("ts", "seq", "each")).alias("last"))
    rows = last.select(*_KEYS, "last.ts", "last.seq", f.explode("last.each").alias("of"))
    return rows.select(*_KEYS, "of.strategy", "ts", "seq", "of.generation")
