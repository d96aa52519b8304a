"""The committed bounds of the benchmarks, and the check that a measured value is within its bound."""

import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TOLERANCE", "Bounds", "Row"]

TOLERANCE = 0.1
"""The largest relative difference of a count from the committed one, above and below. A count in this window that grows
by a third is above it: 0.9 x 4/3 > 1.1. A smaller count must be committed, or a later regression could stay in it."""


@dataclass(frozen=True)
class Row:
    """One comparison: two times in seconds (or sizes in bytes, or counts), their ratio, and its bound."""

    against: str
    name: str
    ours: float
    other: float
    ratio: float
    bound: str
    note: str
    complaint: str | None
    """An error message, if the bound does not hold."""


class Bounds:
    """The committed bounds, by kind and case."""

    def __init__(self, bounds: Mapping[str, Mapping[str, float]]) -> None:
        self._bounds = bounds

    @classmethod
    def committed(cls) -> "Bounds":
        """The bounds of bounds.toml."""
        return cls(tomllib.loads((Path(__file__).parent / "bounds.toml").read_text()))

    def cases(self, kind: str) -> list[str]:
        """The cases that have a bound of this kind."""
        return list(self._bounds.get(kind, {}))

    def kinds(self) -> list[str]:
        """All kinds of bounds."""
        return list(self._bounds)

    def check(self, kind: str, cases: Collection[str]) -> None:
        """Fails for bounds without a benchmark. (A benchmark without a bound fails when it looks its bound up.)

        Raises:
            LookupError: bounds.toml names a case that is not measured.
        """
        unused = set(self.cases(kind)) - set(cases)
        if unused:
            raise LookupError(f"bounds.toml names cases of {kind} that are not measured: {sorted(unused)}")

    def _of(self, kind: str, name: str) -> float:
        try:
            return self._bounds[kind][name]
        except KeyError:
            raise LookupError(f'no bound for "{name}" in [{kind}] of bounds.toml: a benchmark needs one') from None

    def at_most(self, kind: str, name: str, ours: float, other: float, note: str = "") -> Row:
        """Compares ours divided by the other with an upper bound."""
        bound, ratio = self._of(kind, name), ours / other
        complaint = f"{name}: {_figure(ratio)} times {kind}; at most {bound:g} is allowed"
        return Row(kind, name, ours, other, ratio, f"<= {bound:g}", note, None if ratio <= bound else complaint)

    def at_least(self, kind: str, name: str, ours: float, other: float, note: str = "") -> Row:
        """Compares the other divided by ours with a lower bound."""
        bound, ratio = self._of(kind, name), other / ours
        complaint = f"{name}: {kind} takes {_figure(ratio)} times ours, not {bound:g}"
        return Row(kind, name, ours, other, ratio, f">= {bound:g}", note, None if ratio >= bound else complaint)

    def within(self, kind: str, name: str, count: float, note: str = "") -> Row:
        """Compares a count with the committed one."""
        bound = self._of(kind, name)
        # A committed count of zero, as the decoder's of allocations, allows none.
        ratio = count / bound if bound else math.inf if count else 1.0
        problem = None
        if ratio > 1 + TOLERANCE:
            problem = f"{name}: {count:,.0f} {kind}, {ratio:.2f} times the {bound:,.0f} of bounds.toml: find out why"
        elif ratio < 1 - TOLERANCE:
            problem = f"{name}: only {count:,.0f} {kind}, {ratio:.2f} times those of bounds.toml: commit the new figure"
        return Row(kind, name, count, bound, ratio, f"1 ± {TOLERANCE:g}", note, problem)


def _figure(ratio: float) -> str:
    """The ratio with four digits or more: with fewer, one just beyond its bound would look like the bound."""
    return f"{ratio:.4g}" if ratio < 1_000 else f"{ratio:,.0f}"
