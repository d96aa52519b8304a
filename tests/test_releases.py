"""The releases of the clients: which are tested, which the extras allow, and the warning for an import of others."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from kafka_assignors import DefaultPartitioner
from kafka_assignors.clients.common.batch_estimate import BatchEstimate, cannot_close
from kafka_assignors.clients.common.releases import TESTED, numbers, warn_if_newer
from kafka_assignors.errors import ClientReleaseWarning, IncompatibleClientError
from support import matrix
from support.features import FEATURES, has
from support.releases import CLIENTS, NEWEST, Environment, ends, environments

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MODULES = {"aiokafka": "aiokafka", "confluent-kafka": "confluent_kafka", "kafka-python": "kafka"}
# For each client: a module and a name in it that our room of the client needs, and a class of that room.
NEEDED = {
    "aiokafka": ("aiokafka.client", "AIOKafkaClient", "AIOKafkaConsumer"),
    "confluent-kafka": ("confluent_kafka", "TopicPartition", "Consumer"),
    "kafka-python": ("kafka.consumer.subscription_state", "TopicPartitionState", "KafkaConsumer"),
}


def test_the_environment_of_the_tests_has_the_newest_releases() -> None:
    assert all(has(feature) for feature in FEATURES)
    pinned = {Requirement(each).name: each for each in PROJECT["dependency-groups"]["test"] if isinstance(each, str)}
    for package, client in CLIENTS.items():
        assert pinned[package] == f"{package}=={client.releases[-1]}"


def test_what_is_tested_is_what_is_promised() -> None:
    assert set(matrix.locked()) == {
        f"{package}=={each}" for package, client in CLIENTS.items() for each in client.releases
    }
    extras = PROJECT["project"]["optional-dependencies"]
    for package, client in CLIENTS.items():
        assert TESTED[package] == (client.releases[0], client.releases[-1])
        (extra,) = [Requirement(each[0]) for each in extras.values() if Requirement(each[0]).name == package]
        lowest = next(each.version for each in extra.specifier if each.operator == ">=")
        assert numbers(client.releases[0])[: len(numbers(lowest))] == numbers(lowest)
        assert list(client.releases) == sorted(client.releases, key=numbers)
        for test in client.tests:
            assert (ROOT / "tests" / test).exists()


def test_the_table_of_the_page_is_that_of_the_results() -> None:
    results = json.loads(matrix.RESULTS.read_text())
    assert matrix.table(results) in matrix.PAGE.read_text()
    assert all(counts["failed"] == 0 and counts["passed"] > 0 for counts in results.values())


def test_each_python_has_the_newest_and_the_oldest_that_it_can_have() -> None:
    every = environments(list(matrix.PYTHONS))
    assert len(every) == len(set(every))
    assert set(ends(list(matrix.PYTHONS))) <= set(every)
    for package, client in CLIENTS.items():
        for python in matrix.PYTHONS:
            releases = [each.release for each in every if (each.package, each.python) == (package, python)]
            assert releases[-1] == client.releases[-1]
    assert not [each for each in every if each.release == "2.0.2" and each.python != "3.11"]


def test_only_what_make_test_runs_on_is_left_out_of_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    here = ".".join(map(str, sys.version_info[:2]))
    every = environments([here])
    assert {each for each in every if matrix.runs_here(each)} == {
        Environment(package, release, here) for package, release in NEWEST.items()
    }
    assert not any(matrix.runs_here(replace(each, python="3.99")) for each in every)
    monkeypatch.setattr(matrix, "version", {**NEWEST, "aiokafka": "0.13.0"}.__getitem__)
    assert [each for each in every if matrix.runs_here(each)] == [Environment("aiokafka", "0.13.0", here)]


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("package", CLIENTS)
def test_a_newer_release_works_with_one_warning(package: str) -> None:
    module, room = MODULES[package], CLIENTS[package].module
    program = f"""
import warnings, {module}
{module}.__version__ = "99.1"
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    from kafka_assignors.clients.{room} import {NEEDED[package][2]}, RebalanceDiffListener
for each in seen:
    print(each.category.__name__, each.message)
"""
    done = run(program)
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"ClientReleaseWarning {package} 99.1 is newer than the releases")
    assert "{} to {}".format(*TESTED[package]) in line


@pytest.mark.parametrize("package", CLIENTS)
def test_a_release_without_what_is_needed_is_one_error(package: str) -> None:
    module, (place, name, kind) = MODULES[package], NEEDED[package]
    program = f"""
import {module}, {place}
del {place}.{name}
from kafka_assignors.errors import IncompatibleClientError
try:
    from kafka_assignors.clients.{CLIENTS[package].module} import {kind}
except IncompatibleClientError as error:
    print(error)
"""
    done = run(program)
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip()
    assert said.startswith(f"{package} ")
    assert name in said
    assert said.endswith("install a release from {} to {}".format(*TESTED[package]))


@pytest.mark.parametrize("name", ["Consumer", "Producer", "AIOConsumer", "DeserializingConsumer", "OptionError"])
def test_without_the_client_every_name_says_what_to_install(name: str) -> None:
    program = f"""
import sys
sys.modules["confluent_kafka"] = None
from kafka_assignors.errors import MissingDependencyError
try:
    from kafka_assignors.clients.confluent import {name}
except MissingDependencyError as error:
    print(error)
"""
    done = run(program)
    assert done.stdout.strip().endswith("pip install kafka-assignors[confluent]"), done.stderr


def test_the_newest_release_and_older_ones_have_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for package, (oldest, newest) in TESTED.items():
            warn_if_newer(package, oldest)
            warn_if_newer(package, newest)
    with pytest.warns(ClientReleaseWarning, match=r"aiokafka 0\.14\.1 is newer"):
        warn_if_newer("aiokafka", "0.14.1")


class Cluster:
    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0, 1, 2, 3}

    available_partitions_for_topic = partitions_for_topic


def test_estimated_batches_make_a_sticky_partitioner_move_on() -> None:
    partitioner = DefaultPartitioner(seed=1)
    estimate = BatchEstimate(partitioner, 1_000)

    def choose(topic: str, *record: Any) -> int:
        key, value, serialized_key, serialized_value, cluster = record
        return partitioner.partition(topic, key, serialized_key, value, serialized_value, cluster)

    record = None, b"v" * 84, None, b"v" * 84, Cluster()
    places = [estimate.placed("t", choose("t", *record), record, choose) for _ in range(400)]
    assert set(places) == {0, 1, 2, 3}
    changes = sum(before != after for before, after in pairwise(places))
    # Ten records of a hundred bytes fill a batch.
    assert 30 <= changes <= 40


def test_a_producer_that_cannot_close_batches_warns_once() -> None:
    with pytest.warns(ClientReleaseWarning, match=r"no lock; until then records are partitioned all the same") as seen:
        cannot_close(IncompatibleClientError("no lock"))
    assert len(seen) == 1
