"""The documentation site in a browser, at the width of a phone and of a desktop screen."""

from __future__ import annotations

import os
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from support.browser import Browser, browser

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["browser"]

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "target" / "site"
# The start page; text with code; wide tables; the reference of a class with long signatures; pictures.
PAGES = ("", "quickstart/", "clients/", "releases/", "reference/assignors/", "figures/race/results/", "how-it-works/")
PHONE, DESK = 390, 1280
WITHOUT_PIXELS = "[...document.images].filter(image => image.naturalWidth === 0).map(image => image.src)"
# Elements that end beyond the right edge, inside nothing that scrolls: a reader cannot see their ends.
CUT_OFF = """[...document.querySelectorAll("article *")].filter(item => {
  const box = item.getBoundingClientRect();
  if (box.width === 0 || box.right <= document.documentElement.clientWidth + 0.5) return false;
  for (let each = item; each; each = each.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(each).overflowX)) return false;
  return true;
}).map(item => item.outerHTML.slice(0, 80))"""
# A description of several lines is one row of its table.
ROWS_OF_RETURNS = """[...document.querySelectorAll("article p")].filter(item => item.textContent.trim() === "Returns:")
  .map(item => item.nextElementSibling.querySelectorAll("tbody tr").length)"""
SEARCH = """new Promise((found, failed) => {
  const field = document.querySelector("[data-md-component=search-query]");
  field.focus();
  field.value = "ownerless";
  field.dispatchEvent(new Event("input", {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
  const began = Date.now();
  const look = () => {
    const links = [...document.querySelectorAll(".md-search-result__link")].map(link => link.pathname);
    if (links.length) found(links);
    else if (Date.now() - began > 30000) failed("the search found nothing");
    else setTimeout(look, 50);
  };
  look();
})"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the site, built strict and served."""
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    built = subprocess.run(["make", "site"], cwd=ROOT, env=own, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


# One process builds the site, once. Two builds at the same time fail, since both create its environment.
pytestmark = [pytest.mark.needs("index"), pytest.mark.timeout(400), pytest.mark.xdist_group("site")]


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_pages_can_be_looked_at(browser: Browser, site: str, width: int) -> None:
    for page in PAGES:
        browser.open(site + page, width=width)
        assert browser.complaints == [], (page, browser.requests)
        hosts = {urlsplit(address).hostname for address in browser.requests if not address.startswith("data:")}
        assert hosts == {"127.0.0.1"}, page
        assert browser.run(WITHOUT_PIXELS) == [], page
        assert browser.run(CUT_OFF) == [], page
        assert browser.run("document.documentElement.scrollWidth") <= width, page
        if folder := os.environ.get("SITE_SCREENSHOTS"):
            browser.screenshot(Path(folder) / f"site-{page.strip('/').replace('/', '-') or 'start'}-{width}.png")


def test_the_start_page_shows_a_rebalance_before_and_after(browser: Browser, site: str) -> None:
    browser.open(site, width=DESK)
    pictures = browser.run("[...document.images].map(image => image.getAttribute('src'))")
    assert {"figures/rebalance/range.svg", "figures/rebalance/sticky.svg"} <= set(pictures)


def test_what_a_function_returns_is_one_row(browser: Browser, site: str) -> None:
    browser.open(f"{site}reference/assignors/", width=DESK)
    assert set(browser.run(ROWS_OF_RETURNS)) == {1}


def test_the_search_finds_a_page(browser: Browser, site: str) -> None:
    browser.open(site, width=DESK)
    found = browser.run(SEARCH)
    assert any(path.startswith("/planner/") for path in found), found
