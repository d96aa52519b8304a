"""Small SVG: fewer bytes, the same picture; and the largest size of a page."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree

import pytest

from kafka_assignors.report import group_charts
from kafka_assignors.report.canvas import draw
from kafka_assignors.report.model import Ownership
from kafka_assignors.report.svg import small

pytestmark = [pytest.mark.xdist_group("report"), pytest.mark.timeout(300)]

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
SMALL = '<svg xmlns="http://www.w3.org/2000/svg">'


def test_what_is_alike_is_said_once() -> None:
    def word(x: float, y: float) -> str:
        letters = '<use xlink:href="#A"/><use xlink:href="#B" transform="translate(61.2793 0)"/>'
        look = f'style="fill: #fff" transform="translate({x} {y}) scale(0.1 -0.1)"'
        return f'<g id="t"><!-- AB --><g {look}>{letters}</g></g>'

    glyphs = (
        '<defs><path id="A" d="M 10 20 \nL 10 40.123456 \nL 30 40.123456 \nz\n"/><path id="B" d="M 1 2 L 3 4"/></defs>'
    )
    found = small(f"{HEAD}<metadata>no look</metadata>{glyphs}{word(1.23456, 2)}{word(7, 8.0)}</svg>")
    assert found == (
        f'{SMALL}<defs><path id="i0" d="M10 20V40.12H30z"/><path id="i1" d="M1 2L3 4"/>'
        '<g style="fill:#fff" transform="scale(0.1 -0.1)" id="i2"><use href="#i0"/><use href="#i1" x="61"/></g></defs>'
        '<use href="#i2" x="1.2" y="2"/><use href="#i2" x="7" y="8"/></svg>'
    )


def test_clips_and_styles_stay() -> None:
    found = small(
        f'{HEAD}<g clip-path="url(#clip)"><use xlink:href="#dot" x="1" y="2" style="fill: red"/>'
        '<use xlink:href="#dot" x="3.04" y="4" style="fill: red"/></g>'
        '<defs><path id="dot" d="M 0 0 L 0 0"/><clipPath id="clip"><rect width="3.14159" height="4"/></clipPath></defs>'
        "</svg>"
    )
    assert found == (
        f'{SMALL}<defs><path id="i1" d="M0 0h0"/><clipPath id="i0"><rect width="3.14" height="4"/></clipPath></defs>'
        '<g clip-path="url(#i0)" style="fill:red"><use x="1" y="2" href="#i1"/><use x="3" y="4" href="#i1"/></g></svg>'
    )


@pytest.mark.needs("time")
def test_pictures_of_many_rebalances_are_bounded() -> None:
    """A group in which all partitions move all the time, with more members and partitions than a picture shows."""
    chance = random.Random(1)
    members = [f"member-{number}" for number in range(300)]
    partitions = [("topic", number) for number in range(400)]

    def timeline(strategy: str, rebalances: int) -> Ownership:
        owners = [[chance.randrange(300) for _ in partitions] for _ in range(rebalances)]
        return Ownership(strategy, list(range(rebalances)), members, partitions, owners, [400] * rebalances)

    sizes = []
    for rebalances in (30, 60):
        both = [timeline("observed", rebalances), timeline("sticky", rebalances)]
        for picture in (group_charts.owners("g", both), group_charts.loads("g", both)):
            xml.etree.ElementTree.fromstring(picture.svg)
            sizes.append(len(picture.uri))
    # Six groups with two of these each are below 2 MB.
    assert max(sizes) < 160_000, sizes


def test_it_is_a_fraction_of_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def paint(figure: object) -> None:
        axes = figure.subplots()  # type: ignore[attr-defined]
        for number in range(200):
            axes.text(number % 20, number // 20, str(number % 7), fontsize=6)
        axes.set_xlim(0, 20)
        axes.set_ylim(0, 20)

    def drawn() -> str:
        return draw(paint, width=5, height=4, alt="", caption="", salt="s").svg

    short = drawn()
    monkeypatch.setattr("kafka_assignors.report.canvas.small", lambda svg: svg)
    assert 3 * len(short) < len(drawn())
    assert not re.search(r"\d\.\d{5}", short.replace("scale(0.01562)", ""))
