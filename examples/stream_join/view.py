"""The example on a terminal: the groups side by side, live; without a terminal, the same as plain lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stream_join.books import GONE

if TYPE_CHECKING:
    from types import TracebackType

    from stream_join.books import Account, Row

GAINED, LOST, KEPT = "bold green", "red strike", "white"


class View:
    """Shows the accounts as they change."""

    def __init__(self, accounts: list[Account]) -> None:
        self.console = Console(highlight=False)
        self._accounts = accounts
        self._live = Live(console=self.console, get_renderable=self._tables, refresh_per_second=8, transient=True)

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
        """A line that stays, above the tables."""
        self.console.print(Text(line, style=style), soft_wrap=not self.console.is_terminal)

    def settled(self, account: Account, came: int, rebuilt: int, records: int) -> None:
        """The line of an event in one group, once all numbers have an owner again."""
        shares = "  ".join(f"{row.name} {_numbers(row)}" for row in account.alive)
        self.say(
            f"  {account.strategy}: {came} partitions came, {rebuilt} rebuilt from {records} records   {shares}", "cyan"
        )

    def summary(self, results: dict[str, int], wrong: dict[str, int]) -> None:
        """The table at the end."""
        table = Table(title="the same events with each assignor: topic-partitions, records", title_justify="left")
        table.add_column("assignor", no_wrap=True)
        for heading in ("came", "rebuilt", "re-read", "results", "wrong"):
            table.add_column(heading, justify="right")
        for account in self._accounts:
            name = account.strategy
            table.add_row(name, *map(str, (*account.figures, results[name], wrong[name])))
        self.console.print(table)

    def _tables(self) -> Columns:
        return Columns([self._table(account) for account in self._accounts], padding=(0, 3))

    @staticmethod
    def _table(account: Account) -> Table:
        table = Table(
            title=account.strategy,
            caption=Text.assemble(
                ("kept", KEPT),
                "  ",
                ("came", GAINED),
                "  ",
                ("went", LOST),
                f"\n{account.rebuilt} partitions rebuilt\n{account.records} records read again",
            ),
            title_justify="left",
            caption_justify="left",
        )
        for heading in ("member", "status", "numbers"):
            table.add_column(heading)
        for row in account.rows.values():
            gone = row.status in GONE
            table.add_row(Text(row.name, "bold"), Text(row.status, "red" if gone else ""), _cell(row))
        return table


def _cell(row: Row) -> Text:
    styles = dict.fromkeys(row.held, KEPT)
    styles |= dict.fromkeys(row.gained, GAINED)
    styles |= {number: LOST for number in row.lost if number not in styles}
    return Text(" ").join(Text(str(number), style=styles[number]) for number in sorted(styles))


def _numbers(row: Row) -> str:
    return ",".join(map(str, row.held))
