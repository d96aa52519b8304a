"""The groups of one record that cost a leader or a verification the most time, as the example `worst_cases` found them.

The seconds are absolute: they hold on a machine that is not much slower than that of docs/benchmarks.md.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import Ratio, check_bounds, rounds_of

LEADER_SECONDS, VERIFICATION_SECONDS = 2.0, 5.0

GROUPS = {
    "sticky, racks first: 11,629 members on 8 of 14,181 topics, 14 racks": (
        "strategy=0,topics=14181,partitions=24,sizes=2,members=17119,subscription=2,width=8,racks=14,replicas=4,claims=4,owners=23,"
        "lags=0,seed=16743"
    ),
    "lag of the group, owners kept: 77 members on all but some of 1,122 topics": (
        "strategy=15,topics=26454,partitions=8094,sizes=1,members=77,subscription=1,width=198,racks=30,replicas=2,claims=1,owners=7,"
        "lags=0,seed=49"
    ),
    "sticky, racks first: 8,551 members on the first topics of 37, 26 racks": (
        "strategy=0,topics=614,partitions=5375,sizes=0,members=8551,subscription=4,width=197,racks=26,replicas=4,claims=4,owners=36,"
        "lags=2,seed=0"
    ),
    "sticky yet fair, racks last: 11,910 members on 9 of 7,088 topics, 10 racks": (
        "strategy=4,topics=7088,partitions=24,sizes=4,members=17118,subscription=2,width=9,racks=10,replicas=2,claims=6,owners=45,"
        "lags=1,seed=13955"
    ),
    "cooperative fair, racks last: 4,761 members on 30 of 4,926 topics, 23 racks": (
        "strategy=11,topics=4926,partitions=10,sizes=0,members=4898,subscription=3,width=30,racks=23,replicas=2,claims=4,owners=98,"
        "lags=3,seed=824433"
    ),
    "lag of a topic, owners kept: 8,551 members on the first topics of 37, 26 racks": (
        "strategy=16,topics=614,partitions=5375,sizes=0,members=8551,subscription=4,width=197,racks=26,replicas=4,claims=4,owners=36,"
        "lags=2,seed=0"
    ),
    "lag of the group, owners kept: 17,688 members on one of 14 topics each, 16 racks": (
        "strategy=15,topics=72,partitions=31446,sizes=2,members=17688,subscription=5,width=63,racks=16,replicas=2,claims=3,owners=5,"
        "lags=1,seed=7"
    ),
    "lag of the group, owners kept: 8,843 members on some of 12 topics, 15 racks": (
        "strategy=15,topics=74,partitions=31446,sizes=4,members=8843,subscription=2,width=62,racks=15,replicas=2,claims=2,owners=5,"
        "lags=1,seed=7"
    ),
    "lag of the group, owners kept, skew of 2: 1,705 members on all but some of 129 topics": (
        "strategy=17,topics=544,partitions=3108,sizes=2,members=4366,subscription=1,width=19,racks=17,replicas=2,claims=6,owners=1,"
        "lags=1,seed=979928"
    ),
    "lag of the group, owners kept, skew of 2: 31 members on all but some of 50 topics": (
        "strategy=17,topics=563,partitions=7343,sizes=2,members=31,subscription=1,width=5,racks=3,replicas=2,claims=3,owners=24,"
        "lags=2,seed=4221"
    ),
    "lag of the group, owners kept, by number: 126 members on all but some of 2,990 topics": (
        "strategy=19,topics=18465,partitions=5838,sizes=1,members=131,subscription=1,width=2454,racks=20,replicas=4,claims=5,"
        "owners=1,lags=2,seed=144282,capacities=2"
    ),
    "range: 880 members on the first topics of 466, 29 racks": (
        "strategy=12,topics=892,partitions=864,sizes=2,members=3870,subscription=4,width=1429,racks=29,replicas=4,claims=3,"
        "owners=14,lags=0,seed=1130,capacities=1"
    ),
    "round robin: 52 members on all but some of 158 topics, 28 racks": (
        "strategy=13,topics=933,partitions=1262,sizes=0,members=52,subscription=1,width=23,racks=28,replicas=3,claims=5,owners=47,"
        "lags=2,seed=4737"
    ),
    "under restrictions, 100 sets: 9,095 members on the first topics of 39": (
        "strategy=38,topics=39,partitions=237,sizes=0,members=13435,subscription=4,width=58,racks=25,replicas=1,claims=1,owners=100,"
        "lags=3,seed=4230,capacities=0"
    ),
}

check_bounds("worst-leader", GROUPS)
check_bounds("worst-verification", GROUPS)

ROOT = Path(__file__).parent.parent
COMMAND = ["cargo", "run", "--quiet", "--release", "--package", "kafka-assignors-core", "--example", "worst_cases"]
SAID = re.compile(r"plan ([\d.]+) s, verify ([\d.]+) s, (.*)")


@pytest.mark.parametrize("name", GROUPS)
def test_no_group_of_a_record_takes_a_leader_long(name: str, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}

    def run() -> str:
        command = [*COMMAND, "--", GROUPS[name]]
        return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

    said = SAID.match(rounds_of(benchmark, run))
    assert said is not None
    planned, verified, note = float(said[1]), float(said[2]), said[3]
    assert "NOT VALID" not in note
    ratio.at_most("worst-leader", name, planned, LEADER_SECONDS, note)
    ratio.at_most("worst-verification", name, verified, VERIFICATION_SECONDS, note)
