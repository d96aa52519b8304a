"""How many members are done in time: by hand, on files, and on a live group."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kafka_assignors.assignors import by_name
from kafka_assignors.cli.app import app
from kafka_assignors.cluster import Snapshot
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.flags import duration_s
from kafka_assignors.planner.moments import deadline_ms
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.planner.size import measured_rate, size
from support.planned_group import commit
from support.snapshots import before, classic, group, orders, snapshot, topic

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_assignors.planner.size import SizedGroup


def sized(now: Snapshot, earlier: Snapshot, seconds: float, *strategies: str, **options: float) -> SizedGroup:
    return size(
        ObservedGroup(now),
        ObservedGroup(earlier),
        now.taken_ms + round(1000 * seconds),
        [by_name(name) for name in strategies or ("sticky",)],
        **options,  # type: ignore[arg-type]
    )


def test_the_fewest_members_by_hand() -> None:
    now = orders()
    # In 10 s each of 18 partitions gets 5 records, and 20 of it are read: 9 a second arrive, and each of three members
    # reads 12 a second.
    earlier = before(now, 10, arrived=5, read=20)
    found = sized(now, earlier, 2_700)
    assert (found.lag, found.arrivals, found.rate, found.rate_source) == (900, 9.0, 12.0, "measured")
    assert (found.members, found.partitions, found.least) == (3, 18, 1)
    # Each of three members has 300 records, 3 more arrive in a second, and it reads 12.
    assert found.now_seconds == 300 / (12 - 3)
    (row,) = found.strategies
    assert (row.strategy, row.members, row.seconds, row.in_use) == ("sticky", 1, 900 / (12 - 9), True)
    # With a startup of 20 s two members are needed. Each has nine partitions with 450 records, and 4.5 more a second.
    (row,) = sized(now, earlier, 180, startup=20.0).strategies
    assert (row.members, row.seconds) == (2, 20 + (450 + 4.5 * 20) / (12 - 4.5))
    assert found.even == (1, 2, 3, 6, 9, 18)
    assert found.even_by_topic == (1, 2, 3, 6)


def test_with_every_smaller_number_somebody_is_late() -> None:
    now = orders()
    earlier = before(now, 10, arrived=5, read=20)
    for seconds in (60, 75, 100, 200):
        for name in ("sticky", "range", "roundrobin"):
            (row,) = sized(now, earlier, seconds, name).strategies
            assert row.members is not None
            assert row.seconds is not None
            assert row.seconds <= seconds
            for fewer in range(1, row.members):
                # The same plan by hand: the largest share of partitions, all with the same lag.
                share = {"range": -(-12 // fewer) + -(-6 // fewer)}.get(name, -(-18 // fewer))
                left = 12 - 0.5 * share
                assert left <= 0 or 50 * share / left > seconds


def test_range_needs_more_than_sticky() -> None:
    names = [f"t{number}" for number in range(5)]
    members = [classic("a", names, {name: [0, 1, 2] for name in names})]
    now = snapshot(dict.fromkeys(names, 3), members, committed={name: [10] * 3 for name in names})
    earlier = before(now, 10, arrived=0, read=10)
    assert measured_rate(ObservedGroup(now), ObservedGroup(earlier)) == (15.0, "measured")
    sticky, by_range = sized(now, earlier, 27, "sticky", "range").strategies
    # Fifteen partitions of 90 records. Four members get at most four each with sticky; range gives five to some member.
    assert (sticky.members, sticky.most) == (4, 4)
    assert by_range.members is None or by_range.members > 4
    assert by_range.error == "with 4 to 15 members the lag is not gone in time"


def test_the_largest_partition_forbids() -> None:
    now = orders()
    ends = (100_050, *[100] * 11)
    now = replace(now, topics={**now.topics, "orders": replace(now.topics["orders"], end=ends)})
    found = sized(now, before(now, 10, arrived=5, read=20), 600)
    assert not found.possible
    assert found.largest is not None
    assert (found.largest.topic, found.largest.partition, found.largest.lag) == ("orders", 0, 100_000)
    assert found.largest.needed_rate == 100_000 / 600 + 0.5
    assert found.strategies[0].members is None
    assert found.strategies[0].error == "orders-0 alone needs 167.2 records a second, and a member reads 12.0"
    # A faster member would do.
    assert sized(now, before(now, 10, arrived=5, read=20), 600, rate=168.0).strategies[0].members is not None


def test_a_group_that_keeps_up_tells_a_lower_bound() -> None:
    now = orders()
    now = replace(
        now,
        groups={"billing": replace(now.groups["billing"], committed={"orders": (100,) * 12, "payments": (100,) * 6})},
    )
    earlier = before(now, 10, arrived=30, read=30)
    found = sized(now, earlier, 60)
    assert (found.rate, found.rate_source, found.lag) == (18.0, "at least", 0)
    assert [each.rule for each in found.findings] == ["rate"]


def test_counters_that_go_back_do_not_count() -> None:
    now = orders()
    earlier = before(now, 10, arrived=5, read=20)
    # A topic that was made anew, and commits that were reset.
    broken = replace(
        earlier,
        topics={**earlier.topics, "payments": replace(earlier.topics["payments"], end=(10_000,) * 6)},
        groups={
            "billing": replace(
                earlier.groups["billing"], committed={"orders": (30,) * 11 + (90,), "payments": (9_990,) * 6}
            )
        },
    )
    found = sized(now, broken, 2_700)
    assert found.rate == 12 / 12 * 4 * 2.0
    assert found.arrivals == 12 * 0.5
    (finding,) = found.findings
    assert finding.rule == "arrivals"
    assert finding.text.startswith("the rate of payments-0, payments-1, payments-2")


def test_what_cannot_be_told_is_one_sentence() -> None:
    now = orders()
    still = before(now, 10, arrived=5, read=0)
    with pytest.raises(GroupError, match=r"did not advance within 10 s.*give --rate"):
        sized(now, still, 60)
    with pytest.raises(OptionError, match="not older"):
        sized(now, now, 60)
    with pytest.raises(OptionError, match="the deadline is 10 s after the reading, and members start within 20 s"):
        sized(now, before(now, 10, arrived=5, read=20), 10, startup=20.0)
    with pytest.raises(OptionError, match="--rate is -1"):
        sized(now, still, 60, rate=-1)
    with pytest.raises(OptionError, match="not in the earlier reading"):
        size(ObservedGroup(now), None, now.taken_ms + 60_000)


# ---- the command ----


def run(*arguments: str, width: int = 200) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["size", *arguments], env={"COLUMNS": str(width), "TZ": "UTC"})
    return result.exit_code, result.output


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    now, earlier = tmp_path / "now.json", tmp_path / "before.json"
    orders().save(now)
    before(orders(), 10, arrived=5, read=20).save(earlier)
    return str(now), str(earlier)


def test_the_command_in_three_forms(files: tuple[str, str]) -> None:
    now, earlier = files
    asked = ["--snapshot", now, "--since", earlier, "--deadline", "3m"]
    status, text = run(*asked)
    assert status == 0, text
    assert "group billing: 900 records of lag, to be gone by " in text
    rates = "9.0 records arrive in a second, and one member reads 12.0, as measured"
    assert f"3.0 min from the last reading on; {rates}" in text
    assert "as it is now, with 3 members, the slowest member has no lag after 33.3 s" in text
    assert "all 18 partitions divide evenly among 1, 2, 3, 6, 9, 18 members" in text
    assert "sticky (in use)" in text
    status, text = run(*asked, "--format", "json")
    answer = json.loads(text)
    assert (status, answer["schema"], answer["strategies"][0]["members"]) == (0, "kafka-assignors/size/1", 2)
    status, text = run(*asked, "--format", "csv", "--strategy", "range")
    assert text.splitlines()[0] == "strategy,members,seconds,fewest,most,heaviest,error,in_use"
    assert text.splitlines()[1].startswith("range,2,")


def test_exit_status_1_if_no_number_is_enough(files: tuple[str, str]) -> None:
    now, earlier = files
    status, text = run("--snapshot", now, "--since", earlier, "--deadline", "3m", "--rate", "0.6")
    assert status == 1
    assert "so that no number of members is enough" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--deadline", "soon"], "--deadline is 'soon'; give a time such as 18:00"),
        (["--deadline", "25:00"], "--deadline is '25:00'"),
        (["--deadline", "0m"], "give a duration such as 45m"),
        (["--deadline", "2020-01-31T18:00"], "which was past at the reading"),
        (["--deadline", "3m", "--group", "nobody"], "has no group 'nobody'"),
        (["--deadline", "3m", "--interval", "3"], "--snapshot is a file, the other options a live cluster"),
    ],
)
def test_wrong_options_are_one_sentence(arguments: list[str], said: str, files: tuple[str, str]) -> None:
    status, text = run("--snapshot", files[0], "--since", files[1], *arguments)
    assert (status, said in text) == (2, True), text


def test_readings_that_do_not_fit(files: tuple[str, str], tmp_path: Path) -> None:
    now, earlier = files
    assert "arrivals need two readings" in run("--snapshot", now, "--deadline", "3m")[1]
    assert "not older" in run("--snapshot", now, "--since", now, "--deadline", "3m")[1]
    other = tmp_path / "other.json"
    replace(Snapshot.load(earlier), cluster="another").save(other)
    assert (
        "is of cluster 'another', this one of 'test'"
        in run("--snapshot", now, "--since", str(other), "--deadline", "3m")[1]
    )
    # The group did not exist at the earlier reading: arrivals are known, but the rate of a member is not.
    replace(Snapshot.load(earlier), groups={}).save(other)
    status, text = run("--snapshot", now, "--since", str(other), "--deadline", "3m")
    assert (status, "not in the earlier reading; give --rate" in text) == (2, True)
    assert run("--snapshot", now, "--since", str(other), "--deadline", "3m", "--rate", "12")[0] == 0


def test_a_live_group_that_stands_still() -> None:
    with EmbeddedKafka(topics={"t": 4}) as kafka:
        commit(kafka.bootstrap_servers, "night", {("t", number): 0 for number in range(4)})
        asked = ["--bootstrap-server", kafka.bootstrap_servers, "--interval", "0.2", "--deadline", "1h"]
        status, text = run(*asked, "--group", "night", "--rate", "5", "--format", "json")
        assert status == 0, text
        answer = json.loads(text)
        assert (answer["members"], answer["now_seconds"], answer["partitions"], answer["arrivals"]) == (0, None, 4, 0.0)
        assert {row["members"] for row in answer["strategies"]} == {1}
        status, text = run(*asked, "--group", "gone")
        assert (status, "gone" in text) == (2, True)


def test_members_with_several_subscriptions_are_planned() -> None:
    members = [classic("a", ["t"], {"t": [0, 1]}), classic("b", ["u"], {"u": [0, 1]})]
    now = snapshot({"t": 2, "u": 2}, members, committed={"t": [10, 10], "u": [10, 10]})
    (row,) = sized(now, before(now, 10, arrived=0, read=10), 600).strategies
    # One member alone would leave a topic without a subscriber.
    assert row.members == 2


def test_offsets_that_are_not_known_count_as_nothing() -> None:
    now = orders()
    now = replace(now, topics={**now.topics, "payments": topic(6, end=None)})
    found = sized(now, before(now, 10, arrived=5, read=20), 600, rate=12.0)
    assert {each.rule for each in found.findings} == {"known-lags", "arrivals"}
    assert found.lag == 600


def test_a_group_that_rebalances_is_not_planned() -> None:
    now = orders()
    moving = replace(now, groups={"billing": group([], state="PreparingRebalance")})
    with pytest.raises(GroupError, match="PreparingRebalance"):
        sized(moving, before(now, 10, arrived=5, read=20), 600, rate=12.0)


def test_durations_and_deadlines() -> None:
    assert [duration_s("--x", each) for each in ("45m", "90s", "1h30m", "2d", "1.5h")] == [
        2_700,
        90,
        5_400,
        172_800,
        5_400,
    ]
    noon = 1_795_000_000_000 // 86_400_000 * 86_400_000 + 43_200_000
    assert deadline_ms("--x", "18:00Z", noon) == noon + 6 * 3_600_000
    assert deadline_ms("--x", "06:00Z", noon) == noon + 18 * 3_600_000
    assert deadline_ms("--x", "12:00Z", noon) == noon + 24 * 3_600_000
    assert deadline_ms("--x", "2026-11-20T00:00+00:00", noon) > noon
    for text in ("m", "5", "-5m", "5 parsecs", "", "400d", "1e3s"):
        with pytest.raises(OptionError, match="--x is"):
            duration_s("--x", text)
