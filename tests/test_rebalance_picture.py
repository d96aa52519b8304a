"""The pictures of the start page show the present plans, and their texts describe them."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafka_assignors import Assignor, RangeAssignor, StickyAssignor
from rebalance_picture import COLOURS, JOINS, MEMBERS, TOPICS, pictures, rebalance

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "figures" / "rebalance"


def test_the_committed_pictures_are_those_of_the_plans() -> None:
    """`make figures` draws them."""
    assert {path.name: path.read_text() for path in FOLDER.glob("*.svg")} == pictures()


@pytest.mark.parametrize("assignor", [RangeAssignor(), StickyAssignor()])
def test_a_picture_has_each_partition_twice_and_marks_what_moved(assignor: Assignor) -> None:
    drawn = rebalance(assignor)
    root = ElementTree.fromstring(pictures()[f"{drawn.name}.svg"])
    elements = list(root.iter())
    cells = [it for it in elements if it.tag.endswith("}rect") and it.get("fill") in COLOURS.values()]
    assert len(cells) == 2 * sum(TOPICS.values()) + len(TOPICS)
    # The legend has one frame, too.
    assert sum(it.get("class") == "moved" for it in elements) == drawn.after.moved + 1
    width = float(root.get("width", "0"))
    assert max(float(it.get("x", "0")) + float(it.get("width", "0")) for it in cells) < width
    names = [it.text for it in elements if it.tag.endswith("}text") and it.get("class") is None]
    assert names == [*MEMBERS, *MEMBERS, JOINS]


@pytest.mark.parametrize("assignor", [RangeAssignor(), StickyAssignor()])
def test_the_start_page_says_in_words_what_a_picture_shows(assignor: Assignor) -> None:
    drawn = rebalance(assignor)
    assert f"![{drawn.text()}](docs/figures/rebalance/{drawn.name}.svg)" in (ROOT / "README.md").read_text()


def test_the_sticky_plan_moves_only_what_the_new_member_gets() -> None:
    sticky, by_range = rebalance(StickyAssignor()), rebalance(RangeAssignor())
    assert {move.target for move in sticky.after.moves} == {JOINS}
    assert (sticky.after.moved, by_range.after.moved) == (sticky.loads[-1], 9)
    assert max(sticky.loads) - min(sticky.loads) == 1 < max(by_range.loads) - min(by_range.loads)
