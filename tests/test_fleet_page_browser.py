"""The page of a fleet in a real browser: it fits, sorts, draws maps, and runs nothing but its own script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_assignors.cli.fleet_page import page_of
from kafka_assignors.cluster import Look, Snapshot
from kafka_assignors.planner.fleet import fleet
from kafka_assignors.report.fleet import fleet_page
from support.browser import Browser, browser
from support.fleets import cluster, troubled
from support.snapshots import classic, group

__all__ = ["browser"]

pytestmark = [pytest.mark.xdist_group("report"), pytest.mark.timeout(300)]

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
_TOO_WIDE = """[...document.querySelectorAll('body *')].filter(each => {
  for (let at = each; at; at = at.parentElement) if (at.classList.contains('wide') && at !== each) return false;
  const box = each.getBoundingClientRect();
  return box.width > 0 && box.right > document.documentElement.clientWidth + 0.5;
}).map(each => each.tagName + ' ' + each.className)"""
_NAMES = "[...document.querySelectorAll('tr.group')].filter(row => !row.hidden).map(row => row.cells[0].dataset.value)"
_SORT = "document.querySelectorAll('thead button')[%d].click()"
_CLICK = "document.querySelector('tr.group th[data-value=\"%s\"] button').click()"
_MARKS = "[...document.querySelectorAll('tr.more:not([hidden]) .rows i')].map(each => each.title)"


def written(path: Path, taken: Snapshot, earlier: Snapshot | None = None) -> str:
    look = Look(taken)
    path.write_text(fleet_page(page_of(fleet(look, earlier), look, "latest")), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("fleet") / "fleet.html", troubled(later=True), troubled())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [420, 1280, 1900])
def test_it_can_be_looked_at(browser: Browser, address: str, width: int, dark: bool) -> None:
    browser.open(address, width=width, dark=dark)
    for name in ("behind", "unread", "costly"):
        browser.run(_CLICK % name)
    assert browser.complaints == []
    assert [each for each in browser.requests if not each.startswith("data:")] == [address]
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(_TOO_WIDE) == []
    # Columns and maps that are wider than the page scroll in their own boxes; at 1,900 pixels nothing has to.
    wide = browser.run("document.querySelector('.wide').scrollWidth")
    assert wide <= width or width < 1900
    folder = os.environ.get("REPORT_SCREENSHOTS")
    if folder:
        browser.screenshot(Path(folder) / f"fleet-{width}-{'dark' if dark else 'light'}.png")


def test_a_click_on_a_heading_sorts(browser: Browser, address: str) -> None:
    browser.open(address)
    assert browser.run(_NAMES)[:4] == ["dead", "stuck", "unread", "behind"]
    headings = browser.run("[...document.querySelectorAll('thead button')].map(each => each.textContent)")
    browser.run(_SORT % headings.index("lag"))
    assert browser.run(_NAMES)[:3] == ["behind", "stuck", "dead"]
    browser.run(_SORT % headings.index("lag"))
    assert browser.run(_NAMES)[-3:] == ["dead", "stuck", "behind"]
    browser.run(_SORT % headings.index("group"))
    names = browser.run(_NAMES)
    assert names == sorted(names)
    # Groups whose figure is not known are last in both orders.
    for _ in range(2):
        browser.run(_SORT % headings.index("waits"))
        assert set(browser.run(_NAMES)[-2:]) == {"dead", "moving"}


def test_a_click_on_a_group_draws_its_map(browser: Browser, address: str) -> None:
    browser.open(address)
    assert browser.run(_MARKS) == []
    browser.run(_CLICK % "unread")
    assert browser.run(_MARKS) == ["unread-0: u, lag 0", "unread-1: u, lag 0", "unread-2: nobody, lag 0"]
    assert "no member owns unread 2" in browser.run("document.querySelector('tr.more:not([hidden])').textContent")
    browser.run(_CLICK % "unread")
    assert browser.run(_MARKS) == []
    # The row of a map stays below its group when the table is sorted.
    browser.run(_CLICK % "behind")
    browser.run(_SORT % 0)
    above = "document.querySelector('tr.more:not([hidden])').previousElementSibling.cells[0].dataset.value"
    assert browser.run(above) == "behind"


def test_a_search_hides_the_other_groups(browser: Browser, address: str) -> None:
    browser.open(address)
    find = "(find => { find.value = %r; find.dispatchEvent(new Event('input')); })(document.getElementById('find'))"
    browser.run(find % "FIN")
    assert browser.run(_NAMES) == ["fine"]
    assert browser.run("document.getElementById('found').textContent") == "1 of 10 groups"
    browser.run(find % "")
    assert len(browser.run(_NAMES)) == 10


def test_names_of_strangers_run_nothing(browser: Browser, tmp_path: Path) -> None:
    topic = f"t{EVIL}"
    members = [classic(f"m{EVIL}{row}", [topic], {topic: [row]}) for row in range(2)]
    taken = cluster({topic: [10, 10, 10]}, {f"g{EVIL}": group(members, committed={topic: [1, 2, 3]})})
    browser.open(written(tmp_path / "evil.html", taken))
    browser.run("document.querySelector('tr.group button').click()")
    assert browser.complaints == []
    assert browser.run("document.title").startswith("cluster test: 1 group")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.scripts.length") == 2
    assert browser.run("document.querySelector('tr.group button').textContent") == f"g{EVIL}"
    titles = browser.run(_MARKS)
    assert titles[2] == f"t{EVIL}-2: nobody, lag 7"
