"""A fleet of groups as one HTML page that needs no network: a table to sort and search, and each group's map.

The only script is the page's own; the page's policy names its hash, so that a browser runs no other. Names of groups,
members and topics are data of this script and texts of the page, never markup.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kafka_assignors.errors import MissingDependencyError
from kafka_assignors.printable import LINE, NAME, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Cell", "FleetPage", "GroupMap", "GroupRow", "MapTopic", "fleet_page"]

COLOURS = {
    "ink": ("#1f2429", "#e6ebf0"),
    "muted": ("#5a636d", "#9aa4ae"),
    "grid": ("#d5dbe1", "#343c45"),
    "surface": ("#fdfdfe", "#15191e"),
    "blue": ("#0072b3", "#58b4ea"),
    "bad": ("#b3261e", "#ff8a80"),
    "poor": ("#c95a00", "#f5954a"),
    "good": ("#00805e", "#35c296"),
    "lag0": ("#cfe3d9", "#1e3a31"),
    "lag1": ("#f2d675", "#6b5d1c"),
    "lag2": ("#ee9b4d", "#a35a12"),
    "lag3": ("#d5403a", "#e2645e"),
}
"""The colours: name, colour on a light page, colour on a dark one."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the table.

    Attributes:
        text: the text that is shown.
        value: the key for sorting, a number or a text; None for an unknown value, which is last.
    """

    text: str
    value: float | str | None


@dataclass(frozen=True, slots=True)
class MapTopic:
    """A topic of a map.

    Attributes:
        name: its name.
        partitions: how many it has.
        owners: by partition number the row of the owner among the members, -1 without one; empty if only `counts` is
            given.
        lags: by partition number the lag, -1 if it is not known or there is no commit; empty if only `counts` is given.
        counts: for a topic of a large group: by row of the member how many partitions it has.
    """

    name: str
    partitions: int
    owners: Sequence[int] = ()
    lags: Sequence[int] = ()
    counts: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class GroupMap:
    """The owners of the partitions of a group.

    Attributes:
        members: their names, a row each.
        topics: in their order.
        more: how many topics are left out.
    """

    members: Sequence[str]
    topics: Sequence[MapTopic]
    more: int = 0


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group.

    Attributes:
        name: its id.
        grade: `bad`, `poor` or `good`, for the colour of its bar.
        bar: the length of its bar, from 0 to 1.
        cells: one for each heading.
        findings: sentences below its map.
        map: the owners of its partitions; None if the map is left out.
    """

    name: str
    grade: str
    bar: float
    cells: Sequence[Cell]
    findings: Sequence[str] = ()
    map: GroupMap | None = None


@dataclass(frozen=True, slots=True)
class FleetPage:
    """The page.

    Attributes:
        title: its title.
        lines: sentences above the table.
        headings: of the columns behind that of the group.
        texts: the headings of columns that are aligned left.
        rows: the groups, in their order.
        notes: sentences below the table.
    """

    title: str
    lines: Sequence[str]
    headings: Sequence[str]
    texts: Sequence[str]
    rows: Sequence[GroupRow]
    notes: Sequence[str] = ()


def fleet_page(fleet: FleetPage) -> str:
    """The text of the page. O(partitions).

    Raises:
        MissingDependencyError: jinja2 is not installed.
    """
    if find_spec("jinja2") is None:
        raise MissingDependencyError("--html needs jinja2: pip install kafka-assignors[plot]")
    import jinja2

    folder = resources.files("kafka_assignors.report") / "templates"
    sources = {name: (folder / name).read_text("utf-8") for name in ("fleet.html.j2", "fleet.css")}
    script = (folder / "fleet.js").read_text("utf-8")
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(sources),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Blanks after commas and colons would be a fifth of the data that the script reads.
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters |= {"name": lambda text: printable(text, NAME), "line": lambda text: printable(text, LINE)}
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("fleet.html.j2").render(
        fleet=fleet,
        maps=[_map(row) for row in fleet.rows],
        script=script,
        digest=digest,
        themes=[" ".join(f"--{name}: {pair[which]};" for name, pair in COLOURS.items()) for which in (0, 1)],
    )


def _map(row: GroupRow) -> dict[str, object] | None:
    """A map as JSON: `tojson` of the template escapes the characters that could end a script."""
    if row.map is None:
        return None
    return {
        "members": [printable(name) for name in row.map.members],
        "more": row.map.more,
        "topics": [
            {
                "name": printable(topic.name),
                "partitions": topic.partitions,
                "owners": list(topic.owners),
                "lags": list(topic.lags),
                "counts": list(topic.counts),
            }
            for topic in row.map.topics
        ],
    }
