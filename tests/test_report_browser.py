"""The page in a real browser: no message on the console, all pictures loaded, nothing wider than the window."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors.assignors import by_name
from kafka_assignors.autoscale import Workload, parse_policy, replay
from kafka_assignors.report.autoscale import AutoscaledGroup, AutoscalePage, PolicyTotals, autoscale_page
from kafka_assignors.report.canvas import COLOURS
from kafka_assignors.report.page import write
from kafka_assignors.report.timelines import aligned, most_moved
from support.browser import Browser, browser
from support.reports import HOSTILE, STRATEGIES, sample, with_changes

__all__ = ["browser"]

pytestmark = [pytest.mark.xdist_group("report"), pytest.mark.timeout(300)]

_PICTURES = """[...document.images].map(image => ({
  alt: image.alt, natural: [image.naturalWidth, image.naturalHeight],
  shown: [image.getBoundingClientRect().width, image.getBoundingClientRect().height]}))"""
_TOO_WIDE = """[...document.querySelectorAll('body *')].filter(each => {
  for (let at = each; at; at = at.parentElement) if (at.classList.contains('wide') && at !== each) return false;
  const box = each.getBoundingClientRect();
  return box.width > 0 && box.right > document.documentElement.clientWidth + 0.5;
}).map(each => each.tagName + ' ' + each.className)"""
_CELLS = """[...document.querySelectorAll('%s tbody tr')].map(row => [
  row.dataset.%s, Object.fromEntries([...row.querySelectorAll('[data-figure]')].map(
    cell => [cell.dataset.figure, Number(cell.textContent.replaceAll(',', ''))]))])"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """The page's address and the JSON beside it."""
    html, values = write(sample(), tmp_path_factory.mktemp("report"))
    return Path(html).as_uri(), json.loads(Path(values).read_text("utf-8"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_can_be_looked_at(browser: Browser, files: tuple[str, Any], width: int, dark: bool) -> None:
    address, _ = files
    browser.open(address, width=width, dark=dark)
    assert browser.complaints == []
    assert [each for each in browser.requests if not each.startswith("data:")] == [address]
    pictures = browser.run(_PICTURES)
    assert len(pictures) == 4 + 3 * 2
    for each in pictures:
        assert each["alt"]
        assert min(each["natural"]) > 0
        assert min(each["shown"]) > 40
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(_TOO_WIDE) == []
    folder = os.environ.get("REPORT_SCREENSHOTS")
    if folder:
        browser.screenshot(Path(folder) / f"report-{width}-{'dark' if dark else 'light'}.png")


_CUT = """[...document.querySelectorAll('.wide')].filter(each => each.offsetParent && each.querySelector('table'))
  .map(each => [each.getAttribute('aria-label'), each.scrollWidth - each.clientWidth]).filter(each => each[1] > 0)"""
# A4 on its side, less the margins of the page's style sheet.
_PAPER = round((297 - 2 * 10) * 96 / 25.4)


@pytest.mark.parametrize("loads", [False, True])
def test_tables_show_all_columns_on_a_screen_and_on_paper(browser: Browser, tmp_path: Path, loads: bool) -> None:
    """With figures of a large fleet, and with the two columns of weighted strategies."""
    report = with_changes()
    ratio: dict[str, Any] = {"load_ratio_mean": 1.0345, "load_ratio_max": 12.5} if loads else {}
    large: dict[str, Any] = {
        "groups": 100_000,
        "rebalances": 2_345_678,
        "moved": 123_456_789,
        "moved_needed": 98_765_432,
    }
    totals = [dataclasses.replace(each, **large, **ratio) for each in report.strategies]
    totals.append(dataclasses.replace(totals[-1], strategy="lag(scope=group, max_skew=none, keep=owners)"))
    # Only the first four groups: a name of 250 letters, as of a later group, is shown whole, over several lines.
    report = dataclasses.replace(report, strategies=totals, worst=report.worst[:4], changes=report.changes[:4])
    address = Path(write(report, tmp_path)[0]).as_uri()
    browser.open(address, width=1280)
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert browser.run(_CUT) == []
    browser.on_paper(_PAPER)
    assert browser.run(_CUT) == []
    assert browser.run(_TOO_WIDE) == []
    # A print has no closed section, and nothing that only a screen can use.
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.run("document.querySelectorAll('details.change').forEach(each => { each.open = false; })")
    assert browser.run("[...document.querySelectorAll('details.change')].every(each => !each.offsetParent)")
    printed = browser.pdf()
    assert printed.startswith(b"%PDF")
    folder = os.environ.get("REPORT_SCREENSHOTS")
    if folder:
        (Path(folder) / f"report-{loads}.pdf").write_bytes(printed)
    browser.open(address)


def test_a_section_is_drawn_when_it_is_opened(browser: Browser, tmp_path: Path) -> None:
    report = with_changes()
    address = Path(write(report, tmp_path)[0]).as_uri()
    browser.open(address)
    drawn = "[...document.querySelectorAll('details.change .drawn')].map(each => each.childNodes.length)"
    assert set(browser.run(drawn)) == {0}
    assert len(browser.run(drawn)) == len(HOSTILE)
    browser.run("new Promise(done => { const one = document.querySelector('details.change'); one.open = true; "
                "setTimeout(done, 100); })")  # fmt: skip
    counts = browser.run(drawn)
    assert counts[0] > 0
    assert set(counts[1:]) == {0}
    rows = "[...document.querySelectorAll('%s tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    # Further up, the page has the same table of the same group.
    assert browser.run(rows % "details.change .of-group") == browser.run(rows % "#group-1 .of-group")
    # Both timelines share one axis. A partition has one rectangle for each series of rebalances with the same owner.
    picture = browser.run("""(() => {
      const svg = document.querySelector('details.change svg'), of = kind => [...svg.querySelectorAll(kind)];
      return {
        titles: of('.title').map(each => each.textContent),
        axes: of('.middle').filter(each => each.textContent.includes(':')).length,
        runs: of('rect[class^=o]').length,
      };
    })()""")
    first = report.changes[0]
    shown = aligned(first.ownership)
    kept = most_moved(shown)
    runs = sum(1 for line in shown for place in kept for _, owner in
               itertools.groupby(step[place] for step in line.owners))  # fmt: skip
    assert picture["runs"] == runs
    assert picture["axes"] == len(range(0, 20, 3))
    assert [text.partition(":")[0] for text in picture["titles"]] == ["observed (today)", "sticky"]
    assert browser.complaints == []
    assert [each for each in browser.requests if not each.startswith("data:")] == [address]
    folder = os.environ.get("REPORT_SCREENSHOTS")
    if folder:
        browser.screenshot(Path(folder) / "report-sections.png")
    browser.open(address, width=400)
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert browser.run("document.documentElement.scrollWidth") <= 400
    assert browser.run(_TOO_WIDE) == []
    assert browser.run("document.querySelectorAll('h1').length") == 1
    assert browser.run("document.title").startswith("A fleet of <script>")


def test_a_search_finds_a_section(browser: Browser, tmp_path: Path) -> None:
    address = Path(write(with_changes(), tmp_path)[0]).as_uri()
    browser.open(address)
    browser.run("(() => { const find = document.querySelector('#find-change'); find.value = 'LONG-'; "
                "find.dispatchEvent(new Event('input')); })()")  # fmt: skip
    shown = browser.run("[...document.querySelectorAll('details.change')].filter(each => !each.hidden).length")
    assert shown == 1
    assert browser.run("document.querySelector('#found-changes').textContent") == f"1 of {len(HOSTILE)} groups"


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_about_autoscalers_can_be_looked_at(browser: Browser, width: int, tmp_path: Path) -> None:
    load = Workload.steady("billing", {"orders": 12}, rate=50.0, arrivals=190.0, lag=60_000, members=2)
    policies = [
        parse_policy(text)
        for text in ("keda(lagThreshold=2000, maxReplicaCount=12)", f"{'x' * 60}=hpa(averageValue=900, maxReplicas=6)")
    ]
    runs = [
        replay(load, policy, by_name(name), static=static)
        for policy in policies
        for name in ("range", "sticky", "cooperative-sticky")
        for static in (False, True)
    ]
    totals = [
        PolicyTotals(
            run.policy, run.strategy, run.membership, 1_234, 2, 98_765.4, 120_000, 99_000, 1e7, run.late, run.records
        )
        for run in runs
    ]
    groups = [AutoscaledGroup("c", name, 0, 3_600_000, 12, 50.0, runs, ["a note"]) for name in ("billing", HOSTILE[0])]
    path = tmp_path / "autoscale.html"
    path.write_text(autoscale_page(AutoscalePage("What autoscalers would do", 300.0, totals, groups)), "utf-8")
    browser.open(path.as_uri(), width=width)
    assert browser.complaints == []
    assert [each for each in browser.requests if not each.startswith("data:")] == [path.as_uri()]
    pictures = browser.run(_PICTURES)
    assert len(pictures) == len(groups) * len(policies)
    assert all(min(each["natural"]) > 0 and each["alt"] for each in pictures)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(_TOO_WIDE) == []
    rows = [row for row in browser.run(_CELLS % ("#policy-table", "policy")) if row[0]]
    assert [row[0] for row in rows] == [run.policy for run in runs]
    folder = os.environ.get("REPORT_SCREENSHOTS")
    if folder:
        browser.screenshot(Path(folder) / f"autoscale-{width}.png")


def test_pictures_turn_dark_with_the_page(browser: Browser, files: tuple[str, Any]) -> None:
    script = """(() => {
      const image = document.images[0], canvas = document.createElement('canvas');
      const [width, height] = [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
      const paint = canvas.getContext('2d');
      paint.drawImage(image, 0, 0);
      const data = paint.getImageData(0, 0, width, height).data;
      const count = (red, green, blue) => {
        let found = 0;
        for (let at = 0; at < data.length; at += 4)
          if (data[at] == red && data[at + 1] == green && data[at + 2] == blue && data[at + 3] == 255) found += 1;
        return found;
      };
      return [count(LIGHT), count(DARK), getComputedStyle(document.body).backgroundColor];
    })()"""
    for which, ink in zip(("LIGHT", "DARK"), COLOURS["ink"], strict=True):
        script = script.replace(which, ",".join(str(int(ink[at : at + 2], 16)) for at in (1, 3, 5)))
    browser.open(files[0])
    in_light = browser.run(script)
    browser.open(files[0], dark=True)
    in_dark = browser.run(script)
    # The text in a picture has the colour of the page's text.
    assert in_light[0] > 50 > in_light[1]
    assert in_dark[1] > 50 > in_dark[0]
    assert in_light[2] != in_dark[2]


def test_tables_have_the_numbers_of_the_json(browser: Browser, files: tuple[str, Any]) -> None:
    address, values = files
    browser.open(address)
    cells = browser.run(_CELLS % ("#strategy-table", "strategy"))
    names = ("groups", "rebalances", "moved", "moved_needed", "copartition_violations", "recommended", "failed")
    assert cells == [[each["strategy"], {name: each[name] for name in names}] for each in values["strategies"]]
    worst = dict(browser.run(_CELLS % ("#worst-table", "group")))
    assert len(worst) == len(HOSTILE)
    for row, each in zip(worst.values(), values["worst"], strict=True):
        assert row == {
            "members": each["figures"]["members"],
            "partitions": each["figures"]["partitions"],
            "today": each["figures"]["strategies"]["observed"]["moved"],
            "saved": each["saved"],
        }
    unread = "[...document.querySelectorAll('%s [data-share=unassigned]')].map(cell => cell.textContent)"
    assert browser.run(unread % "#worst-table") == ["25.0%"] * len(HOSTILE)
    shown = browser.run(unread % ".of-group")
    assert len(shown) == len(HOSTILE) * (len(STRATEGIES) - 1)
    assert set(shown) == {"25.0%"}
    told = browser.run(
        "Object.fromEntries([...document.querySelectorAll('#recommendation-table tbody tr')].map(row => ["
        "row.dataset.recommendation, Number(row.querySelector('td').textContent.replaceAll(',', ''))]))"
    )
    assert told == values["recommendations"]
    moved = browser.run("document.querySelector('#moved-today').textContent")
    assert int(moved.replace(",", "")) == values["moved_today"]


def test_names_stay_names(browser: Browser, files: tuple[str, Any]) -> None:
    browser.open(files[0])
    assert browser.run("document.scripts.length") == 0
    assert browser.run("document.querySelectorAll('h1').length") == 1
    assert browser.run("document.title").startswith("A fleet of <script>")
    headings = browser.run("[...document.querySelectorAll('.group h3')].map(each => each.textContent)")
    assert headings[0] == HOSTILE[0]
    assert headings[2] == HOSTILE[2]
