"""Policies of autoscalers as text, their decisions, and whole replays against a plain simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_assignors import GroupError, OptionError
from kafka_assignors.assignors import by_name
from kafka_assignors.autoscale import Offsets, Timing, Workload, member_counts, parse_policy, replay, workload
from kafka_assignors.autoscale.autoscaler import Autoscaler, kafka_metric
from support.autoscaling import Simulation, small_group

# ---- policies ----


def test_the_defaults_are_those_of_the_pages() -> None:
    policy = parse_policy("keda(lagThreshold=50)")
    assert (policy.polling_ms, policy.cooldown_ms, policy.least, policy.most) == (30_000, 300_000, 0, 100)
    assert (policy.activation, policy.allow_idle, policy.to_zero, policy.tolerance) == (0, False, True, 0.1)
    assert (policy.sync_ms, policy.up.window_ms, policy.down.window_ms) == (15_000, 0, 300_000)
    assert [(each.kind, each.value, each.period_ms) for each in policy.up.policies] == [
        ("Percent", 100, 15_000),
        ("Pods", 4, 15_000),
    ]


def test_every_parameter_is_read() -> None:
    policy = parse_policy(
        "calm = keda(lagThreshold=7, activationLagThreshold=3, pollingInterval=10, cooldownPeriod=60, "
        "minReplicaCount=2, maxReplicaCount=9, idleReplicaCount=0, limitToPartitionsWithLag=true, "
        "ensureEvenDistributionOfPartitions=true, tolerance=0.25, syncPeriod=20, "
        "scaleUp.stabilizationWindowSeconds=30, scaleUp.policies=Pods:2:60+Percent:10:30, "
        "scaleUp.selectPolicy=Min, scaleDown.stabilizationWindowSeconds=0, scaleDown.selectPolicy=Disabled)"
    )
    assert (policy.name, policy.threshold, policy.activation, policy.polling_ms) == ("calm", 7, 3, 10_000)
    assert (policy.cooldown_ms, policy.least, policy.most, policy.to_zero) == (60_000, 2, 9, True)
    assert (policy.limit_to_lagging, policy.even, policy.tolerance, policy.sync_ms) == (True, True, 0.25, 20_000)
    assert (policy.up.window_ms, policy.up.select, len(policy.up.policies)) == (30_000, "Min", 2)
    assert (policy.down.window_ms, policy.down.select) == (0, "Disabled")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("keda", "give keda(lagThreshold=500"),
        ("keda()", "lagThreshold is missing"),
        ("keda(lagThreshold=0)", "lagThreshold is '0'; give a whole number from 1"),
        ("keda(lagThreshold=5, lagThreshold=6)", "given twice"),
        ("keda(lagThreshold)", "has no value"),
        ("keda(lagThreshold=5, color=red)", "keda has no parameter 'color' here; it has lagThreshold"),
        ("keda(lagThreshold=5, minReplicaCount=9, maxReplicaCount=3)", "the fewest replicas are 9, the most 3"),
        ("keda(lagThreshold=5, idleReplicaCount=1, minReplicaCount=2)", "the only value that KEDA supports"),
        ("keda(lagThreshold=5, allowIdleConsumers=yes)", "give true or false"),
        ("keda(lagThreshold=5, allowIdleConsumers=true, limitToPartitionsWithLag=true)", "allows no idle consumers"),
        ("hpa(averageValue=5)", "maxReplicas is missing"),
        ("hpa(averageValue=5, maxReplicas=3, minReplicas=0)", "from 1 to"),
        ("hpa(averageValue=5, maxReplicas=3, pollingInterval=3)", "hpa has no parameter 'pollingInterval'"),
        ("hpa(averageValue=5, maxReplicas=3, tolerance=2)", "from 0 to below 1"),
        ("hpa(averageValue=5, maxReplicas=3, scaleUp.policies=Pods:2)", "type:value:seconds"),
        ("hpa(averageValue=5, maxReplicas=3, scaleUp.selectPolicy=Most)", "Max, Min or Disabled"),
        ("fixed(replicas=-1)", "replicas is '-1'"),
    ],
)
def test_a_wrong_policy_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(OptionError) as error:
        parse_policy(text)
    assert said in str(error.value)


# ---- decisions ----


def test_the_metric_leaves_no_consumer_idle() -> None:
    lags = [0, 90, 10]
    assert kafka_metric(parse_policy("keda(lagThreshold=10)"), lags) == 30
    assert kafka_metric(parse_policy("keda(lagThreshold=10, limitToPartitionsWithLag=true)"), lags) == 20
    assert kafka_metric(parse_policy("keda(lagThreshold=10, allowIdleConsumers=true)"), lags) == 100
    assert kafka_metric(parse_policy("hpa(averageValue=10, maxReplicas=9)"), lags) == 100
    even = parse_policy("keda(lagThreshold=10, ensureEvenDistributionOfPartitions=true)")
    # 12 partitions and 45 records: 5 replicas would be enough, and 6 divide the partitions.
    assert kafka_metric(even, [45] + [0] * 11) == 60


def test_the_tolerance_of_a_tenth() -> None:
    scaler = Autoscaler(parse_policy("hpa(averageValue=100, maxReplicas=50)"), 0)
    assert scaler.decide(0, 10, [1_100]) == 10
    assert scaler.decide(15_000, 10, [1_101]) == 12


def test_a_scale_down_waits_for_the_highest_recommendation_of_its_window() -> None:
    scaler = Autoscaler(parse_policy("hpa(averageValue=100, maxReplicas=50)"), 0)
    assert scaler.decide(0, 10, [1_000]) == 10
    assert [scaler.decide(now, 10, [100]) for now in range(15_000, 300_000, 15_000)] == [10] * 19
    assert scaler.decide(300_000, 10, [100]) == 1


def test_the_example_of_the_page_about_policies() -> None:
    """80 replicas go down to 10. A minute removes 4, or 10 % (rounded up) if that is more: 8 of 80, …, at last 4."""
    down = "scaleDown.stabilizationWindowSeconds=0, scaleDown.policies=Pods:4:60+Percent:10:60"
    scaler = Autoscaler(parse_policy(f"hpa(averageValue=1, maxReplicas=99, {down})"), 0)
    seen = [80]
    for minute in range(12):
        seen.append(scaler.decide(60_000 * minute, seen[-1], [10]))
    assert seen == [80, 72, 64, 57, 51, 45, 40, 36, 32, 28, 24, 20, 16]


def test_the_default_scale_up_doubles_or_adds_four() -> None:
    scaler = Autoscaler(parse_policy("hpa(averageValue=1, maxReplicas=99)"), 0)
    seen = [1]
    for step in range(5):
        seen.append(scaler.decide(15_000 * step, seen[-1], [90]))
    assert seen == [1, 5, 10, 20, 40, 80]


def test_keda_wakes_at_once_and_sleeps_after_the_cooldown() -> None:
    scaler = Autoscaler(parse_policy("keda(lagThreshold=10, activationLagThreshold=5, cooldownPeriod=60)"), 0)
    assert scaler.poll(0, 0, [5]) == 0
    assert scaler.poll(30_000, 0, [6]) == 1
    assert [scaler.poll(now, 1, [5]) for now in (60_000, 90_000, 120_000)] == [1, 1, 0]
    assert scaler.decide(120_000, 0, [1_000]) == 0


# ---- workloads ----


def offsets(*ends: int, topic: str = "t", commits: tuple[int | None, ...] = ()) -> list[Offsets]:
    given = commits or (0,) * len(ends)
    return [
        Offsets(1_000 * at, topic, 0, 0, end, commit) for at, (end, commit) in enumerate(zip(ends, given, strict=True))
    ]


def test_ends_that_go_back_are_another_topic() -> None:
    load = workload("g", offsets(10, 50, 5, 25), rate=1.0)
    assert load.arrived == {("t", 0): (10, 50, 50, 70)}
    assert load.notes == ("the end of t-0 went back, as of a topic that was made anew; nothing arrives meanwhile",)


def test_order_duplicates_and_moments_without_a_leader_do_not_matter() -> None:
    found = [*offsets(0, 100, 200), *offsets(0, 100, 200), Offsets(1_000, "u", 0, 0, 7, 7)]
    dark = Offsets(1_000, "t", 1, None, None, None)
    load = workload("g", [*reversed(found), dark], rate=1.0)
    assert load.arrived == {("t", 0): (0, 100, 200), ("u", 0): (0, 0, 0)}


def test_what_a_member_reads_is_measured_from_commits() -> None:
    ends, commits = (10_000, 10_000, 10_000), (0, 40, 100)
    load = workload("g", offsets(*ends, commits=commits), members=[(0, 2), (1_000, 3)])
    # In the first second two members read 40 records, in the next one three members read 60.
    assert (load.rate, load.members, load.notes) == (20.0, 2, ())
    kept_up = workload("g", offsets(0, 50, 100, commits=(0, 50, 100)))
    assert kept_up.rate == 50.0
    assert "reads 50.0 records a second at least" in kept_up.notes[0]


def test_commits_that_stand_still_or_go_back_tell_nothing() -> None:
    with pytest.raises(GroupError, match=r"do not advance.*give --rate"):
        workload("g", offsets(10, 20, commits=(5, 3)))
    with pytest.raises(GroupError, match="rates need two at least"):
        workload("g", offsets(10), rate=1.0)
    with pytest.raises(GroupError, match="rates need two at least"):
        workload("g", [], rate=1.0)
    with pytest.raises(OptionError, match="rate of a member"):
        workload("g", offsets(1, 2), rate=float("nan"))


def test_member_counts_follow_events_in_any_order() -> None:
    events = [(30, 3, "leave", "a"), (10, 1, "join", "a"), (20, 2, "snapshot", "b"), (20, 2, "snapshot", "a")]
    assert member_counts(events) == [(10, 1), (20, 2), (30, 1)]


# ---- whole replays ----


@pytest.mark.parametrize("seed", range(50))
def test_a_plain_simulation_has_the_same_figures(seed: int) -> None:
    load, policy, static, timing = small_group(seed)
    strategies = ("range", "roundrobin", "sticky", "cooperative-sticky", "lag")
    assignor = by_name(strategies[seed % len(strategies)])
    found = replay(load, policy, assignor, static=static, timing=timing)
    assert found.error is None
    wanted = Simulation(load, policy, assignor, static, timing).figures()
    assert {name: getattr(found, name) for name in wanted} == wanted


def test_the_50_groups_have_something_to_decide() -> None:
    """Replays without decisions would agree with the plain simulation whatever their code."""
    found = []
    for load, policy, static, timing in map(small_group, range(50)):
        found.append(replay(load, policy, by_name("sticky"), static=static, timing=timing))
    assert sum(each.scalings > 1 for each in found) >= 30
    assert sum(each.late > 0 for each in found) >= 15
    assert sum(each.empty_s > 0 for each in found) >= 5
    assert sum(each.unowned_s > 0 for each in found) >= 30


def busy() -> Workload:
    """Lag, a quiet hour, and records again."""
    load = Workload.steady("g", {"t": 12}, rate=50.0, arrivals=0.0, lag=60_000, seconds=3_600, members=1)
    return replace(
        load,
        times=(0, 3_600_000, 5_400_000),
        arrived=dict.fromkeys(load.arrived, (5_000, 5_000, 50_000)),
    )


def test_a_cooperative_strategy_leaves_fewer_partitions_without_an_owner() -> None:
    policy = parse_policy("keda(lagThreshold=1000, maxReplicaCount=12)")
    eager, cooperative = (replay(busy(), policy, by_name(name)) for name in ("sticky", "cooperative-sticky"))
    assert eager.scalings > 3
    assert eager.unowned_s > cooperative.unowned_s > 0
    assert cooperative.rebalances > eager.rebalances


def test_static_members_leave_their_partitions_until_their_session_ends() -> None:
    policy = parse_policy("keda(lagThreshold=1000, maxReplicaCount=12, cooldownPeriod=60)")
    dynamic, static = (replay(busy(), policy, by_name("cooperative-sticky"), static=each) for each in (False, True))
    assert dynamic.replicas[:3] == static.replicas[:3]
    assert static.unowned_s > dynamic.unowned_s + 40


def test_a_static_member_that_is_back_in_time_costs_no_rebalance() -> None:
    load = busy()
    # The group loses members when it has no lag, and gets them back before the longer session ends.
    policy = parse_policy("hpa(averageValue=100, maxReplicas=12, scaleDown.stabilizationWindowSeconds=0)")
    short, long = (
        replay(load, policy, by_name("sticky"), static=True, timing=Timing(session=session)) for session in (1, 3_600)
    )
    assert long.rebalances < short.rebalances


def test_fixed_replicas_cost_what_they_are() -> None:
    found = replay(busy(), parse_policy("fixed(replicas=4)"), by_name("range"))
    assert (found.scalings, found.rebalances, found.unowned_s) == (0, 0, 0.0)
    assert found.member_hours == 4 * 1.5
    assert found.replicas == ((0, 4),)
    assert found.records == 600_000
    assert found.unread + 4 * 50 * 5_400 >= found.records


def test_a_strategy_that_cannot_plan_says_so() -> None:
    class Broken(type(by_name("sticky"))):  # type: ignore[misc]
        def assign(self, *_args: object, **_options: object) -> object:
            raise GroupError("no plan today")

    found = replay(busy(), parse_policy("fixed(replicas=2)"), Broken())
    assert (found.error, found.member_hours) == ("no plan today", 0.0)


def test_a_history_that_is_too_long_says_what_to_do() -> None:
    load = Workload.steady("g", {"t": 1_000}, rate=1.0, arrivals=1.0, seconds=86_400 * 30)
    with pytest.raises(OptionError, match="give a shorter history"):
        replay(load, parse_policy("keda(lagThreshold=5)"), by_name("range"))
    with pytest.raises(OptionError, match="session is -1 seconds"):
        Timing(session=-1)


@pytest.mark.parametrize("name", ["uniform", "server-side-range", "sticky-join", "weighted", "lag"])
def test_every_strategy_can_be_replayed(name: str) -> None:
    policy = parse_policy("keda(lagThreshold=1000, maxReplicaCount=12, cooldownPeriod=60)")
    dynamic, static = (replay(busy(), policy, by_name(name), static=each) for each in (False, True))
    assert (dynamic.error, static.error) == (None, None)
    assert min(dynamic.rebalances, static.rebalances) > 3
    assert dynamic.records - dynamic.unread > 500_000
