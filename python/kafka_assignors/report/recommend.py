"""The recommended strategy of a group, from the figures of each strategy. The first rule that holds decides.

| Rule | Holds when | Recommends |
| --- | --- | --- |
| `unknown` | no strategy could be replayed | nothing |
| `alone` | never more than one member | keep |
| `joined` | the group joins its topics by partition number | the stream-join strategy |
| `broker` | the broker assigns the group (KIP-848), and its moves were not observed | keep |
| `lag` | the heaviest member has long had several times the mean lag, and `lag` evens that out | `lag` |
| `sticky` | a strategy is as even as any and moves clearly less than today's, or is clearly more even | that strategy |
| `keep` | no other rule, or the group runs that strategy already | keep |

"Today" means the observed figures, or else the figures of the strategy that the group runs. Without either, no strategy
is compared with today. A strategy that leaves more partitions without an owner than today's is never recommended.

`Limits` has the thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.errors import OptionError
from kafka_assignors.report.model import KEEP, OBSERVED, GroupFigures, Recommendation, StrategyFigures
from kafka_assignors.strategies import strategy_name

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KEEP", "Limits", "recommend", "saved", "today"]

# Of several equally good strategies the first is recommended. With a cooperative one members read during a rebalance.
_PREFERRED = ("cooperative-sticky", "sticky", "range", "roundrobin", "lag", "cooperative-sticky-join", "sticky-join")
# The broker's assignors, which no member can choose: they serve for comparison. A KIP-848 group runs one of them.
_OF_BROKER = {"uniform": "uniform", "range": "server-side-range"}
# A change for fewer moves must save at least _LEAST_SAVED moves, and more than _LEAST_SHARE_SAVED of today's moves.
_LEAST_SAVED = 10
_LEAST_SHARE_SAVED = 0.05
# A change for evenness must reduce the mean difference between fullest and emptiest member by so many partitions.
_LEAST_EVENER = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds of the rules.

    Args:
        lag_skew: the heaviest member's lag divided by the mean; a value up to this is even enough.
        lag: the largest lag of a member, in records; a value up to this does no harm.
        gain: the part by which a figure must improve to be worth a change.

    Raises:
        OptionError: a limit that is not positive, or a gain above 1.
    """

    lag_skew: float = 2.0
    lag: int = 10_000
    gain: float = 0.1

    def __post_init__(self) -> None:
        for name in ("lag_skew", "lag", "gain"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise OptionError(f"{name} is {value!r}; give a positive number")
        if self.gain > 1:
            raise OptionError(f"gain is {self.gain!r}; give a share, 1 at most")


def _rank(name: str) -> tuple[int, str]:
    base = strategy_name(name)
    return (_PREFERRED.index(base) if base in _PREFERRED else len(_PREFERRED)), name


def today(figures: GroupFigures) -> str | None:
    """The name of the present figures: `observed`, else the strategy in use if it was replayed; None without either."""
    sound = [name for name, each in figures.strategies.items() if each.error is None]
    if OBSERVED in sound:
        return OBSERVED
    running = _OF_BROKER.get(figures.running or "") if figures.by_broker else figures.running
    return running if running in sound else None


def saved(figures: GroupFigures, recommendation: Recommendation) -> int:
    """How many partitions fewer the recommended strategy moves than the present one; negative if it moves more."""
    present = today(figures)
    if recommendation.strategy in (None, KEEP) or present is None:
        return 0
    return figures.strategies[present].moved - figures.strategies[str(recommendation.strategy)].moved


def _worth(before: StrategyFigures, after: StrategyFigures, limits: Limits) -> bool:
    """Whether the saved moves are worth a change."""
    share = max(limits.gain, _LEAST_SHARE_SAVED)
    return before.moved - after.moved >= _LEAST_SAVED and before.moved - after.moved > share * before.moved


def _readable(choices: dict[str, StrategyFigures], now: StrategyFigures | None) -> dict[str, StrategyFigures]:
    """The strategies that leave no more partitions without an owner than today's, or than the best of them."""
    least = min(each.unassigned_share for each in choices.values())
    most = max(least, 0.0 if now is None else now.unassigned_share)
    return {name: each for name, each in choices.items() if each.unassigned_share <= most}


def _runs(figures: GroupFigures, name: str) -> bool:
    """Whether the group runs this strategy. Options are not on the wire, so only the names are compared."""
    return (
        not figures.by_broker and figures.running is not None and strategy_name(figures.running) == strategy_name(name)
    )


def recommend(figures: GroupFigures, limits: Limits = Limits()) -> Recommendation:
    """The recommendation for a group, with its reason. O(strategies).

    >>> def strategy(moved, spread=1.0, skew=1.2, lag=0):
    ...     return StrategyFigures(20, moved, 40, spread, spread * 4, skew, lag, 0)
    >>> group = GroupFigures("c", "g", 8, 100, {"range": strategy(400), "sticky": strategy(40)}, running="range")
    >>> found = recommend(group)
    >>> found.strategy, found.rule
    ('sticky', 'sticky')
    >>> print(found.reason)
    moves 40 partitions in 20 rebalances where range moves 400 (90% less), and is as even
    """
    sound = {name: each for name, each in figures.strategies.items() if each.error is None and each.rebalances}
    replayed = {name: each for name, each in sound.items() if name != OBSERVED}
    if not replayed:
        errors = sorted({each.error for each in figures.strategies.values() if each.error is not None})
        return Recommendation(None, "unknown", errors[0] if errors else "it was never replayed")
    if figures.members <= 1:
        return Recommendation(KEEP, "alone", "it never had a second member: any strategy gives the one everything")
    present = today(figures)
    now = None if present is None else sound.get(present)
    ours = {name: each for name, each in replayed.items() if strategy_name(name) not in _OF_BROKER.values()}
    choices = _readable(ours, now) if ours else {}
    plain = {name: each for name, each in choices.items() if "join" not in strategy_name(name)}
    found = _joined(choices, now, limits) if figures.joined else None
    if found is None and figures.by_broker and now is None:
        reason = "the broker assigns it (KIP-848), and what that moved is not in the tables: nothing to compare with"
        return Recommendation(KEEP, "broker", reason)
    if found is None and plain:
        found = _by_lag(plain, present, now, limits) or _by_moves(plain, present, now, limits)
    if found is None:
        reason = "only strategies for joins were replayed" if choices else "only the broker's assignors were replayed"
        return Recommendation(KEEP, "keep", reason)
    if found.strategy is not None and found.strategy != KEEP and _runs(figures, found.strategy):
        return Recommendation(KEEP, "keep", f"it runs {figures.running} already: {found.reason}")
    return found


def _joined(choices: dict[str, StrategyFigures], now: StrategyFigures | None, limits: Limits) -> Recommendation | None:
    joins = sorted(
        (name for name in choices if "join" in strategy_name(name)), key=lambda name: (choices[name].moved, _rank(name))
    )
    if not joins:
        return None
    own = choices[joins[0]]
    if now is not None and not now.copartition_violations and not _worth(now, own, limits):
        reason = (
            f"it joins its topics, and today's equal partition numbers are together; {joins[0]} moves {own.moved:,}"
        )
        return Recommendation(KEEP, "joined", f"{reason} partitions instead of {now.moved:,}")
    others = sorted((name for name in choices if name not in joins and name != "lag"), key=_rank)
    reason = f"it joins its topics: equal partition numbers stay together, {_count(own.moved, 'partition')} moved"
    broken = [
        f"{name} {choices[name].copartition_violations:,}" for name in others if choices[name].copartition_violations
    ]
    if broken:
        reason += f"; numbers torn apart by others: {', '.join(broken)}"
    return Recommendation(joins[0], "joined", reason)


def _by_lag(
    choices: dict[str, StrategyFigures], present: str | None, now: StrategyFigures | None, limits: Limits
) -> Recommendation | None:
    lags = sorted(
        (name for name in choices if strategy_name(name) == "lag"),
        key=lambda name: (choices[name].lag_skew, _rank(name)),
    )
    others = [name for name in choices if strategy_name(name) != "lag"]
    if not lags or not (others or now):
        return None
    if now is not None:
        other, rival = now, "" if present == OBSERVED else f" with {present}"
    else:
        # Compared with the strategy that would be recommended for its few moves.
        name = min(others, key=lambda name: (choices[name].balance_score, choices[name].moved, _rank(name)))
        other, rival = choices[name], f" with {name}"
    lag = choices[lags[0]]
    if other.max_lag <= limits.lag or other.lag_skew <= limits.lag_skew:
        return None
    if lag.lag_skew - 1 > (other.lag_skew - 1) * 0.75:
        return None
    return Recommendation(
        lags[0],
        "lag",
        f"the heaviest member carries {lag.lag_skew:.1f} times the mean lag instead of {other.lag_skew:.1f} times"
        f"{rival} (up to {other.max_lag:,} records); it moves {lag.moved:,} partitions instead of {other.moved:,}",
    )


def _by_moves(
    choices: dict[str, StrategyFigures], present: str | None, now: StrategyFigures | None, limits: Limits
) -> Recommendation:
    least = min(each.balance_score for each in choices.values())
    even = [name for name, each in choices.items() if each.balance_score <= least * (1 + limits.gain / 2)]
    best = min(even, key=lambda name: (strategy_name(name) == "lag", choices[name].moved, _rank(name)))
    own = choices[best]
    if now is None or present == best:
        others = sorted((name for name in choices if name != best), key=lambda name: (choices[name].moved, _rank(name)))
        beside = f", {others[-1]} {choices[others[-1]].moved:,}" if others else ""
        moves = f"{_count(own.moved, 'partition')} in {_count(own.rebalances, 'rebalance')}"
        reason = f"as even as any, and moves {moves}{beside}"
        if now is None:
            return Recommendation(best, "sticky", f"{reason}; what the group runs today is not in the tables")
        return Recommendation(KEEP, "keep", reason)
    name = "it" if present == OBSERVED else present
    evener = now.balance_score - own.balance_score
    is_evener = evener > limits.gain * now.balance_score and now.spread - own.spread >= _LEAST_EVENER
    if _worth(now, own, limits) or is_evener:
        parts = []
        if now.moved or own.moved:
            change = _change(now.moved, own.moved)
            parts.append(
                f"moves {_count(own.moved, 'partition')} in {_count(own.rebalances, 'rebalance')} where {name} "
                f"{'moved' if present == OBSERVED else 'moves'} {now.moved:,}{change}"
            )
        if is_evener:
            parts.append(
                f"is more even: fullest and emptiest member differ by {own.spread:.1f} partitions instead of "
                f"{now.spread:.1f}, in the mean"
            )
        else:
            parts.append("is as even")
        return Recommendation(best, "sticky", ", and ".join(parts))
    what = "what it runs" if present == OBSERVED else present
    verb = "moved" if present == OBSERVED else "moves"
    return Recommendation(
        KEEP,
        "keep",
        f"{what} {verb} {_count(now.moved, 'partition')}, {best} {own.moved:,}: no gain that is worth a change",
    )


def _change(before: int, after: int) -> str:
    if not before or before == after:
        return ""
    share = abs(before - after) / before
    return f" ({share:.0%} {'less' if after < before else 'more'})"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def tally(recommendations: Iterable[Recommendation]) -> dict[str, int]:
    """How often each strategy is recommended, most often first; `none` for groups without a recommendation."""
    found: dict[str, int] = {}
    for each in recommendations:
        name = each.strategy or "none"
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
