"""The demo on a terminal: a live table, one row a member; without a terminal, the same as plain lines."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from types import TracebackType

    from demo.board import Board, Rebalance, Row
    from demo.ledger import Ledger

GAINED, LOST, KEPT = "bold green", "red strike", "white"


class View:
    """Shows a board and a ledger as they change."""

    def __init__(self, board: Board, ledger: Ledger) -> None:
        self.console = Console(highlight=False)
        self._board = board
        self._ledger = ledger
        self._live = Live(console=self.console, get_renderable=self._table, refresh_per_second=8, transient=False)

    def __enter__(self) -> View:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def say(self, line: str, style: str = "") -> None:
        """Prints a line that stays above the live table."""
        self.console.print(Text(line, style=style), soft_wrap=not self.console.is_terminal)

    def rebalanced(self, rebalance: Rebalance) -> None:
        """The line of a rebalance. Without a terminal, the partitions of each member follow."""
        if not self.console.is_terminal:
            for row in self._board.rows.values():
                if row.name in rebalance.members:
                    self.say(self._line(row))
        self.say(str(rebalance), "cyan")

    def _line(self, row: Row) -> str:
        parts = [f"  {row.name} {row.client:15}"]
        for topic in self._board.partitions:
            if topic in row.topics:
                held = _runs(row.owned.get(topic, [])) or "-"
                changes = [
                    f"{sign}{_runs(numbers)}"
                    for sign, numbers in (("+", row.gained.get(topic)), ("-", row.lost.get(topic)))
                    if numbers
                ]
                parts.append(f"{topic}[{held}]" + (f"({' '.join(changes)})" if changes else ""))
        return " ".join(parts)

    def _table(self) -> Table:
        board = self._board
        table = Table(
            title=f"group demo, generation {max(board.generation, 0)}",
            caption=Text.assemble(
                ("kept", KEPT), "  ", ("gained", GAINED), "  ", ("lost", LOST), f"   {self._progress()}"
            ),
            title_justify="left",
            caption_justify="left",
        )
        for heading in (
            "member",
            "client",
            "status",
            *(f"{topic} ({n})" for topic, n in board.partitions.items()),
            "sum",
        ):
            table.add_column(heading, justify="right" if heading == "sum" else "left")
        for row in board.rows.values():
            gone = row.status == "killed"
            table.add_row(
                Text(row.name + (" *" if row.leader else ""), style="bold"),
                row.client,
                Text(row.status, style="red" if gone else ""),
                *(self._cell(row, topic) for topic in board.partitions),
                "" if gone else str(sum(map(len, row.owned.values()))),
            )
        return table

    def _progress(self) -> str:
        ledger = self._ledger
        return f"* leader   {ledger.produced.total()} messages produced, {ledger.reads} read, {ledger.repeated} twice"

    @staticmethod
    def _cell(row: Row, topic: str) -> Text:
        if topic not in row.topics and topic not in row.lost:
            return Text("·", style="dim")
        styles = dict.fromkeys(row.owned.get(topic, ()), KEPT)
        styles |= dict.fromkeys(row.gained.get(topic, ()), GAINED)
        styles |= {number: LOST for number in row.lost.get(topic, ()) if number not in styles}
        return Text(" ").join(Text(str(number), style=styles[number]) for number in sorted(styles))


def _runs(numbers: list[int]) -> str:
    """`0-3,7` for ascending numbers: in a run of neighbours, the number minus its place in the list is constant."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
