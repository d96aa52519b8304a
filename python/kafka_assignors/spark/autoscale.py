"""What autoscalers would do with every group of a capture: the table `autoscale`, and the page about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.autoscale import Offsets, Timing, member_counts, parse_policy, replay, workload
from kafka_assignors.autoscale.policy import Policy
from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.report.autoscale import AutoscaledGroup, AutoscalePage, PolicyTotals
from kafka_assignors.spark.schemas import checked, needs_pyspark, schema
from kafka_assignors.strategies import parse_strategy, split_strategies, strategy_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from kafka_assignors.assignors import Assignor

__all__ = ["MEMBERSHIPS", "STRATEGIES", "autoscale", "autoscale_report"]

STRATEGIES = ("range", "sticky", "cooperative-sticky")
"""The strategies by default."""

MEMBERSHIPS = ("dynamic", "static")
"""Whether members have a `group.instance.id`."""

_KEY = ("cluster", "group_id")
_OFFSETS = ("ts", "topic", "partition", "begin", "end", "committed")
_EVENTS = ("ts", "seq", "kind", "member_id")
_FIGURES = (
    "member_hours",
    "scalings",
    "least_replicas",
    "most_replicas",
    "rebalances",
    "moves",
    "unowned_s",
    "empty_s",
    "late",
    "records",
    "unread",
    "most_lag",
    "error",
)


def autoscale(
    snapshots: DataFrame,
    policies: Iterable[str | Policy],
    *,
    events: DataFrame | None = None,
    strategies: str | Iterable[str | Assignor] = STRATEGIES,
    memberships: Iterable[str] = MEMBERSHIPS,
    groups: Sequence[str] = (),
    rate: float | None = None,
    reset: str = "latest",
    timing: Timing | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """The table `autoscale`: a row for each group, policy, strategy and membership.

    A group whose lag cannot be replayed (one moment only, or commits that never advance) has one row with its key and
    `error`. The rows do not depend on the number of tasks and the order of the input, and are those of
    `kafka-assignors autoscale` for one group.

    Args:
        snapshots: the table `offset_snapshots`.
        policies: texts as for `kafka_assignors.autoscale.parse_policy`, or policies.
        events: the table `membership_events`, for the number of members of a group. Without it every group counts as a
            group of one member: a replay begins with one, and the measured rate of the group is the rate of a member.
        strategies: texts as for `kafka_assignors.strategies.parse_strategy`, with commas in one string, or assignors.
        memberships: some of `MEMBERSHIPS`.
        groups: the ids of the groups; none means all of them.
        rate: how many records a second one member reads; None measures it in each group from its commits.
        reset: the groups' `auto_offset_reset`.
        timing: how long a rebalance, a start, and so on take; the defaults if None.
        tasks: the number of tasks; None leaves it to Spark.

    Raises:
        MissingDependencyError: PySpark is not installed.
        OptionError: a policy, strategy or membership that is unknown or given twice, or a number out of range.
        TableError: a table lacks a column, or has one of another type.

    A worker's memory is bounded by its largest group. Time: about a microsecond for each partition and step of a
    replay, and a plan for each rebalance. A step is the common divisor of the policy's periods, 15 seconds by default.
    """
    try:
        from pyspark.sql.functions import lit
    except ImportError as error:
        raise needs_pyspark() from error
    run = _of_group(*check_options(policies, strategies, memberships, rate, tasks), rate, reset, timing or Timing())
    offsets = checked(snapshots, "offset_snapshots").select(*_KEY, *_OFFSETS)
    if events is None:
        none = offsets.select(*_KEY).limit(0)
        empty: dict[str, str] = {"ts": "bigint", "seq": "bigint", "kind": "string", "member_id": "string"}
        counted = none.select(*_KEY, *(lit(None).cast(kind).alias(name) for name, kind in empty.items()))
    else:
        counted = checked(events, "membership_events").select(*_KEY, *_EVENTS)
    if groups:
        offsets, counted = (each.where(each["group_id"].isin(list(groups))) for each in (offsets, counted))
    if tasks is not None:
        offsets, counted = offsets.repartition(tasks, *_KEY), counted.repartition(tasks, *_KEY)
    both = offsets.groupBy(*_KEY).cogroup(counted.groupBy(*_KEY))
    return both.applyInArrow(run, schema("autoscale"))


def check_options(
    policies: Iterable[str | Policy],
    strategies: str | Iterable[str | Assignor],
    memberships: Iterable[str],
    rate: float | None,
    tasks: int | None,
) -> tuple[list[Policy], list[Assignor], list[str]]:
    """The options as values, before Spark starts.

    Raises:
        OptionError: see `autoscale`.
    """
    found = [each if isinstance(each, Policy) else parse_policy(each) for each in policies]
    texts: Iterable[str | Assignor] = split_strategies(strategies) if isinstance(strategies, str) else strategies
    assignors = [parse_strategy(each) if isinstance(each, str) else each for each in texts]
    kinds = list(memberships)
    for what, names in (
        ("policy", [each.name for each in found]),
        ("strategy", [strategy_text(each) for each in assignors]),
        ("membership", kinds),
    ):
        if not names:
            raise OptionError(f"no {what} is given; give one at least")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise OptionError(f"{what} {twice!r} is given twice; give each once")
    wrong = [each for each in kinds if each not in MEMBERSHIPS]
    if wrong:
        raise OptionError(f"membership is {wrong[0]!r}; give some of {', '.join(MEMBERSHIPS)}")
    if rate is not None and not 0 < rate <= 1e9:
        raise OptionError(f"rate is {rate!r}; give more than 0 and at most 1e9 records a second")
    if tasks is not None and (isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1):
        raise OptionError(f"tasks is {tasks!r}; give a positive integer, or None")
    return found, assignors, kinds


def _of_group(
    policies: Sequence[Policy],
    assignors: Sequence[Assignor],
    memberships: Sequence[str],
    rate: float | None,
    reset: str,
    timing: Timing,
) -> Callable[[Any, Any], Any]:
    """The function of a worker for the offsets and the events of one group."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    # Converted here and not in `run`: `schema` needs a Spark session, and a worker has none.
    wanted = to_arrow_schema(schema("autoscale"))

    def run(offsets: Any, events: Any) -> Any:
        if not offsets.num_rows:
            # A group that never had an offset has nothing to read.
            return wanted.empty_table()
        key = {name: offsets.column(name)[0].as_py() for name in _KEY}
        rows = list(_rows(key, offsets, events))
        return pyarrow.Table.from_pylist(rows, wanted)

    def _rows(key: dict[str, Any], offsets: Any, events: Any) -> Iterator[dict[str, Any]]:
        found = [Offsets(*each) for each in zip(*(offsets.column(name).to_pylist() for name in _OFFSETS), strict=True)]
        happened = zip(*(events.column(name).to_pylist() for name in _EVENTS), strict=True)
        try:
            whole = [each for each in found if None not in (each.ts, each.topic, each.partition)]
            counts = member_counts(each for each in happened if None not in each)
            load = workload(str(key["group_id"]), whole, rate=rate, members=counts, reset=reset)
        except GroupError as error:
            yield {**key, "error": str(error)}
            return
        head = {
            **key,
            "since": load.times[0],
            "until": load.times[-1],
            "partitions": len(load.partitions),
            "rate": load.rate,
            "notes": list(load.notes),
        }
        for policy in policies:
            for assignor in assignors:
                for membership in memberships:
                    try:
                        done = replay(load, policy, assignor, static=membership == "static", timing=timing)
                    except OptionError as error:
                        yield {
                            **head,
                            "policy": policy.name,
                            "strategy": strategy_text(assignor),
                            "membership": membership,
                            "error": str(error),
                        }
                        continue
                    yield {
                        **head,
                        "policy": done.policy,
                        "strategy": done.strategy,
                        "membership": done.membership,
                        **{name: getattr(done, name) for name in _FIGURES},
                        "replicas": [{"ts": ts, "replicas": count} for ts, count in done.replicas],
                        "lag": [{"ts": ts, "lag": count} for ts, count in done.lag],
                    }

    # PySpark chooses the kind of function by its type hints, and does not evaluate hints that are text.
    run.__annotations__ = {"offsets": pyarrow.Table, "events": pyarrow.Table, "return": pyarrow.Table}
    return run


def autoscale_report(
    rows: DataFrame,
    *,
    deadline: float = Timing().deadline,
    top: int = 6,
    groups: Sequence[str] = (),
    title: str = "What autoscalers would have done",
) -> AutoscalePage:
    """The page about a table `autoscale`, for `kafka_assignors.report.autoscale.autoscale_page`.

    Spark computes the sums; only the rows of the shown groups reach the driver.

    Args:
        rows: the table.
        deadline: the seconds within which a record had to be read in these replays.
        top: how many groups are shown one by one: those for which the policies differ most in late records, and then in
            member-hours.
        groups: the ids of groups to show instead.
        title: of the page.

    Raises:
        TableError: the table lacks a column.
        OptionError: `top` is not a number from 0 to 1000, or the table lacks a group.
    """
    import pyspark.sql.functions as f

    if isinstance(top, bool) or not isinstance(top, int) or not 0 <= top <= 1_000:
        raise OptionError(f"top is {top!r}; give a number of groups, 0 to 1000")
    table = checked(rows, "autoscale")
    sound = table.where("policy is not null and error is null")
    sums = ("member_hours", "scalings", "rebalances", "unowned_s", "late", "records")
    totals = (
        table.where("policy is not null")
        .groupBy("policy", "strategy", "membership")
        .agg(
            f.count("*").alias("groups"),
            f.count("error").alias("failed"),
            *(f.coalesce(f.sum(f.when(f.col("error").isNull(), f.col(name))), f.lit(0)).alias(name) for name in sums),
        )
        .orderBy("policy", "strategy", "membership")
        .collect()
    )
    ranked = sound.groupBy(*_KEY).agg(
        (f.max("late") - f.min("late")).alias("late"), (f.max("member_hours") - f.min("member_hours")).alias("hours")
    )
    if groups:
        named = ranked.where(f.col("group_id").isin(list(groups))).orderBy(*_KEY).limit(1_000)
    else:
        named = ranked.orderBy(f.desc("late"), f.desc("hours"), *_KEY).limit(top)
    keys = [(row["cluster"], row["group_id"]) for row in named.collect()]
    lacking = sorted(set(groups) - {group_id for _, group_id in keys})
    if lacking:
        raise OptionError(f"the table autoscale has no figures of group {lacking[0]!r}; give another one")
    failed = table.where("policy is null").count()
    notes = [f"{failed:,} groups could not be replayed; the column error says why."] if failed else []
    return AutoscalePage(
        title,
        deadline,
        [PolicyTotals(**{name: row[name] for name in PolicyTotals.__slots__}) for row in totals],
        _shown(table, keys),
        notes,
    )


def _shown(table: DataFrame, keys: Sequence[tuple[str, str]]) -> list[AutoscaledGroup]:
    from pyspark.sql.functions import broadcast

    from kafka_assignors.autoscale import Replayed

    if not keys:
        return []
    wanted = table.sparkSession.createDataFrame(list(keys), "cluster string, group_id string")
    found = table.join(broadcast(wanted), list(_KEY), "left_semi").where("policy is not null").collect()
    by_key: dict[tuple[str, str], list[Any]] = {}
    for row in found:
        by_key.setdefault((row["cluster"], row["group_id"]), []).append(row)
    groups = []
    for key in keys:
        own = sorted(by_key[key], key=lambda row: (row["policy"], row["strategy"], row["membership"]))
        runs = []
        for row in own:
            figures = {name: row[name] for name in _FIGURES if row[name] is not None}
            runs.append(
                Replayed(
                    row["policy"],
                    row["strategy"],
                    row["membership"],
                    **figures,
                    replicas=tuple((each["ts"], each["replicas"]) for each in row["replicas"] or ()),
                    lag=tuple((each["ts"], each["lag"]) for each in row["lag"] or ()),
                )
            )
        first = own[0]
        groups.append(
            AutoscaledGroup(
                *key,
                first["since"],
                first["until"],
                first["partitions"],
                first["rate"],
                runs,
                tuple(first["notes"] or ()),
            )
        )
    return groups
