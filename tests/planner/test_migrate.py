"""`kafka-assignors migrate`: how a group can go to the new protocol, what prevents it, and what changes."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kafka_assignors import Group, Member, ServerSideGroup, StickyStreamJoinAssignor
from kafka_assignors.assignors import by_name
from kafka_assignors.cli.app import app
from kafka_assignors.cluster import (
    ClassicMember,
    ConsumerMember,
    GroupSnapshot,
    NewProtocol,
    Snapshot,
    read_new_protocol,
)
from kafka_assignors.cluster.live import GroupReader
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.errors import ClusterError, OptionError
from kafka_assignors.group import MemberState
from kafka_assignors.net import Address
from kafka_assignors.planner.kip848 import OBSTACLES, readiness
from kafka_assignors.planner.migrate import WAYS, migrate
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.userdata import Assignment, Subscription
from support.fleets import bare, of_broker, troubled
from support.planned_group import standing_group
from support.snapshots import by_broker, classic, group, orders, snapshot, topic

READY = NewProtocol(1, 1, 1, {"group.consumer.migration.policy": ("bidirectional",)})
UUID = "0f3b2c1d-0000-4000-8000-{:012}"


def ours(**members: dict[str, Any]) -> Snapshot:
    """A group without user data: 12 partitions of orders and 6 of payments."""
    made = []
    for row in range(3):
        share = {"orders": list(range(4 * row, 4 * row + 4)), "payments": [2 * row, 2 * row + 1]}
        made.append(bare(classic(f"c{row}", ["orders", "payments"], share, **members.get(f"c{row}", {}))))
    return snapshot({"orders": 12, "payments": 6}, made)


def with_user_data(taken: Snapshot, data: bytes | None, assignor: str = "sticky") -> Snapshot:
    """The same group, with this user data in every assignment; None copies the user data of each subscription."""
    members = []
    for member in taken.groups["billing"].members:
        assert isinstance(member, ClassicMember)
        own = Subscription.decode(member.subscription).user_data if data is None else data
        written = Assignment(Assignment.decode(member.assignment).partitions, own).encode()
        members.append(dataclasses.replace(member, assignment=written))
    return dataclasses.replace(taken, groups={"billing": group(members, assignor=assignor)})


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["migrate", *arguments])


# ---- which way ------------------------------------------------------------------------------------------------------


def test_a_group_without_user_data_can_be_moved_online() -> None:
    (found,) = migrate(ours(), brokers=READY).groups
    assert (found.way, found.in_the_way, found.assignor) == ("online", (), "uniform")
    assert found.order[0].startswith("start one more member, with group.protocol=consumer,")
    assert "c0, c1, c2" in found.order[2]
    assert found.back[0].startswith("restart the members with group.protocol=classic")
    assert any("release of each client library" in text for text in found.unknown)


@pytest.mark.parametrize(
    ("data", "assignor", "said"),
    [
        (bytes(3) + b"\5", "sticky", "on_broker_assignor=migrate in every member"),
        (None, "cooperative-sticky", "as librdkafka's cooperative-sticky writes them"),
        (b"\0" * 11, "sticky", "a leader whose strategy writes none"),
    ],
)
def test_user_data_blocks_and_each_author_has_a_remedy(data: bytes | None, assignor: str, said: str) -> None:
    (found,) = migrate(with_user_data(ours(), data, assignor), brokers=READY).groups
    assert found.way == "offline"
    assert [each.rule for each in found.in_the_way] == ["no-user-data"]
    assert said in found.in_the_way[0].remedy
    assert any("stop all members" in step for step in found.order)


def test_every_rule_is_told_apart() -> None:
    policy, assignors, size = "group.consumer.migration.policy", "group.consumer.assignors", "group.consumer.max.size"
    cases: list[tuple[str, str, Snapshot, NewProtocol]] = [
        ("broker-release", "blocked", ours(), NewProtocol(3, -1, 0)),
        ("group-version", "blocked", ours(), NewProtocol(3, 1, 0)),
        ("migration-policy", "offline", ours(), NewProtocol(3, 1, 1, {policy: ("bidirectional", "disabled")})),
        ("group-size", "blocked", ours(), NewProtocol(3, 1, 1, {size: ("2",)})),
        ("assignor-allowed", "blocked", ours(), NewProtocol(3, 1, 1, {assignors: ("range",)})),
        ("stable", "unknown", of_state(ours(), "PreparingRebalance"), READY),
        ("no-user-data", "offline", orders(), READY),
        ("same-purpose", "online", with_user_data(ours(), b"", "lag"), READY),
        ("consumers-only", "blocked", of_type(ours(), "connect"), READY),
        ("readable-bytes", "offline", unreadable(ours()), READY),
    ]
    assert {rule for rule, *_ in cases} == set(OBSTACLES)
    for rule, way, taken, brokers in cases:
        (found,) = migrate(taken, brokers=brokers).groups
        assert (found.way, [each.rule for each in found.in_the_way]) == (way, [rule])
        assert found.in_the_way[0].remedy
        assert migrate(taken, brokers=brokers).wrong


def of_state(taken: Snapshot, state: str) -> Snapshot:
    return dataclasses.replace(taken, groups={"billing": dataclasses.replace(taken.groups["billing"], state=state)})


def of_type(taken: Snapshot, kind: str) -> Snapshot:
    changed = dataclasses.replace(taken.groups["billing"], protocol_type=kind)
    return dataclasses.replace(taken, groups={"billing": changed})


def unreadable(taken: Snapshot) -> Snapshot:
    first, *others = taken.groups["billing"].members
    assert isinstance(first, ClassicMember)
    torn = dataclasses.replace(first, subscription=first.subscription[:-2] + b"\x7f\xff")
    return dataclasses.replace(
        taken, groups={"billing": dataclasses.replace(taken.groups["billing"], members=(torn, *others))}
    )


def test_an_empty_group_needs_no_leave_of_the_policy() -> None:
    taken = dataclasses.replace(ours(), groups={"billing": GroupSnapshot(state="Empty", protocol_type="consumer")})
    disabled = NewProtocol(1, 1, 1, {"group.consumer.migration.policy": ("disabled",)})
    (found,) = migrate(taken, brokers=disabled).groups
    assert (found.way, found.in_the_way, len(found.order)) == ("empty", (), 1)


def test_what_is_moved_or_under_way_is_told_from_the_members() -> None:
    (found,) = migrate(by_broker(), brokers=READY).groups
    assert (found.way, found.classic, found.order) == ("moved", None, ())
    share = {"m0": {"t": [0, 1]}, "m1": {"t": [2, 3]}}
    mixed = of_broker(share, {})
    members = [
        dataclasses.replace(each, classic=each.id == "m1") for each in mixed.members if isinstance(each, ConsumerMember)
    ]
    taken = Snapshot("c", 0, {"t": topic(4)}, {"g": dataclasses.replace(mixed, members=tuple(members))})
    (found,) = migrate(taken, brokers=READY).groups
    assert (found.way, found.classic) == ("moving", 1)
    assert "m1" in found.order[0]
    assert found.change is not None


def test_the_fleet_uses_the_same_rules() -> None:
    for name in troubled().groups:
        observed = ObservedGroup(troubled(), name)
        ready = readiness(observed)
        (found,) = migrate(troubled(), name).groups
        assert (ready.state == "blocked") == bool(found.in_the_way and found.way != "unknown")
        assert list(ready.reasons) == [each.text for each in found.in_the_way if each.rule != "stable"]
        assert found.way in WAYS


# ---- what changes ---------------------------------------------------------------------------------------------------


def test_the_switch_is_what_the_brokers_assignor_plans() -> None:
    taken = ours()
    (found,) = migrate(taken, brokers=READY).groups
    change = found.change
    assert change is not None
    served = ServerSideGroup.of(taken)
    served.join("c0+", ["orders", "payments"])
    new = sum(map(len, served.target["c0+"].values()))
    # `uniform` moves the least: exactly the partitions of the new member.
    assert (change.moves, change.partitions) == (new, 18)
    assert (change.fewest_now, change.most_now, change.fewest, change.most) == (6, 6, 6, 6)
    assert (change.balance_score_now, change.balance_score) == (0, 0)
    # c0 owns numbers 0 and 1 of both topics. Numbers 2 to 5 have another owner in each topic.
    assert change.numbers == 6
    assert change.split_numbers_now == 4
    assert change.own_rack_now is None
    assert any("which partitions they are depends on orders" in note for note in found.notes)


def test_static_members_take_their_places_over() -> None:
    taken = ours(c0={"instance_id": "i0"}, c1={"instance_id": "i1"}, c2={"instance_id": "i2"})
    (found,) = migrate(taken, brokers=READY).groups
    assert found.change is not None
    assert (found.change.moves, found.change.all_moves) == (0, 0)
    assert found.order[0].startswith("restart i0 with")
    assert any("the second one is refused" in step for step in found.order)


def test_co_location_and_racks_that_are_lost() -> None:
    racks = [{"a"}, {"b"}] * 3
    topics = {name: topic(6, racks=racks) for name in ("clicks", "views")}
    members = [
        bare(
            classic(
                f"c{row}",
                ["clicks", "views"],
                dict.fromkeys(topics, range(row, 6, 2)),
                assignor="sticky-join",
                rack=rack,
            )
        )
        for row, rack in enumerate(("a", "b"))
    ]
    taken = snapshot(topics, members, assignor="range")
    (found,) = migrate(taken, brokers=READY).groups
    assert found.assignor == "range"
    assert "group.remote.assignor=range" in found.order[0]
    assert found.change is not None
    assert (found.change.split_numbers_now, found.change.split_numbers) == (0, 0)
    assert found.change.own_rack_now == 12
    assert found.change.own_rack is not None
    assert found.change.own_rack < 12
    (uniform,) = migrate(taken, brokers=READY, assignor="uniform").groups
    assert uniform.change is not None
    assert (uniform.change.split_numbers_now, uniform.change.numbers) == (0, 6)


def test_what_events_cost_is_of_one_group_only() -> None:
    (found,) = migrate(ours(), "billing", brokers=READY).groups
    assert [each.event for each in found.events] == ["a member joins", "a member leaves", "a rolling restart"]
    for each in found.events:
        assert each.now is not None
        assert (each.now.strategy, each.then.strategy.partition("(")[0]) == ("sticky", "uniform")
        # An eager group also stops the partitions that stay.
        assert each.now.stopped >= each.then.stopped
    assert all(each.events == () for each in migrate(troubled()).groups)


def test_a_group_that_cannot_be_simulated_says_why() -> None:
    beyond = bare(classic("c0", ["orders"], {"orders": [0, 7]}))
    (found,) = migrate(snapshot({"orders": 2}, [beyond]), brokers=READY).groups
    assert (found.way, found.change) == ("online", None)
    assert any("cannot be computed" in note for note in found.notes)


def test_the_figures_of_the_page() -> None:
    topics = {"clicks": 24, "views": 24}
    made = StickyStreamJoinAssignor().assign(Group(topics, [Member(f"m{row}", [*topics]) for row in range(6)]))
    members = [bare(classic(name, [*topics], share, assignor="sticky-join")) for name, share in made.assignment.items()]
    taken = snapshot(topics, members, assignor="sticky-join")
    page = (Path(__file__).parents[2] / "docs" / "kip-848.md").read_text()
    figures = {}
    for name in ("range", "uniform"):
        (found,) = migrate(taken, brokers=READY, assignor=name).groups
        assert found.change is not None
        join, _, restart = found.events
        assert join.now is not None
        assert restart.now is not None
        figures[name] = (
            found.change.numbers - (found.change.split_numbers or 0),
            join.then.moves,
            join.then.stopped,
            restart.then.moves,
            restart.then.stopped,
        )
        figures["before"] = (24, join.now.moves, join.now.stopped, restart.now.moves, restart.now.stopped)
        assert f"{found.change.moves} " in page.partition("The switch itself moves")[2][:80]
    drawn = {name: re.findall(rf"^  {name} +█+ (\d+)", page, re.MULTILINE) for name in figures}
    assert drawn == {name: list(map(str, each)) for name, each in figures.items()}


# ---- hints ----------------------------------------------------------------------------------------------------------


def test_client_ids_are_hints() -> None:
    names = ["kafka-python-3.0.12", "aiokafka-0.14.0", "consumer-billing-1", "rdkafka", "my-service"]
    members = [
        bare(classic(f"{name}-{UUID.format(row)}", ["t"], {"t": [row]})) for row, name in enumerate([*names, "rdkafka"])
    ]
    found = migrate(snapshot({"t": 6}, members), brokers=READY).groups[0].clients
    assert [(each.library, each.members) for each in found] == [
        ("librdkafka", 2),
        ("aiokafka", 1),
        ("Java's consumer", 1),
        ("kafka-python", 1),
        (None, 1),
    ]
    assert "KafkaConsumer does" in next(each.text for each in found if each.library == "kafka-python")


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "billing.json"
    ours().save(file)
    return file


def test_the_command_prints_way_order_figures_and_the_unknown(path: Path) -> None:
    result = run("--snapshot", str(path))
    assert result.exit_code == 0, result.output
    for part in ("online: the group can", "order:", "1. start one more member", "What changes", "a rolling restart"):
        assert part in result.stdout
    assert "what the brokers allow" in result.stdout


def test_in_the_way_is_status_3_in_every_form(tmp_path: Path) -> None:
    file = tmp_path / "orders.json"
    orders().save(file)
    shown = run("--snapshot", str(file))
    assert (shown.exit_code, "no-user-data" in shown.stdout, "what to do:" in shown.stdout) == (3, True, True)
    told = run("--snapshot", str(file), "--format", "json")
    answer = json.loads(told.stdout)
    assert (told.exit_code, answer["schema"], answer["wrong"]) == (3, "kafka-assignors/migrate/1", True)
    assert answer["groups"][0]["in_the_way"][0]["blocks"] == "online"
    table = list(csv.DictReader(io.StringIO(run("--snapshot", str(file), "--format", "csv").stdout)))
    assert (table[0]["way"], table[0]["in_the_way"], table[0]["moves"]) == ("offline", "no-user-data", "4")


def test_all_groups_have_a_row_each(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    troubled().save(file)
    result = run("--snapshot", str(file))
    assert result.exit_code == 3
    for name in troubled().groups:
        assert name in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--broker", "3.9.0"], "3.9"),
        (["--broker", "9.1"], "9.1"),
        (["--broker", "newest"], "newest"),
        (["--assignor", "sticky"], "the broker has 'uniform', 'range'"),
        (["--group", "nobody"], "has no group 'nobody'"),
        (["--bootstrap-server", "localhost:1"], "give only one of them"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], said: str, path: Path) -> None:
    result = run("--snapshot", str(path), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_release_that_does_not_exist_is_refused_by_the_function_too() -> None:
    with pytest.raises(OptionError, match=r"3\.8"):
        migrate(ours(), broker="3.8")


# ---- live -----------------------------------------------------------------------------------------------------------


def test_the_brokers_of_the_embedded_kafka_tell_everything() -> None:
    with EmbeddedKafka(racks=["a", "b"], consumer_migration_policy="upgrade") as kafka:
        found = read_new_protocol({"bootstrap.servers": kafka.bootstrap_servers})
    assert (found.brokers, found.heartbeat, found.group_version, found.unread) == (2, 1, 1, {})
    assert found.settings["group.consumer.migration.policy"] == ("upgrade",)
    assert found.settings["group.consumer.assignors"] == ("uniform,range",)


def test_a_user_who_may_not_read_settings_gets_the_rest() -> None:
    with EmbeddedKafka(topics={"t": 2}) as kafka, standing_group(kafka.bootstrap_servers, "g", {"t": 2}, ["c"]):
        kafka.inject_fault("DescribeConfigs", error="CLUSTER_AUTHORIZATION_FAILED", times=2)
        result = run("--bootstrap-server", kafka.bootstrap_servers, "--group", "g")
    assert result.exit_code == 3, result.output
    assert "CLUSTER_AUTHORIZATION_FAILED (31); the user needs DESCRIBE_CONFIGS on the cluster" in result.stdout
    assert "no-user-data" in result.stdout


def test_a_user_who_may_not_see_the_group_gets_one_error() -> None:
    with EmbeddedKafka(topics={"t": 2}) as kafka, standing_group(kafka.bootstrap_servers, "g", {"t": 2}, ["c"]):
        kafka.inject_fault("DescribeGroups", error="GROUP_AUTHORIZATION_FAILED")
        result = run("--bootstrap-server", kafka.bootstrap_servers, "--group", "g")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "needs the right to DESCRIBE it" in result.stderr


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_a_group_of_another_kind_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked:
        def ask(self, request: str, *_fields: object, **_address: object) -> dict[str, Any]:
            assert request == "ListGroups"
            return {"groups": [{"group_id": "g", "group_type": kind.capitalize()}]}

    reader = GroupReader(Asked(), False, lambda *_: None)  # type: ignore[arg-type]
    error = reader._absent("g", Address("h", 1))
    assert isinstance(error, ClusterError)
    assert str(error).startswith(f"group 'g' is of type {kind!r}")
    assert "does not exist" in str(reader._absent("other", Address("h", 1)))
    del monkeypatch


# ---- subscriptions that declare more than they hold -----------------------------------------------------------------


def test_describe_names_the_member_whose_subscription_declares_too_much(tmp_path: Path) -> None:
    good = bare(classic("good", ["orders"], {"orders": [0, 1]}))
    torn = dataclasses.replace(
        bare(classic("torn", ["orders"])), subscription=bytes.fromhex("0003 7fffffff 0006") + b"orders" + b"\xff" * 4
    )
    file = tmp_path / "torn.json"
    snapshot({"orders": 2}, [good, torn]).save(file)
    result = CliRunner().invoke(app, ["describe", "--snapshot", str(file), "--format", "json"])
    findings = json.loads(result.stdout)["findings"]
    (found,) = [each for each in findings if each["rule"] == "declared-topics"]
    assert found["text"].startswith("the subscription of torn declares 2,147,483,647 topics, and holds 1:")
    assert "readable-bytes" not in {each["rule"] for each in findings}


@pytest.mark.parametrize(
    "name",
    [
        "range",
        "roundrobin",
        "sticky",
        "cooperative-sticky",
        "sticky-join",
        "cooperative-sticky-join",
        "lag",
        "weighted",
    ],
)
def test_ours_hold_every_topic_that_they_declare(name: str) -> None:
    for topics in ([], ["t"], ["t", "t", "ü" * 100], [f"topic-{number}" for number in range(500)]):
        owned = {each: [0, 1] for each in topics}
        metadata = by_name(name).metadata(topics, MemberState(owned, 3, "rack"))
        declared = int.from_bytes(metadata[2:6], signed=True)
        assert len(Subscription.decode(metadata, strict=True).topics) == declared == len(set(topics))
