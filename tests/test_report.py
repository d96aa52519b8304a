"""The report as page and JSON, without a browser: the figures are complete, and names cannot inject anything."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import xml.etree.ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kafka_assignors.errors import OptionError
from kafka_assignors.printable import escaped
from kafka_assignors.report.canvas import compact, drawn_text
from kafka_assignors.report.model import Quantiles, Report
from kafka_assignors.report.names import short_names, shortened
from kafka_assignors.report.page import page, write
from support.reports import HOSTILE, sample

pytestmark = [pytest.mark.xdist_group("report"), pytest.mark.timeout(300)]


class Parsed(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def pictures(self) -> list[str]:
        found = [attributes["src"] or "" for tag, attributes in self.tags if tag == "img"]
        assert all(each.startswith("data:image/svg+xml;base64,") for each in found)
        return [base64.b64decode(each.split(",", 1)[1]).decode() for each in found]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The page and the JSON, in a folder that did not exist."""
    html, values = write(sample(), tmp_path_factory.mktemp("report") / "new" / "folder")
    return Path(html), Path(values)


@pytest.fixture(scope="module")
def text(files: tuple[Path, Path]) -> str:
    return files[0].read_text("utf-8")


@pytest.fixture(scope="module")
def parsed(text: str) -> Parsed:
    return Parsed(text)


def test_names_are_shown_and_do_nothing(parsed: Parsed) -> None:
    words = (
        "html head meta link title style body header h1 p nav a main section div strong h2 figure img figcaption table "
        "caption thead tbody tr th td br bdi b h3 details summary ul li footer"
    )
    allowed = set(words.split())
    assert {tag for tag, _ in parsed.tags} <= allowed
    assert not [name for _, attributes in parsed.tags for name in attributes if name.startswith("on")]
    for name in HOSTILE:
        assert any(escaped(name) in text for text in parsed.texts), name
    unseen = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200b\u202a-\u202e\u2066-\u2069]")
    invisible = [text for text in parsed.texts if unseen.search(text)]
    assert invisible == []
    # The page loads nothing from other addresses.
    for tag, attributes in parsed.tags:
        for name in ("src", "href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")) or (tag, value) == ("a", "report.json")


def test_names_are_never_templates(text: str) -> None:
    assert "{{ 7 * 7 }}{% raw %}" in text
    assert "49{% raw" not in text


def test_pictures_are_sound_and_follow_the_page(parsed: Parsed) -> None:
    pictures = parsed.pictures()
    assert len(pictures) == 4 + 3 * 2
    for svg in pictures:
        root = xml.etree.ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "prefers-color-scheme:dark" in svg
        # No text that needs a font, no scripts, and nothing from other addresses.
        names = {element.tag.split("}")[-1] for element in root.iter()}
        assert not names & {"text", "script", "foreignObject", "a"}
        for element in root.iter():
            for name, value in element.attrib.items():
                assert not name.endswith("href") or value.startswith(("#", "data:image/png;base64,"))
    described = [attributes for tag, attributes in parsed.tags if tag == "img"]
    assert all(each["alt"] and int(each["width"] or 0) > 300 and int(each["height"] or 0) > 100 for each in described)


def test_ids_and_links_fit(parsed: Parsed) -> None:
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [(attributes["href"] or "") for tag, attributes in parsed.tags if tag == "a"]
    assert {target[1:] for target in targets if target.startswith("#")} <= set(ids)


@pytest.mark.needs("time")
def test_the_same_report_is_the_same_page() -> None:
    assert page(sample(HOSTILE[:1])) == page(sample(HOSTILE[:1]))


def test_the_json_has_all_figures(files: tuple[Path, Path]) -> None:
    assert [each.name for each in files] == ["report.html", "report.json"]
    values = json.loads(files[1].read_text("utf-8"))
    report = sample()
    assert values["format"] == 2
    assert set(values) == {"format", *(field.name for field in dataclasses.fields(Report))}
    assert [each["moved"] for each in values["strategies"]] == [each.moved for each in report.strategies]
    assert values["strategies"][0]["moved_share"] == pytest.approx(123_456 / 4_000_000)
    assert [each["figures"]["group_id"] for each in values["worst"]] == list(HOSTILE)
    assert values["worst"][0]["ownership"][0]["owners"] == report.worst[0].ownership[0].owners
    assert values["recommendations"] == dict(report.recommendations)
    # Partitions that no member can get are unassigned under every strategy.
    assert values["strategies"][5]["unassigned_share"] == report.strategies[5].unassigned_share > 0
    of_group = values["worst"][0]["figures"]["strategies"]
    assert of_group["range"]["unassigned_share"] == 0.25
    assert {"assigned", "unassigned", "unassigned_share"} <= set(of_group["sticky"])


def test_figures_that_are_no_numbers_are_null_in_json() -> None:
    strange = Quantiles(float("nan"), float("inf"), 1.0)
    report = sample()
    totals = [dataclasses.replace(report.strategies[0], spread=strange)]
    values = dataclasses.replace(report, strategies=totals).to_json()
    assert values["strategies"][0]["spread"] == {"p50": None, "p95": None, "max": 1.0}
    json.dumps(values, allow_nan=False)


@pytest.mark.parametrize("folder", ["hdfs://host/x", "file:///x", Path("file:///x"), Path("s3a://bucket/x")], ids=str)
def test_a_folder_of_another_file_system_is_refused(folder: str | Path) -> None:
    with pytest.raises(OptionError, match="give a folder of this machine, without a scheme"):
        write(sample(), folder)


def test_a_report_of_nothing() -> None:
    nothing = Report("Nothing", 0, 0, 0, None, None, [], [], 60_000, 0, 0, {}, [])
    parsed = Parsed(page(nothing))
    assert parsed.pictures() == []
    assert any("There is no rebalance to show" in text for text in parsed.texts)
    json.dumps(nothing.to_json(), allow_nan=False)


@pytest.mark.parametrize("name", HOSTILE)
def test_drawn_names_need_no_other_font(name: str) -> None:
    drawn = drawn_text(name)
    assert drawn.isprintable()
    assert drawn.isascii() or "групп" in drawn


def test_short_names_differ() -> None:
    names = [*HOSTILE, *(f"{'y' * 60}{number}{'z' * 60}" for number in range(40))]
    short = short_names(names, 16)
    assert len(set(short.values())) == len(names)
    assert shortened("abc", 1) == "a"
    assert [compact(-1_500), compact(999_999), compact(3e15)] == ["-1.5k", "1M", "3,000T"]
