"""The simulator and the report of `make bench-partitioners`."""

from __future__ import annotations

import dataclasses
import json
import math
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from partitioners import __main__ as benchmarks
from partitioners import kip_480, live_kafka_python, live_librdkafka, simulated
from partitioners.accumulator import BATCH_OVERHEAD, RECORD_OVERHEAD, Cluster, Setting, run
from partitioners.baselines import RandomPartitioner
from partitioners.brokers import _Proxy
from partitioners.report import Bar, Measured, Options, Result, Scenario, medians, quantiles
from partitioners.worker import CONTENDERS, Load

from kafka_assignors import AdaptivePartitioner, DefaultPartitioner, Partitioner, RoundRobinPartitioner
from kafka_assignors.embedded import EmbeddedKafka

pytestmark = pytest.mark.needs("benches")

# Cases that docs/partitioners.md describes in sentences, not in rows of a table.
OTHERWISE_ON_THE_PAGE = {"kafka-python-1000", "kafka-python-keyed", "kafka-python-slow-broker"}
ROOT = Path(__file__).parent.parent
RECORD = 80 + RECORD_OVERHEAD


class Fixed(Partitioner):
    """Returns the partitions of a list in turn, and then its last one again and again. Records the calls."""

    def __init__(self, *partitions: int) -> None:
        self.partitions = list(partitions)
        self.told: list[int] = []

    def partition(self, *record: Any) -> int:
        return self.partitions.pop(0) if len(self.partitions) > 1 else self.partitions[0]

    def on_new_batch(self, topic: str, cluster: Any, prev_partition: int) -> None:
        self.told.append(prev_partition)


def latencies(partitioner: Partitioner, setting: Setting) -> list[float]:
    return [round(each, 9) for each in run(partitioner, setting).latencies]


# One partition, a broker that needs 100 ms for a request, and ten records per second for one second.
ONE = Setting(partitions=1, delays=(0.1,), rate=10, seconds=1)


def test_without_linger_each_record_goes_at_once() -> None:
    outcome = run(Fixed(0), replace(ONE, delays=(0.05,)))
    assert [round(each, 9) for each in outcome.latencies] == [0.05] * 10
    assert (outcome.batches, outcome.requests, outcome.records) == (10, 10, [10])


def test_a_batch_lingers_from_its_first_record_on() -> None:
    outcome = run(Fixed(0), replace(ONE, linger=1.0))
    assert [round(each, 9) for each in outcome.latencies] == [round(1.1 - number / 10, 9) for number in range(10)]
    assert (outcome.batches, outcome.requests) == (1, 1)


def test_a_broker_answers_one_request_after_the_other() -> None:
    """Four requests of 250 ms each, one every 100 ms. Each waits for the ones before it."""
    waits = [0.25, 0.4, 0.55, 0.7]
    assert latencies(Fixed(0), replace(ONE, seconds=0.4, delays=(0.25,))) == waits


def test_what_is_not_in_flight_is_batched() -> None:
    """One request at a time. The records of 0.1 and 0.2 are sent together at 0.25, the record of 0.3 at 0.5."""
    outcome = run(Fixed(0), replace(ONE, seconds=0.4, delays=(0.25,), in_flight=1))
    assert [round(each, 9) for each in outcome.latencies] == [0.25, 0.4, 0.3, 0.45]
    assert outcome.batches == 3


def test_a_batch_is_full_when_its_bytes_reach_the_size() -> None:
    setting = replace(ONE, linger=9.0, seconds=0.4, batch_size=BATCH_OVERHEAD + 2 * RECORD)
    assert latencies(Fixed(0), setting)[:2] == [0.2, 0.1]


def test_a_batch_is_not_full_because_the_next_record_would_not_fit() -> None:
    """With one byte more room, only the third record, at 0.2, does not fit and closes the batch."""
    setting = replace(ONE, linger=9.0, seconds=0.4, batch_size=BATCH_OVERHEAD + 2 * RECORD + 1)
    assert latencies(Fixed(0), setting)[:2] == [0.3, 0.2]


def test_the_batch_that_is_left_goes_at_once_and_the_other_lingers() -> None:
    setting = replace(
        ONE, partitions=2, delays=(0.1, 0.1), linger=9.0, seconds=0.4, batch_size=BATCH_OVERHEAD + 2 * RECORD + 1
    )
    # The partitioner is called twice for the first and the third record, since each of them would open a batch.
    partitioner = Fixed(0, 0, 0, 0, 1)
    assert latencies(partitioner, setting) == [0.3, 0.2, 9.1, 9.0]
    assert partitioner.told == [0, 0]


def test_a_batch_that_may_go_takes_its_neighbours_along() -> None:
    setting = replace(ONE, partitions=2, linger=1.0, seconds=0.3)
    outcome = run(Fixed(0, 0, 1, 1, 1), setting)
    assert [round(each, 9) for each in outcome.latencies] == [1.1, 1.0, 0.9]
    assert (outcome.batches, outcome.requests) == (2, 1)


@pytest.mark.parametrize("build", [RandomPartitioner, DefaultPartitioner, AdaptivePartitioner, None])
def test_every_record_is_answered_and_runs_repeat(build: Any) -> None:
    setting = Setting(partitions=5, delays=(0.003, 0.02, 0.001), rate=500, seconds=2, linger=0.01, batch_size=1_024)

    def once() -> Any:
        return run(RoundRobinPartitioner() if build is None else build(seed=3), setting)

    outcome = once()
    assert outcome == once()
    assert not any(map(math.isnan, outcome.latencies))
    assert (len(outcome.latencies), sum(outcome.records)) == (1_000, 1_000)
    assert outcome.requests <= outcome.batches <= 1_000


def test_adaptive_is_told_the_load_and_heeds_it() -> None:
    setting = Setting(partitions=3, delays=(0.02, 0.001, 0.001), rate=2_048, seconds=10, value_bytes=512)
    told, untold = (run(AdaptivePartitioner(seed=1), replace(setting, load=load)) for load in (True, False))
    assert told.records[0] < untold.records[0]
    sticky, random = (run(build(seed=1), setting) for build in (DefaultPartitioner, RandomPartitioner))
    assert sticky.percentile(99) > 10 * told.percentile(99)
    assert told.percentile(99) < 1.3 * random.percentile(99)


@pytest.mark.parametrize(
    "change", [{"partitions": 0}, {"rate": 0}, {"seconds": -1}, {"delays": ()}, {"delays": (-1,)}, {"linger": -1}]
)
def test_a_setting_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give"):
        replace(ONE, **change)


def test_random_draws_once_for_a_record() -> None:
    partitioner, cluster = RandomPartitioner(seed=1), Cluster(1_000)
    record = ("t", None, None, None, b"", cluster)
    first = partitioner.partition(*record)
    partitioner.on_new_batch("t", cluster, first)
    assert partitioner.partition(*record) == first
    assert partitioner.partition(*record) != first


# The report.


def measured(milliseconds: float, **more: Any) -> Measured:
    return Measured([milliseconds / 1_000] * 1_000, records=1_000, batches=10, requests=5, seconds=2, **more)


def test_quantiles_are_the_least_that_so_many_do_not_exceed() -> None:
    found = quantiles([float(each) for each in range(2_000, 0, -1)])
    assert (found[0], found[499], found[989], found[999]) == (2.0, 1_000.0, 1_980.0, 2_000.0)
    assert quantiles([5.0]) == [5.0] * 1_000
    with pytest.raises(ValueError, match="no record was answered"):
        quantiles([])


def test_medians_and_paired_ratios() -> None:
    result = Result({"a": [measured(1), measured(9), measured(4)], "b": [measured(2), measured(3), measured(8)]})
    assert medians(result.runs["a"])["p99_ms"] == 4
    assert result.ratio("p99_ms", "a", "b") == 0.5
    assert result.difference("p99_ms", "a", "b") == -1
    figures = measured(1, producer_cpu=1.0).figures()
    assert (figures["producer_cpu_percent"], figures["batches_per_1000"], figures["requests_per_second"]) == (
        50,
        10,
        2.5,
    )
    assert "broker_cpu_percent" not in figures


@pytest.mark.parametrize(
    ("bar", "holds", "bound"),
    [
        (Bar("", 0.5, at_most=0.5), True, "<= 0.5"),
        (Bar("", 0.51, at_most=0.5), False, "<= 0.5"),
        (Bar("", 1, at_most=1.1, at_least=0.9), True, ">= 0.9, <= 1.1"),
        (Bar("", 0.8, at_most=1.1, at_least=0.9), False, ">= 0.9, <= 1.1"),
        (Bar("", math.nan, at_most=1), False, "<= 1"),
    ],
)
def test_a_bar_holds_or_does_not(bar: Bar, holds: bool, bound: str) -> None:
    assert (bar.holds, bar.bound) == (holds, bound)


def test_figures_and_plots_of_one_scenario_leave_the_others_alone(tmp_path: Path, capsys: Any) -> None:
    arguments = ["--quick", "--out", str(tmp_path), "--only"]
    assert benchmarks.main([*arguments, "simulated-linger-1000-1"]) == 0
    assert benchmarks.main([*arguments, "simulated-linger-1000-4"]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert sorted(figures) == ["simulated-linger-1000-1", "simulated-linger-1000-4"]
    assert figures["simulated-linger-1000-4"]["bars"][0]["holds"] is True
    assert figures["simulated-linger-1000-4"]["figures"]["sticky"]["p99_ms"] > 0
    assert sorted(path.name for path in tmp_path.glob("*.png")) == [f"{name}.png" for name in sorted(figures)]
    assert "round robin" in capsys.readouterr().out


@pytest.mark.parametrize(("quick", "code"), [(False, 1), (True, 0)])
def test_a_bar_that_fails_is_the_exit_code(
    quick: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    seen: list[Options] = []

    def scenario(options: Options) -> Result:
        seen.append(options)
        return Result({"a": [measured(1)]}, bars=[Bar("a over b", 3, at_most=2)])

    monkeypatch.setattr(benchmarks, "scenarios", lambda: [Scenario("x", "X", scenario)])
    assert benchmarks.main(["--out", str(tmp_path), "--rounds", "5", *["--quick"] * quick]) == code
    assert "FAILS: x: a over b: 3 (<= 2)" in capsys.readouterr().out
    assert seen == [Options(quick=quick, rounds=1 if quick else 5)]


@pytest.mark.parametrize("arguments", [["--only", "nothing-*"], ["--rounds", "0"]])
def test_arguments_that_make_no_sense_are_refused(arguments: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as stopped:
        benchmarks.main(arguments)
    assert stopped.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_the_names_of_scenarios_are_unique(capsys: Any) -> None:
    assert benchmarks.main(["--list"]) == 0
    names = capsys.readouterr().out.split()
    assert len(names) == len(set(names)) > 4


# Scenarios on real brokers.


def test_the_proxy_holds_each_response_behind_the_one_before() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, _Proxy(0.05) as proxy:
        proxy.forward(f"127.0.0.1:{server.getsockname()[1]}")
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            broker, _ = server.accept()
            with broker:
                client.sendall(b"two requests")
                assert broker.recv(100) == b"two requests"
                sent = time.monotonic()
                broker.sendall(b"\0\0\0\3one\0\0\0\0")
                arrived = {}
                for frame in (b"\0\0\0\3one", b"\0\0\0\0"):
                    assert client.recv(len(frame), socket.MSG_WAITALL) == frame
                    arrived[frame] = time.monotonic() - sent
                first, second = arrived.values()
                assert first >= 0.05
                assert second >= 0.1
                broker.shutdown(socket.SHUT_RDWR)
                assert client.recv(1) == b"", "the end of one side is the end of the other"


@pytest.mark.parametrize("contender", sorted(CONTENDERS))
def test_a_producer_in_its_own_process_tells_what_became_of_its_records(contender: str) -> None:
    with EmbeddedKafka(topics={"t": 3}) as kafka:
        load = Load(contender, kafka.bootstrap_servers, ["t"], rate=500, seconds=0.2, burst=0.05, warm_up=0.1)
        measured = live_kafka_python.run([load, load], [])
        # The warm-up sends further records: 100, and one for each partition.
        assert sum(end - start for start, end in kafka.offsets("t")) == 2 * (100 + 50 + 3)
    assert (measured.records, measured.batches > 0, measured.requests > 0) == (200, True, True)
    assert measured.requests <= measured.batches <= 200
    assert len(measured.latencies) == 1_000
    assert measured.latencies == sorted(measured.latencies)
    assert measured.latencies[0] > 0


def test_a_producer_that_fails_is_an_error_and_leaves_no_process() -> None:
    load = Load("sticky", "127.0.0.1:1", ["t"], rate=500, seconds=0.2)
    with pytest.raises(KeyError, match="nobody"):
        CONTENDERS["nobody"](load)
    with pytest.raises(RuntimeError, match="ended while it warmed up"):
        live_kafka_python.run([dataclasses.replace(load, contender="nobody")], [])


def test_figures_and_page_are_those_of_the_simulator() -> None:
    """A run reproduces the committed figures, and the page has the same figures."""
    committed = json.loads((ROOT / "docs" / "figures" / "partitioners" / "figures.json").read_text())
    page = (ROOT / "docs" / "partitioners.md").read_text()
    (scenario,) = (each for each in simulated.SCENARIOS if each.name == "simulated-slow-broker")
    result = scenario.run(Options())
    assert all(bar.holds for bar in result.bars)
    for name, runs in result.runs.items():
        figures = medians(runs)
        assert committed[scenario.name]["figures"][name] == pytest.approx(figures, abs=0.001)
        assert f"| {name} | {figures['p50_ms']:,.1f} | {figures['p99_ms']:,.1f} |" in page
    for partitions in (1, 4, 16, 64):
        of_linger = committed[f"simulated-linger-1000-{partitions}"]["figures"]
        row = " | ".join(f"{of_linger[name]['p99_ms']:,.1f}" for name in ("round robin", "random", "sticky"))
        assert f"| {partitions} | {row} |" in page


def test_the_rows_of_kip_480_are_those_of_a_committed_run() -> None:
    """The run has all rounds and is within the bounds, and the page has its figures."""
    committed = json.loads((ROOT / "docs" / "figures" / "partitioners" / "figures.json").read_text())
    page = (ROOT / "docs" / "partitioners.md").read_text()
    for row in kip_480.ROWS:
        run = committed[row.scenario.name]
        assert (run["title"], run["quick"], run["rounds"]) == (row.scenario.title, False, 3)
        before, sticky = run["figures"][row.before], run["figures"][kip_480.STICKY]
        p50, p99, cpu = (
            f"{before[name]:,.1f} → {sticky[name]:,.1f}" for name in ("p50_ms", "p99_ms", "broker_cpu_percent")
        )
        ratio = run["bars"][0]["value"]
        least, most = row.p99
        assert least <= ratio <= most
        assert row.broker_cpu is None or run["bars"][1]["value"] <= row.broker_cpu
        assert f"| {row.case} | {p50} | {p99} | {ratio:.2f} | {cpu} | " in page


def test_the_other_cases_on_a_real_broker_are_those_of_a_committed_run() -> None:
    """The runs have all rounds and are within the bounds. The page has p99 of each case with three contenders."""
    committed = json.loads((ROOT / "docs" / "figures" / "partitioners" / "figures.json").read_text())
    page = (ROOT / "docs" / "partitioners.md").read_text()
    for scenario in live_kafka_python.SCENARIOS:
        run = committed[scenario.name]
        assert (run["title"], run["quick"], run["rounds"]) == (scenario.title, False, 3)
        assert all(bar["holds"] for bar in run["bars"])
        if scenario.name not in OTHERWISE_ON_THE_PAGE:
            p99 = (f"{run['figures'][name]['p99_ms']:,.1f}" for name in live_kafka_python.EVERYBODY)
            assert f" | {' | '.join(p99)} | {run['bars'][0]['value']:.2f} | " in page


def test_the_producers_beside_librdkafka_are_those_of_a_committed_run() -> None:
    """The runs have all rounds and are within the bounds, and the page has their figures."""
    committed = json.loads((ROOT / "docs" / "figures" / "partitioners" / "figures.json").read_text())
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for load, scenario in zip(live_librdkafka.LOADS, live_librdkafka.SCENARIOS, strict=True):
        run = committed[scenario.name]
        assert (run["title"], run["quick"], run["rounds"]) == (scenario.title, False, 3)
        assert all(bar["holds"] for bar in run["bars"])
        contenders = [run["figures"][name] for name in (live_librdkafka.NATIVE, live_librdkafka.OURS)]
        cells = [f"{load.linger_ms:,}, {load.rate:,}, {load.batch_size or 1_000_000:,}{' *' * load.size_ends_batches}"]
        for figure, bar in zip(("batches_per_1000", "p50_ms"), run["bars"], strict=True):
            cells += [f"{each[figure]:,.1f}" for each in contenders] + [f"{bar['value']:.2f}"]
        assert f"| {' | '.join(cells)} |\n" in page
