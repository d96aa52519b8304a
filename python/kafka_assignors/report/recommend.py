"""What a group should use, from what each strategy would have meant for it: rules in order, of which one decides.

The first that holds:

| Rule | Holds when | Recommends |
| --- | --- | --- |
| `unknown` | no strategy could be replayed | nothing |
| `alone` | never more than one member | keep |
| `joined` | the group joins its topics by partition number | the stream-join strategy |
| `broker` | the broker assigns the group (KIP-848), and what it moved was not observed | keep |
| `lag` | the heaviest member has long had several times the mean lag, and `lag` evens that out | `lag` |
| `sticky` | a strategy is as even as any and moves clearly less than today's, or is clearly more even | that strategy |
| `keep` | nothing of that, or it is what the group runs already | keep |

Today is what was observed, or else what the strategy that the group is known to run would have done; without one of
them nothing is compared with. A strategy that leaves more partitions to nobody than today's does is never recommended.

The figures that count are in `Limits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.errors import OptionError
from kafka_assignors.report.model import OBSERVED, GroupFigures, Recommendation, StrategyFigures

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KEEP", "Limits", "recommend", "saved", "today"]

KEEP = "keep"
"""What is recommended where no change is worth it."""

# Of strategies that are equally good the first is taken: those that let members work on through a rebalance come first.
_PREFERRED = ("cooperative-sticky", "sticky", "range", "roundrobin", "lag", "cooperative-sticky-join", "sticky-join")
# A change for the sake of moves saves at least so many, and such a part of today's.
_LEAST_SAVED = 10
_LEAST_SHARE_SAVED = 0.05
# A change for the sake of evenness brings fullest and emptiest member nearer by so many partitions, in the mean.
_LEAST_EVENER = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on something matters.

    Args:
        lag_skew: the heaviest member's lag by the mean; at most this is even enough.
        lag: the largest lag of a member, in records; at most this is nobody's trouble.
        gain: the share by which something must become better to be worth a change.

    Raises:
        OptionError: a limit that is not positive, or a share above 1.
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


def _base(name: str) -> str:
    """The strategy without its options: `lag` for `lag:scope=group`."""
    return name.split(":", 1)[0].split("(", 1)[0]


def _rank(name: str) -> tuple[int, str]:
    base = _base(name)
    return (_PREFERRED.index(base) if base in _PREFERRED else len(_PREFERRED)), name


def today(figures: GroupFigures) -> str | None:
    """The name of what stands for the present: what was observed, else the strategy in use, if it was replayed."""
    sound = [name for name, each in figures.strategies.items() if each.error is None]
    if OBSERVED in sound:
        return OBSERVED
    return figures.running if figures.running in sound and not figures.by_broker else None


def saved(figures: GroupFigures, recommendation: Recommendation) -> int:
    """The partitions that the recommended strategy would not have moved, of those that the present one moved."""
    present = today(figures)
    if recommendation.strategy in (None, KEEP) or present is None:
        return 0
    return figures.strategies[present].moved - figures.strategies[str(recommendation.strategy)].moved


def _worth(before: StrategyFigures, after: StrategyFigures, limits: Limits) -> bool:
    """Whether so many fewer moves are worth a change."""
    share = max(limits.gain, _LEAST_SHARE_SAVED)
    return before.moved - after.moved >= _LEAST_SAVED and before.moved - after.moved > share * before.moved


def _readable(choices: dict[str, StrategyFigures], now: StrategyFigures | None) -> dict[str, StrategyFigures]:
    """The strategies that leave no more partitions to nobody than today's does, or than the best of them."""
    least = min(each.unassigned_share for each in choices.values())
    most = max(least, 0.0 if now is None else now.unassigned_share)
    return {name: each for name, each in choices.items() if each.unassigned_share <= most}


def _runs(figures: GroupFigures, name: str) -> bool:
    """Whether a strategy is what the group runs. Options are not on the wire, so that they cannot be told apart."""
    return not figures.by_broker and figures.running is not None and _base(figures.running) == _base(name)


def recommend(figures: GroupFigures, limits: Limits = Limits()) -> Recommendation:
    """What a group should use, and why. O(strategies).

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
    choices = _readable(replayed, now)
    plain = {name: each for name, each in choices.items() if "join" not in _base(name)}
    found = _joined(choices, now, limits) if figures.joined else None
    if found is None and figures.by_broker and now is None:
        reason = "the broker assigns it (KIP-848), and what that moved is not in the tables: nothing to compare with"
        return Recommendation(KEEP, "broker", reason)
    if found is None and plain:
        found = _by_lag(plain, present, now, limits) or _by_moves(plain, present, now, limits)
    if found is None:
        return Recommendation(KEEP, "keep", "only strategies for joins were replayed")
    if found.strategy is not None and found.strategy != KEEP and _runs(figures, found.strategy):
        return Recommendation(KEEP, "keep", f"it runs {figures.running} already: {found.reason}")
    return found


def _joined(choices: dict[str, StrategyFigures], now: StrategyFigures | None, limits: Limits) -> Recommendation | None:
    joins = sorted(
        (name for name in choices if "join" in _base(name)), key=lambda name: (choices[name].moved, _rank(name))
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
        (name for name in choices if _base(name) == "lag"), key=lambda name: (choices[name].lag_skew, _rank(name))
    )
    others = [name for name in choices if _base(name) != "lag"]
    if not lags or not (others or now):
        return None
    if now is not None:
        other, rival = now, "" if present == OBSERVED else f" with {present}"
    else:
        # Beside the strategy that would be taken for its few moves.
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
    best = min(even, key=lambda name: (_base(name) == "lag", choices[name].moved, _rank(name)))
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
    """How often each strategy is recommended, most often first; `none` where nothing can be said."""
    found: dict[str, int] = {}
    for each in recommendations:
        name = each.strategy or "none"
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
