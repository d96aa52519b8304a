"""The planner's commands as people and scripts call them: on files, with exit statuses and forms of output."""

import csv
import dataclasses
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kafka_assignors.cli.app import app
from kafka_assignors.cluster import Snapshot
from kafka_assignors.embedded import EmbeddedKafka
from support.planned_group import standing_group
from support.snapshots import by_broker, classic, orders, snapshot

COMMANDS = ("fleet", "describe", "plan", "compare", "decode", "snapshot", "rebalance-cost")


def run(*arguments: str | Path, status: int = 0, text: str | None = None) -> Result:
    result = CliRunner().invoke(app, list(map(str, arguments)), input=text)
    assert result.exit_code == status, (result.output, result.exception)
    return result


@pytest.fixture
def billing(tmp_path: Path) -> Path:
    path = tmp_path / "billing.json"
    orders().save(path)
    return path


def saved(tmp_path: Path, taken: Snapshot) -> Path:
    path = tmp_path / "other.json"
    taken.save(path)
    return path


def rows(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(result.stdout)))


# ---- help ----


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_examples_and_exit_statuses(command: str) -> None:
    text = run(command, "--help").stdout
    assert "Exit status: 0" in text
    assert f"kafka-assignors {command}" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_of_the_help_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed, except for the broker's address: an embedded Kafka has the group of the examples."""
    monkeypatch.chdir(tmp_path)
    topics = {"orders": 12, "payments": 6}
    clients = ("c1", "c3", "c4", "c5")
    with EmbeddedKafka(topics=topics) as kafka, standing_group(kafka.bootstrap_servers, "billing", topics, clients):
        run("snapshot", "--bootstrap-server", kafka.bootstrap_servers, "--group", "billing", "-o", "billing.json")
        # The docstring has the examples without the line breaks of the help's paragraphs.
        callbacks = {each.name: each.callback for each in app.registered_commands}
        examples = re.findall(r"^ *kafka-assignors (.*)$", str(callbacks[command].__doc__), re.MULTILINE)
        assert len(examples) >= 2
        for example in examples:
            words = shlex.split(example.replace("localhost:9092", kafka.bootstrap_servers))
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, (example, result.output, result.exception)


# ---- describe ----


def test_describe(billing: Path, tmp_path: Path) -> None:
    text = run("describe", "--snapshot", billing).stdout
    for part in (
        "group billing: Stable, sticky",
        "c0 ████········",
        "balance score 0 (least possible 0)",
        "lag 900",
    ):
        assert part in text
    assert "record of the group: about" in text
    assert "1,048,588 bytes are allowed" in text
    document = json.loads(run("describe", "--snapshot", billing, "--format", "json").stdout)
    assert (document["warnings"], document["spread"], len(document["members"])) == (0, [6, 6], 3)
    table = rows(run("describe", "--snapshot", billing, "--format", "csv"))
    assert len(table) == 18
    assert table[0] == {"topic": "orders", "partition": "0", "member": "c0", "lag": "50", "committed": "50", "rate": ""}
    idle = saved(tmp_path, snapshot({"x": 1}, [classic("a", ["x"], {"x": [0]}), classic("b", ["x"])]))
    text = run("describe", "--snapshot", idle, status=3).stdout
    assert "members without a partition: b" in text
    assert "warning: every-member-works: b has no partition" in text


def test_describe_shows_conflicts_and_hostile_names(tmp_path: Path) -> None:
    members = [
        classic("a\x1b[2J", ["x"], {"x": [0]}, claimed={"x": [0, 1]}, generation=4),
        classic("b", ["x"], {"x": [1]}, claimed={"x": [1]}, generation=5),
    ]
    text = run("describe", "--snapshot", saved(tmp_path, snapshot({"x": 2}, members)), status=3).stdout
    assert "\x1b" not in text
    assert "a\\x1b[2J" in text
    assert "x-1" in text
    assert "generation 5" in text


def test_describe_shows_what_has_no_commit(tmp_path: Path) -> None:
    members = [classic("a", ["x", "y"], {"x": [0, 1]}), classic("b", ["x", "y"], {"x": [2, 3], "y": [0]})]
    path = saved(tmp_path, snapshot({"x": 4, "y": 1}, members, committed={"x": [40, None, None, 100]}))
    result = run("describe", "--snapshot", path, "--no-map")
    assert re.search(r"│ a +│ +2 │ +60 │ +1 │ x 0-1 ", result.stdout)
    assert re.search(r"│ x +│ +4 │ +60 │ +2 │", result.stdout)
    assert re.search(r"│ y +│ +1 │ +- │ +1 │", result.stdout)
    assert "in every row: subscribers 2; without owner 0" in result.stdout
    assert "note: committed: 3 partitions have no commit: x 1-2; y 0; auto.offset.reset=latest passes" in result.stdout
    drawn = run("describe", "--snapshot", path).stdout
    assert "a █-··" in drawn
    assert ", - no commit" in drawn
    table = rows(run("describe", "--snapshot", path, "--format", "csv"))
    assert [(row["lag"], row["committed"]) for row in table] == [
        ("60", "40"),
        ("", ""),
        ("", ""),
        ("0", "100"),
        ("", ""),
    ]
    document = json.loads(run("describe", "--snapshot", path, "--format", "json").stdout)
    assert (document["uncommitted"], document["topics"][0]["lags"]) == (3, [60, None, None, 0])
    assert "note: committed: 3 partitions" in run("plan", "--snapshot", path, status=0).stdout


def test_describe_of_an_empty_group(tmp_path: Path) -> None:
    taken = snapshot({"x": 2}, [], committed={"x": [40, 100]})
    group = dataclasses.replace(taken.groups["billing"], state="Empty")
    path = saved(tmp_path, dataclasses.replace(taken, groups={"billing": group}))
    text = run("describe", "--snapshot", path, status=3).stdout
    assert re.search(r"│ x +│ +2 │ +0 │ +2 │ +60 │", text)
    assert "warning: somebody-reads: the group is Empty, and 60 records wait in x" in text
    assert "lag 60" in text
    document = json.loads(run("describe", "--snapshot", path, "--format", "json", status=3).stdout)
    assert (document["lag"], document["warnings"], document["topics"][0]["name"]) == (60, 1, "x")
    assert len(rows(run("describe", "--snapshot", path, "--format", "csv", status=3))) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["describe"], "taken_ms is 9223372036854775807; give a number from 0 to 253402300799999"),
        (["plan", "--join", "100000"], "--join is '100000'; give a number from 1 to 10000"),
        (["plan", "--join", "6000", "--join", "6000"], "--join adds 12,000 members together; give up to 10,000"),
        (["plan", "--partitions", "orders=50000000"], "give a number from 1 to 1000000"),
        (["plan", "--partitions", "orders=1000000"], "have 1,000,006 partitions"),
        (["compare", "--partitions", "orders=1000000"], "have 1,000,006 partitions"),
        (["rebalance-cost", "--scale", "+100000"], "--scale is +100000; give up to +1000, or --at-once"),
        (["rebalance-cost", "--scale", "+100000", "--at-once"], "--scale is +100000; give up to +10000"),
    ],
)
def test_sizes_that_no_group_has_are_one_sentence(arguments: list[str], said: str, tmp_path: Path) -> None:
    path = saved(tmp_path, orders())
    if arguments == ["describe"]:
        path.write_text(path.read_text().replace('"taken_ms": 1795000000000', f'"taken_ms": {2**63 - 1}'))
    result = run(*arguments, "--snapshot", path, status=2)
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_describe_by_topic_where_there_are_many_partitions(tmp_path: Path) -> None:
    topics = {f"t{number}": 30 for number in range(20)}
    members = [
        classic(f"m{row}", sorted(topics), {name: list(range(15 * row, 15 * row + 15)) for name in topics})
        for row in range(2)
    ]
    text = run("describe", "--snapshot", saved(tmp_path, snapshot(topics, members))).stdout
    assert "topics 1 to 20 of 20: t0 … t9" in text
    assert "m0 " + "█" * 20 in text


def test_describe_says_that_the_broker_assigns(tmp_path: Path) -> None:
    text = run("describe", "--snapshot", saved(tmp_path, by_broker())).stdout
    assert "uniform, the broker assigns (KIP-848)" in text
    assert "note: broker-assigned" in text


# ---- plan ----


def test_plan(billing: Path) -> None:
    text = run("plan", "--snapshot", billing, "--join", "1").stdout
    assert "1 member joins" in text
    assert "4 partitions move: 0 by the change itself, 4 by the strategy; the least possible is 4. 14 stay" in text
    assert "had 6 partitions, and the plan gives it " in text
    document = json.loads(run("plan", "--snapshot", billing, "--leave", "c2", "--format", "json").stdout)
    assert (document["forced"], document["moved"], document["least_moved"]) == (6, 0, 0)
    assert {move["kind"] for move in document["moves"]} == {"owner-left"}
    table = rows(run("plan", "--snapshot", billing, "--partitions", "orders=14", "--format", "csv"))
    assert [(row["topic"], row["partition"], row["source"], row["kind"]) for row in table] == [
        ("orders", "12", "", "new-partition"),
        ("orders", "13", "", "new-partition"),
    ]


def test_exit_statuses_of_plans(billing: Path, tmp_path: Path) -> None:
    run("plan", "--snapshot", billing, "--join", "1", "--max-moves", "4")
    result = run("plan", "--snapshot", billing, "--join", "1", "--max-moves", "3", "--format", "json", status=1)
    assert "4 partitions would move; --max-moves is 3" in result.stderr
    result = run("plan", "--snapshot", billing, "--subscribe", "c0=orders", "--leave", "c1,c2", status=3)
    assert "warning: every-partition-read: no member owns payments 0-5: no subscriber" in result.stdout
    run("plan", "--snapshot", billing, "--join", "1", "--strategy", "roundrobin", status=3)
    result = run("plan", "--snapshot", billing, "--partitions", "click=96", status=3)
    assert "warning: every-partition-read: nobody subscribes to click: its 96 partitions have no" in result.stdout
    found = json.loads(
        run("plan", "--snapshot", billing, "--partitions", "click=96", "--format", "json", status=3).stdout
    )
    assert (found["warnings"], found["moves"]) == (1, [])
    changed = ("--partitions", "click=96", "--subscribe", "c0=click,orders,payments")
    result = run("plan", "--snapshot", billing, *changed, status=3)
    assert "nobody subscribes" not in result.stdout
    table = rows(
        run("compare", "--snapshot", billing, "--partitions", "click=96", "--strategy", "sticky", "--format", "csv")
    )
    assert table[1]["warnings"] == "every-partition-read"


def test_long_move_lists_are_cut(tmp_path: Path) -> None:
    members = [classic("a", ["x"], {"x": list(range(120))}), classic("b", ["x"])]
    path = saved(tmp_path, snapshot({"x": 120}, members))
    assert "Moves: the first 50 of 60 (--all-moves)" in run("plan", "--snapshot", path).stdout
    assert "x-119" in run("plan", "--snapshot", path, "--all-moves").stdout


# ---- compare, rebalance-cost ----


def test_compare(billing: Path) -> None:
    text = run("compare", "--snapshot", billing, "--join", "1").stdout
    for name in ("now", "sticky", "cooperative-sticky", "sticky-join", "lag", "range", "roundrobin"):
        assert f"│ {name}" in text
    table = rows(
        run("compare", "--snapshot", billing, "--strategy", "sticky", "--strategy", "range", "--format", "csv")
    )
    assert [row["strategy"] for row in table] == ["now", "sticky", "range"]
    document = json.loads(run("compare", "--snapshot", billing, "--format", "json").stdout)
    assert document["strategies"][0]["moves"] == 0
    # The column "heaviest carries" is there only if a strategy is weighted.
    assert "heaviest carries" not in text
    both = ("compare", "--snapshot", billing, "--strategy", "weighted", "--strategy", "sticky")
    text = run(*both, "--wide").stdout
    assert "heaviest carries" in text
    now, weighted, sticky = rows(run(*both, "--format", "csv"))
    assert float(weighted["load"]) == float(weighted["most"]) >= float(weighted["load_bound"]) > 0
    assert f"{weighted['most']} (least " in text
    assert {row[name] for row in (now, sticky) for name in ("load", "load_bound")} == {""}


def test_rebalance_cost(billing: Path) -> None:
    text = run("rebalance-cost", "--snapshot", billing, "--rolling-restart").stdout
    assert "a rolling restart: 6 rebalances at least" in text
    arguments = ("rebalance-cost", "--snapshot", billing, "--strategy", "sticky")
    (row,) = rows(run(*arguments, "--scale", "+3", "--at-once", "--format", "csv"))
    assert (row["strategy"], row["rebalances"], row["moves"]) == ("sticky", "1", "9")
    (row,) = rows(run(*arguments, "--scale", "-1", "--format", "csv"))
    assert (row["moves"], row["forced"]) == ("6", "6")
    document = json.loads(run(*arguments, "--deploy", "1", "--old-first", "--format", "json").stdout)
    assert [step["text"] for step in document["strategies"][0]["steps"]] == ["c0 stops", "the new c0 joins"]


def test_figures_that_hang_on_ids_and_lags_that_rise_are_told_beside_them(billing: Path, tmp_path: Path) -> None:
    text = run("plan", "--snapshot", billing, "--join", "1", "--strategy", "range", status=3).stdout
    document = json.loads(
        run("plan", "--snapshot", billing, "--join", "1", "--strategy", "range", "--format", "json", status=3).stdout
    )
    least, most = document["moves_by_order"]
    assert f"{len(document['moves'])} partitions move ({least} to {most}, by where the new ids sort): " in text
    assert "note: known-order: the plan of range depends on the order of member ids" in text
    cost = ("rebalance-cost", "--snapshot", billing, "--rolling-restart", "--strategy", "range")
    assert "48 (45 to 54)" in run(*cost).stdout
    (row,) = rows(run(*cost, "--format", "csv"))
    assert (row["moves"], row["least_moves"], row["most_moves_in_all"]) == ("48", "45", "54")
    members = [
        classic("a", ["x", "y"], {"x": [0], "y": [1]}, assignor="lag"),
        classic("b", ["x", "y"], {"x": [1], "y": [0]}, assignor="lag"),
    ]
    taken = snapshot({"x": 2, "y": 2}, members, assignor="lag", committed={"x": [0, 90], "y": [0, 90]})
    path = saved(tmp_path, taken)
    text = run("plan", "--snapshot", path, "--strategy", "lag").stdout
    assert "lag 20 to 200 (the heaviest had 110)" in text
    assert (
        "note: heaviest-lag: the heaviest member has 200 to read, up from 110: lag(keep=owners) (heaviest 110)" in text
    )
    text = run("compare", "--snapshot", path).stdout
    assert "20 to 200 (up from 110)" in text
    said = "lag gives the heaviest member more to read than anybody has now; "
    assert f"{said}lag(scope=group, max_skew=none, keep=owners) does not" in text


# ---- decode ----


def test_decode(billing: Path) -> None:
    golden = "0000000100017400000002000000000000000200000005"
    assert "partitions: t 0, 2" in run("decode", golden).stdout
    assert "generation: 5" in run("decode", "-", text=golden).stdout
    assert rows(run("decode", golden, "--format", "csv")) == [
        {"topic": "t", "partition": "0"},
        {"topic": "t", "partition": "2"},
    ]
    assert json.loads(run("decode", golden, "--format", "json").stdout)["generation"] == 5
    assert "c1" in run("decode", "--snapshot", billing).stdout
    assert len(rows(run("decode", "--snapshot", billing, "--format", "csv"))) == 36
    assert json.loads(run("decode", "--snapshot", billing, "--format", "json").stdout)["conflicts"] == []
    run("decode", "ffff", status=2)


def test_decode_warns_of_conflicts(tmp_path: Path) -> None:
    members = [classic("a", ["x"], {"x": [0]}), classic("b", ["x"], {}, claimed={"x": [0]})]
    text = run("decode", "--snapshot", saved(tmp_path, snapshot({"x": 1}, members)), status=3).stdout
    assert "x-0 is claimed by a (4), b (4): no claim counts" in text


# ---- bad usage ----


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["describe"], "there is no broker"),
        (["describe", "--bootstrap-server", "x"], "there is no group"),
        (["describe", "--snapshot", "FILE", "--bootstrap-server", "x"], "give only one of them"),
        (["describe", "--snapshot", "none.json"], "cannot be read"),
        (["describe", "--snapshot", "FILE", "--group", "other"], "has no group 'other'; it has billing"),
        (["describe", "--snapshot", "FILE", "--reset", "none"], "--reset is 'none'"),
        (["describe", "--bootstrap-server", "x", "--group", "g", "-X", "secret"], "-X number 1 is not NAME=VALUE"),
        (["describe", "--bootstrap-server", "x", "--group", "g", "-X", "security.protocol=best"], "security.protocol"),
        (["describe", "--bootstrap-server", "x", "--group", "g", "--config", "none"], "--config 'none' cannot be read"),
        (["plan", "--snapshot", "FILE", "--join", "x"], "--join is 'x'"),
        (["plan", "--snapshot", "FILE", "--strategy", "best"], "the strategy is 'best'"),
        (["rebalance-cost", "--snapshot", "FILE"], "give exactly one of"),
        (["rebalance-cost", "--snapshot", "FILE", "--rolling-restart", "--at-once"], "--at-once goes with --scale"),
        (["snapshot", "--bootstrap-server", "x"], "give --group NAME, as often as needed, or --all"),
        (["decode", "00", "--snapshot", "FILE"], "give bytes, or a group"),
    ],
)
def test_bad_usage_is_one_sentence_and_status_2(arguments: list[str], said: str, billing: Path) -> None:
    result = run(*(str(billing) if each == "FILE" else each for each in arguments), status=2)
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_settings_come_from_a_file_too(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("# a comment\n\nbootstrap.servers=127.0.0.1:1\nsecurity.protocol = plaintext\n")
    result = run("describe", "--config", config, "--group", "g", "--timeout", "5", status=2)
    assert "127.0.0.1:1" in result.stderr
    config.write_text("bootstrap.servers=x\nsasl.password\n")
    result = run("describe", "--config", config, "--group", "g", status=2)
    assert "line 2 of" in result.stderr


def test_json_is_what_the_functions_give(billing: Path) -> None:
    document: dict[str, Any] = json.loads(run("plan", "--snapshot", billing, "--join", "2", "--format", "json").stdout)
    assert set(document) >= {"members", "moves", "findings", "record_bytes", "record_limit", "least_moved", "warnings"}
    assert document["changes"] == ["2 members join"]
