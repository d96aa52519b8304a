"""A report with hostile names, written by hand."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import random

from kafka_assignors.report.model import (
    FailedReplay,
    GroupFigures,
    GroupReport,
    LagByMember,
    Ownership,
    Period,
    Quantiles,
    Report,
    StrategyFigures,
    StrategyTotals,
)
from kafka_assignors.report.recommend import recommend, saved, tally

START = 1_767_571_200_000
HOUR = 3_600_000

HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=1">',
    "</style><h1>styled</h1>{{ 7 * 7 }}{% raw %}",
    "$\\frac{1}{0}$ & <b>bold</b> ]]> &lt;",
    "nul\x00 esc\x1b[31m bell\x07 line\nend tab\t",
    "rtl \u202egnorw\u202c zero\u200bwidth \u2066x\u2069",
    "消费者组 групп 👩‍🚀 ﷽",
    "long-" + "x" * 244,
)

STRATEGIES = ("observed", "range", "roundrobin", "sticky", "cooperative-sticky", "sticky-join", "lag")


def figures(moved: int, *, spread: float = 1.0, skew: float = 1.3, lag: int = 500, needed: int = 40) -> StrategyFigures:
    return StrategyFigures(20, moved, min(needed, moved), spread, spread * 6, skew, lag, 0, None, 360, 120)


def ownership(strategy: str, members: list[str], topics: list[str], seed: int) -> Ownership:
    """Partitions that move at random, now and then."""
    chance = random.Random(seed)
    partitions = [(topic, number) for topic in topics for number in range(6)]
    owners = [[chance.randrange(len(members)) for _ in partitions]]
    for _ in range(19):
        owners.append([chance.randrange(len(members)) if chance.random() < 0.1 else old for old in owners[-1]])
    moved = [sum(map(operator.ne, *pair)) for pair in itertools.pairwise(owners)]
    return Ownership(strategy, [START + at * HOUR for at in range(20)], members, partitions, owners, [0, *moved])


def sample(names: tuple[str, ...] = HOSTILE) -> Report:
    worst = []
    for place, name in enumerate(names):
        of_group = {each: figures(900 - 100 * rank + place) for rank, each in enumerate(STRATEGIES)}
        of_group["sticky-join"] = StrategyFigures(0, 0, 0, 0.0, 0.0, 1.0, 0, 0, error=f"it failed: {name}")
        group = GroupFigures(names[-1 - place], name, 6 + place, 24, of_group)
        advice = recommend(group)
        members = [f"{other}-{number}" for number, other in enumerate(names)]
        # Only two groups have pictures, since drawing takes most of the time.
        timelines = []
        lag = None
        if place < 2:
            timelines = [
                ownership(each, members, list(names[:3]), place) for each in ("observed", "cooperative-sticky")
            ]
            carried = {member: 1_000 * at * (place + 1) for at, member in enumerate(members)}
            lag = LagByMember(START, dict.fromkeys(of_group, carried))
        worst.append(GroupReport(group, advice, saved(group, advice), timelines, lag))
    totals = [
        StrategyTotals(
            each,
            1_234 + rank,
            rank,
            98_765,
            4_000_000,
            1_000 * rank,
            123_456 - 10_000 * rank,
            40_000,
            Quantiles(1.0, 4.0 + rank, 96.0),
            Quantiles(3.0, 150.0, 99_999.0),
            Quantiles(1.2, 2.5, 12.34),
            17 * rank,
            0.1234,
            rank,
        )
        for rank, each in enumerate(STRATEGIES)
    ]
    periods = [Period(START + at * HOUR, 100, dict.fromkeys(STRATEGIES, 50 * (at % 24))) for at in range(72)]
    return Report(
        title=f"A fleet of {names[0]}",
        clusters=3,
        groups=1_234,
        rebalances=98_765,
        since=START,
        until=START + 72 * HOUR,
        strategies=totals,
        periods=periods,
        period_ms=HOUR,
        moved_today=123_456,
        moved_recommended=45_678,
        recommendations=tally(each.recommendation for each in worst) | {"keep": 1_000, "none": 2},
        worst=worst,
        failures=[FailedReplay(name, name, "range, sticky", f"seq 3: {name}") for name in names],
        failed_groups=400,
        observed_groups=1_000,
        notes=[f"A note on {names[-1]}."],
    )


def with_changes() -> Report:
    """The report with a section for each group, all of which have timelines."""
    report = sample()
    members = [f"{other}-{number}" for number, other in enumerate(HOSTILE)]
    changes = []
    for place, group in enumerate(report.worst):
        both = [ownership(each, members, list(HOSTILE[:3]), place) for each in ("observed", "sticky")]
        changes.append(dataclasses.replace(group, ownership=both, lag=None))
    return dataclasses.replace(report, changes=changes, recommendations={"sticky": 2 * len(HOSTILE), "keep": 1_000})
