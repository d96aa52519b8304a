"""The generated fleet, group by group: every history is possible, and has the shape that it names."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest

from kafka_assignors import OptionError
from kafka_assignors.spark.fleet import SHAPES, FleetOptions, MembershipEvent, SynthGroup, pool_size, pool_topic

OPTIONS = FleetOptions(seed=5, groups=400)
FLEET = [SynthGroup(OPTIONS, number) for number in range(OPTIONS.groups)]


def steps(group: SynthGroup) -> list[list[MembershipEvent]]:
    return [list(step) for _, step in groupby(group.events, key=lambda event: event.seq)]


def of_shape(shape: str) -> list[SynthGroup]:
    return [group for group in FLEET if group.shape == shape]


def test_a_group_depends_on_seed_and_number_alone() -> None:
    for group in FLEET[:40]:
        again = SynthGroup(FleetOptions(seed=5, groups=400), group.number)
        # The order in which the parts are computed does not matter.
        assert list(again.observed()) == list(group.observed())
        assert [(each.ts, each.topic, each.committed.tolist()) for each in again.offsets()] == [
            (each.ts, each.topic, each.committed.tolist()) for each in group.offsets()
        ]
        assert again.events == group.events
    others = [SynthGroup(FleetOptions(seed=6, groups=400), number).events for number in range(40)]
    assert others != [group.events for group in FLEET[:40]]


def test_every_history_can_be() -> None:
    # Overlapping deployments: a static member comes back while another member already has its instance id.
    dense = FleetOptions(seed=5, groups=100_000, days=0.02, events=60)
    overlapping = [SynthGroup(dense, number) for number in (188, 203, *range(40))]
    assert {group.shape for group in overlapping[:2]} == {"static"}
    for group in FLEET + overlapping:
        present: dict[str, str | None] = {}
        seen: set[str] = set()
        last = OPTIONS.start - 1
        for number, step in enumerate(steps(group), 1):
            assert {event.seq for event in step} == {number}
            assert len({event.ts for event in step}) == 1
            assert last < step[0].ts < group.options.end
            last = step[0].ts
            for event in step:
                match event.kind:
                    case "join":
                        assert event.member_id not in seen, "a member id is used once"
                        seen.add(event.member_id)
                        if event.instance_id is not None:
                            present = {k: v for k, v in present.items() if v != event.instance_id}
                        present[event.member_id] = event.instance_id
                    case "leave":
                        del present[event.member_id]
                        assert event.topics == []
                    case _:
                        assert event.member_id in present


def test_topics_are_there_when_they_are_read() -> None:
    for group in FLEET:
        by_name = {topic.name: topic for topic in group.topics}
        for event in group.events:
            for name in event.topics:
                assert by_name[name].count_at(event.ts) > 0, (group.group_id, name, event.ts)


def test_the_fleet_has_all_shapes_in_about_their_parts() -> None:
    counts = Counter(group.shape for group in FLEET)
    assert set(counts) == set(SHAPES)
    for shape, part in SHAPES.items():
        assert 0.4 * part < counts[shape] / len(FLEET) < 1.8 * part, shape


def test_shapes_look_like_what_they_are_called() -> None:
    assert any(event.instance_id for group in of_shape("static") for event in group.events)
    assert not any(event.instance_id for group in FLEET if group.shape != "static" for event in group.events)
    for group in of_shape("join"):
        assert len(group.topics) >= 2
        assert len({topic.counts[0][1] for topic in group.topics}) == 1
    # Topics that match the expression are created and deleted.
    passing = [topic for group in of_shape("regex") for topic in group.topics]
    assert any(topic.counts[0][0] > OPTIONS.start for topic in passing)
    assert any(topic.counts[-1][1] == 0 for topic in passing)
    assert any(event.kind == "subscribe" for group in of_shape("regex") for event in group.events)
    for group in of_shape("crashloop"):
        after = [event for event in group.events if event.seq > 1]
        assert len({event.member_id.split("-")[1] for event in after}) == 1, "one place crashes"
    for group in of_shape("autoscale"):
        sizes = []
        size = 0
        for step in steps(group):
            size += sum({"join": 1, "leave": -1}[event.kind] for event in step)
            sizes.append(size)
        assert max(sizes) > min(sizes)


def test_sizes_are_heavy_tailed() -> None:
    sizes = sorted(len(steps(group)[0]) for group in FLEET)
    assert sizes[len(sizes) // 2] <= 6
    assert sizes[-1] >= 40
    partitions = sorted(sum(topic.count_at(OPTIONS.end) for topic in group.topics) for group in FLEET)
    assert partitions[len(partitions) // 2] < 100 < 300 < partitions[-1]


def test_partition_counts_grow_somewhere() -> None:
    grown = [topic for group in FLEET for topic in group.own_topics if len(topic.counts) > 1 and topic.counts[-1][1]]
    assert grown
    assert all(topic.counts[1][1] > topic.counts[0][1] for topic in grown if topic.counts[1][1])
    shared = {topic.name for group in FLEET for topic in group.topics} & {
        pool_topic(OPTIONS, number).name for number in range(pool_size(OPTIONS.groups))
    }
    assert len(shared) > 3


def test_offsets_are_in_order_and_lags_skewed() -> None:
    skews = []
    for group in FLEET:
        for found in group.offsets():
            committed = found.committed[found.committed >= 0]
            known = found.committed >= 0
            assert (found.begin >= 0).all()
            assert (found.begin <= found.end).all()
            assert (committed >= found.begin[known]).all()
            assert (committed <= found.end[known]).all()
            lags = (found.end - found.committed)[known]
            if len(lags) >= 12 and lags.sum():
                skews.append(lags.max() / lags.mean())
    assert sorted(skews)[len(skews) // 2] > 3


def test_what_was_observed_is_valid() -> None:
    for group in FLEET[:150]:
        by_name = {topic.name: topic for topic in group.topics}
        had: set[tuple[int, str, int]] = set()
        generations = {step[0].seq: step[0].ts for step in steps(group)}
        for row in group.observed():
            assert row.ts == generations[row.generation]
            for partition in row.partitions:
                assert 0 <= partition < by_name[row.topic].count_at(row.ts)
                assert (row.generation, row.topic, partition) not in had
                had.add((row.generation, row.topic, partition))
        assert had


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": -1}, "groups is -1; give an integer of 0 or more"),
        ({"seed": 1.5}, "seed is 1.5; give an integer of 0 or more"),
        ({"events": 0}, "events is 0; give an integer of 1 or more"),
        ({"days": float("nan")}, "days is nan; give a positive number of days"),
        ({"cluster": ""}, "cluster is ''; give the name of a cluster"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        FleetOptions(**options)  # type: ignore[arg-type]
    assert words in str(caught.value)
