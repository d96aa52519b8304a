"""What a group should use, from what each strategy would have meant for it: rules in order, of which one decides.

The first that holds:

| Rule | Holds when | Recommends |
| --- | --- | --- |
| `unknown` | no strategy could be replayed | nothing |
| `alone` | never more than one member | keep |
| `joined` | the group joins its topics by partition number | the stream-join strategy |
| `lag` | the heaviest member has long had several times the mean lag, and `lag` evens that out | `lag` |
| `sticky` | a strategy is as even as any and moves clearly less than today's, or is clearly more even | that strategy |
| `keep` | nothing of that | keep |

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
# Kafka's default, which stands for today's strategy where that is not known.
_DEFAULT = "range"


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
    """The name of what stands for the present: what was observed, else Kafka's default, if it was replayed."""
    sound = {name for name, each in figures.strategies.items() if each.error is None}
    return next((name for name in (OBSERVED, _DEFAULT) if name in sound), None)


def saved(figures: GroupFigures, recommendation: Recommendation) -> int:
    """The partitions that the recommended strategy would not have moved, of those that the present one moved."""
    present = today(figures)
    if recommendation.strategy in (None, KEEP) or present is None:
        return 0
    return figures.strategies[present].moved - figures.strategies[str(recommendation.strategy)].moved


def recommend(figures: GroupFigures, limits: Limits = Limits()) -> Recommendation:
    """What a group should use, and why. O(strategies).

    >>> def strategy(moved, spread=1.0, skew=1.2, lag=0):
    ...     return StrategyFigures(20, moved, 40, spread, spread * 4, skew, lag, 0)
    >>> group = GroupFigures("c", "g", 8, 100, {"range": strategy(400), "sticky": strategy(40)})
    >>> found = recommend(group)
    >>> found.strategy, found.rule
    ('sticky', 'sticky')
    >>> print(found.reason)
    moves 40 partitions in 20 rebalances where range moves 400 (90% less), and is as even
    """
    sound = {name: each for name, each in figures.strategies.items() if each.error is None and each.rebalances}
    choices = {name: each for name, each in sound.items() if name != OBSERVED}
    if not choices:
        errors = sorted({each.error for each in figures.strategies.values() if each.error is not None})
        return Recommendation(None, "unknown", errors[0] if errors else "it was never replayed")
    if figures.members <= 1:
        return Recommendation(KEEP, "alone", "it never had a second member: any strategy gives the one everything")
    plain = {name: each for name, each in choices.items() if "join" not in _base(name)}
    present = today(figures)
    if figures.joined:
        found = _joined(choices, present)
        if found is not None:
            return found
    if plain:
        return _by_lag(plain, limits) or _by_moves(plain, sound, present, limits)
    return Recommendation(KEEP, "keep", "only strategies for joins were replayed")


def _joined(choices: dict[str, StrategyFigures], present: str | None) -> Recommendation | None:
    joins = sorted(
        (name for name in choices if "join" in _base(name)), key=lambda name: (choices[name].moved, _rank(name))
    )
    if not joins:
        return None
    own = choices[joins[0]]
    others = sorted((name for name in choices if name not in joins and name != "lag"), key=_rank)
    reason = f"it joins its topics: equal partition numbers stay together, {_count(own.moved, 'partition')} moved"
    broken = [
        f"{name} {choices[name].copartition_violations:,}" for name in others if choices[name].copartition_violations
    ]
    if broken:
        reason += f"; numbers torn apart by others: {', '.join(broken)}"
    return Recommendation(joins[0], "joined", reason)


def _by_lag(choices: dict[str, StrategyFigures], limits: Limits) -> Recommendation | None:
    lags = sorted(
        (name for name in choices if _base(name) == "lag"), key=lambda name: (choices[name].lag_skew, _rank(name))
    )
    others = [name for name in choices if _base(name) != "lag"]
    if not lags or not others:
        return None
    # Beside the strategy that would be taken for its few moves.
    rival = min(others, key=lambda name: (choices[name].balance_score, choices[name].moved, _rank(name)))
    lag, other = choices[lags[0]], choices[rival]
    if other.max_lag <= limits.lag or other.lag_skew <= limits.lag_skew:
        return None
    if lag.lag_skew - 1 > (other.lag_skew - 1) * 0.75:
        return None
    return Recommendation(
        lags[0],
        "lag",
        f"the heaviest member carries {lag.lag_skew:.1f} times the mean lag instead of {other.lag_skew:.1f} times with "
        f"{rival} (up to {other.max_lag:,} records); it moves {lag.moved:,} partitions instead of {other.moved:,}",
    )


def _by_moves(
    choices: dict[str, StrategyFigures], sound: dict[str, StrategyFigures], present: str | None, limits: Limits
) -> Recommendation:
    least = min(each.balance_score for each in choices.values())
    even = [name for name, each in choices.items() if each.balance_score <= least * (1 + limits.gain / 2)]
    best = min(even, key=lambda name: (_base(name) == "lag", choices[name].moved, _rank(name)))
    own = choices[best]
    if present is None or present == best:
        others = sorted((name for name in choices if name != best), key=lambda name: (choices[name].moved, _rank(name)))
        beside = f", {others[-1]} {choices[others[-1]].moved:,}" if others else ""
        moves = f"{_count(own.moved, 'partition')} in {_count(own.rebalances, 'rebalance')}"
        reason = f"as even as any, and moves {moves}{beside}"
        return Recommendation(best if present is None else KEEP, "sticky" if present is None else "keep", reason)
    now = sound[present]
    name = "it" if present == OBSERVED else present
    fewer = now.moved - own.moved
    evener = now.balance_score - own.balance_score
    if fewer > limits.gain * now.moved or evener > limits.gain * now.balance_score:
        parts = []
        if now.moved or own.moved:
            change = _change(now.moved, own.moved)
            parts.append(
                f"moves {_count(own.moved, 'partition')} in {_count(own.rebalances, 'rebalance')} where {name} "
                f"{'moved' if present == OBSERVED else 'moves'} {now.moved:,}{change}"
            )
        if evener > limits.gain * now.balance_score:
            parts.append(
                f"is more even: fullest and emptiest member differ by {own.spread:.1f} partitions instead of "
                f"{now.spread:.1f}, in the mean"
            )
        else:
            parts.append("is as even")
        return Recommendation(best, "sticky", ", and ".join(parts))
    what = "what it runs" if present == OBSERVED else present
    return Recommendation(
        KEEP,
        "keep",
        f"{what} moves {_count(now.moved, 'partition')}, {best} {own.moved:,}: no gain that is worth a change",
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
