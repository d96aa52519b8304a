"""The page of a fleet as text: its policy, its data, and hostile names."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any

import pytest

from kafka_assignors import MissingDependencyError
from kafka_assignors.cli.fleet_page import page_of
from kafka_assignors.cluster import Look, Snapshot
from kafka_assignors.planner.fleet import fleet
from kafka_assignors.report import fleet as report
from support.fleets import cluster, troubled
from support.snapshots import classic, group

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x1b[2J"


def page(taken: Snapshot, earlier: Snapshot | None = None) -> str:
    look = Look(taken)
    return report.fleet_page(page_of(fleet(look, earlier), look, "latest"))


def maps(text: str) -> list[Any]:
    found = re.search(r'<script type="application/json" id="maps">(.*?)</script>', text, re.DOTALL)
    assert found
    loaded: list[Any] = json.loads(found[1])
    return loaded


def test_it_has_a_row_and_a_map_for_each_group() -> None:
    text = page(troubled(later=True), troubled())
    rows = re.findall(
        r'<tr class="group" id="g\d+" data-at="\d+" data-grade="(\w+)"><th scope="row" data-value="([^"]*)"', text
    )
    assert [name for _, name in rows][:4] == ["dead", "stuck", "unread", "behind"]
    assert {name: grade for grade, name in rows}["fine"] == "good"
    drawn = dict(zip((name for _, name in rows), maps(text), strict=True))
    assert drawn["unread"] == {
        "members": ["u"],
        "more": 0,
        "topics": [{"name": "unread", "partitions": 3, "owners": [0, 0, -1], "lags": [0, 0, 0], "counts": []}],
    }
    assert "warning: every-partition-read: no member owns unread 2" in html.unescape(text)


def test_its_policy_allows_its_own_script_only() -> None:
    text = page(troubled())
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in text or f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)""", text) == []


def test_names_of_strangers_are_texts() -> None:
    members = [classic(f"m{EVIL}{row}", [f"t{EVIL}"], {f"t{EVIL}": [row]}, rack=EVIL) for row in range(2)]
    taken = cluster({f"t{EVIL}": [10, 10]}, {f"g{EVIL}": group(members, committed={f"t{EVIL}": [1, 2]})})
    text = page(taken)
    assert len(re.findall(r"<script", text)) == 2
    assert "<img" not in text
    assert "onerror=alert" not in re.sub(r"onerror=alert\(2\)&gt;|onerror=alert\(2\)\\u003e", "", text)
    assert [character for character in text if not character.isprintable() and character != "\n"] == []
    ((drawn),) = maps(text)
    assert drawn is not None
    assert len(drawn["members"]) == 2


def test_a_large_group_has_numbers_and_the_page_stays_small() -> None:
    topics = {f"t{number}": [0] * 300 for number in range(120)}
    members = [
        classic(f"m{row}", sorted(topics), {name: list(range(row, 300, 4)) for name in topics}) for row in range(4)
    ]
    large = cluster(topics, {"large": group(members)})
    (drawn,) = maps(page(large))
    assert drawn is not None
    assert drawn["more"] == 20
    assert drawn["topics"][0] == {"name": "t0", "partitions": 300, "owners": [], "lags": [], "counts": [75] * 4}


@pytest.mark.needs("time")
def test_maps_beyond_a_few_megabytes_are_left_out() -> None:
    topics = {f"t{number}": [0] * 60_000 for number in range(4)}
    groups = {f"g{number}": group([classic("m", [f"t{number}"], {f"t{number}": [0]})]) for number in range(4)}
    found = maps(page(cluster(topics, groups)))
    assert [each is None for each in found] == [False, False, False, True]


def test_without_jinja2_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"--html needs jinja2: pip install kafka-assignors\[plot\]"):
        page(troubled())


def test_an_empty_cluster_has_a_page() -> None:
    assert "0 groups as of" in page(Snapshot("c", 0))
