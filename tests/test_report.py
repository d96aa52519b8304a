"""The report as page and JSON, without a browser: the figures are complete, and names cannot inject anything."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
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
from kafka_assignors.report.sections import sections
from support.reports import HOSTILE, ownership, sample, with_changes

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


def test_changes_have_no_timelines_in_json() -> None:
    report = with_changes()
    values = report.to_json()
    assert [each["figures"]["group_id"] for each in values["changes"]] == list(HOSTILE)
    assert all(each["ownership"] == [] and each["lag"] is None for each in values["changes"])
    assert values["changes"][0]["figures"]["strategies"]["sticky"]["unassigned_share"] == 0.25
    assert values["worst"][0]["ownership"] != []


def test_the_only_script_is_the_pages_own() -> None:
    text = page(with_changes())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    data, script = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert len(json.loads(data)) == len(HOSTILE)
    # A page without sections has no script.
    assert "<script" not in page(sample(("calm",)))


def test_timelines_that_do_not_fit_are_left_out() -> None:
    changes = with_changes().changes
    whole = sections(changes, lambda _: [], str)
    sizes = [len(json.dumps(each["map"], separators=(",", ":"))) for each in whole]
    assert min(sizes) > 500
    cut = sections(changes, lambda _: [], str, budget=sum(sizes[:3]) + 10)
    assert [bool(each["map"]) for each in cut] == [True] * 3 + [False] * (len(HOSTILE) - 3)
    assert {each["map"] for each in cut[3:]} == {False}
    assert sections([dataclasses.replace(changes[0], ownership=())], lambda _: [], str)[0]["map"] is None


def test_a_thousand_sections_are_less_than_five_megabytes() -> None:
    """Timelines that change everywhere, with long names: the budget bounds them."""
    members = [f"consumer-of-a-long-name-{number}" for number in range(30)]
    timelines = [ownership(each, members, [f"t{at}" for at in range(7)], 3) for each in ("observed", "sticky")]
    one = dataclasses.replace(with_changes().changes[0], ownership=timelines)
    text = page(dataclasses.replace(sample(("calm",)), changes=[one] * 1_000))
    assert text.count('<details class="change"') == 1_000
    assert len(text.encode()) < 5_000_000


def test_figures_that_are_no_numbers_are_null_in_json() -> None:
    strange = Quantiles(float("nan"), float("inf"), 1.0)
    report = sample()
    totals = [dataclasses.replace(report.strategies[0], spread=strange)]
    values = dataclasses.replace(report, strategies=totals).to_json()
    assert values["strategies"][0]["spread"] == {"p50": None, "p95": None, "max": 1.0}
    json.dumps(values, allow_nan=False)


def tables(text: str, marks: str) -> list[tuple[str, list[list[str]]]]:
    """The tables of a page whose opening tag has these marks, with the HTML of their heads, and rows of cells."""
    found = []
    for table in re.findall(rf"<table {marks}>(.*?)</table>", text, re.DOTALL):
        head, body = table.split("</thead>")
        lines = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
        cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL) for line in lines]
        found.append((head, [[re.sub("<[^>]*>", "", cell) for cell in line] for line in cells]))
    return found


def test_what_the_heaviest_member_carries_is_a_column_where_it_is_known() -> None:
    report = sample(("calm",))
    (group,) = report.worst
    plain = group.figures.strategies["sticky"]
    weighted = dataclasses.replace(plain, load_ratio_mean=1.0345, load_ratio_max=1.25)
    figures = dataclasses.replace(
        group.figures, strategies={**group.figures.strategies, "weighted(tolerance=0)": weighted}
    )
    total = dataclasses.replace(report.strategies[0], strategy="weighted", load_ratio_mean=1.5, load_ratio_max=2.0)
    with_loads = dataclasses.replace(
        report,
        strategies=[*report.strategies, total],
        worst=[dataclasses.replace(group, figures=figures, ownership=(), lag=None)],
    )
    text = page(with_loads)
    ((head, rows),) = tables(text, 'id="strategy-table" class="dense"')
    assert "What the heaviest<br>member carries / bound" in head
    # The columns of the second heading row are those of moves, spread, lag, and loads.
    assert {len(row) for row in rows} == {19}
    by_name = {row[0]: row for row in rows}
    assert by_name["weighted"][12:14] == ["1.5", "2"]
    assert by_name["range"][12:14] == ["–", "–"]
    ((head, rows),) = tables(text, 'class="of-group"')
    assert "What the heaviest member<br>carries / bound, mean" in head
    by_name = {row[0]: row for row in rows}
    assert head.count("<th ") == 12
    assert by_name["weighted(tolerance=0)"][8:10] == ["1.03", "1.25"]
    assert by_name["lag"][8:10] == ["–", "–"]
    assert {len(row) for name, row in by_name.items() if name != "sticky-join"} == {12}
    assert '<td class="text" colspan="11">failed' in text
    assert "divided by a bound" in text
    values = with_loads.to_json()
    assert values["worst"][0]["figures"]["strategies"]["weighted(tolerance=0)"]["load_ratio_max"] == 1.25
    assert [each["load_ratio_mean"] for each in values["strategies"]] == [None] * 7 + [1.5]


def test_without_weighted_strategies_no_column_has_loads(text: str) -> None:
    assert "What the heaviest member" not in re.sub(r"\s+", " ", text.replace("<br>", " "))
    ((_, rows),) = tables(text, 'id="strategy-table" class="dense"')
    assert {len(row) for row in rows} == {17}
    assert all(head.count("<th ") == 10 for head, _ in tables(text, 'class="of-group"'))
    assert '<td class="text" colspan="9">failed' in text


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
