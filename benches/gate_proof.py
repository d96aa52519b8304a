"""`make gate-proof`: builds a core that is slower by a third, and shows that each case of the gate then fails."""

import sys

from gate import Bounds
from instructions import CASES, build, count
from rich.console import Console
from rich.table import Table


def main() -> int:
    """Returns 0 if the gate accepts the normal build and refuses the slowed one in every case."""
    bounds, table = Bounds.committed(), Table(title="Instructions of a rebalance")
    for column in ("case", "committed", "as it is", "slower by a third"):
        table.add_column(column, justify="left" if column == "case" else "right")
    sound, slowed = build(), build(slowed=True)
    proven = True
    for case in CASES:
        rows = [bounds.within("instructions", case.name, count(each, case).instructions) for each in (sound, slowed)]
        proven &= rows[0].complaint is None and rows[1].complaint is not None
        shown = [f"{row.ours:,.0f} ({row.ratio:.2f}, {'fails' if row.complaint else 'passes'})" for row in rows]
        table.add_row(case.name, f"{rows[0].other:,.0f}", *shown)
    Console(width=150).print(table)
    print("The gate notices." if proven else "The gate does not tell the two builds apart.")
    return 0 if proven else 1


if __name__ == "__main__":
    sys.exit(main())
