"""The advertising join runs with its documented command and finds all matches. Its checks find errors."""

import os
import random
import subprocess
import sys
from collections import deque
from collections.abc import Callable

import pytest

from stream_join.ads import CLICKS, IMPRESSIONS, Record, campaign
from stream_join.books import Account, Row, wrong
from stream_join.events import Changed, Read, dump, load
from stream_join.joiner import Match, NumberJoin


def share(member: str, generation: int, held: list[int], gained: int, continuous: bool = True) -> Changed:
    return Changed(member, generation, continuous, held, gained, 0, 50 * gained)


def account() -> Account:
    """A and B own three numbers each. The account counts from then on."""
    books = Account("range", 6, {name: Row(name) for name in "AB"})
    books.take(load(dump(share("A", 1, [0, 1, 2], 6))))
    assert not books.settled
    books.take(load(dump(share("B", 1, [3, 4, 5], 6))))
    assert books.settled
    books.counting = True
    return books


def test_only_what_came_counts() -> None:
    books = account()
    books.gone("B", "crashed")
    assert not books.settled
    books.take(share("A", 2, [0, 1, 2, 3, 4, 5], 6))
    # An event of a dead member may arrive after its death.
    books.take(share("B", 1, [3, 4, 5], 6))
    assert books.settled
    assert (books.figures, books.faults()) == ((6, 6, 300), [])


def test_a_member_that_was_away_has_everything_come_anew() -> None:
    books = account()
    books.take(share("A", 3, [0, 1, 2], 6, continuous=False))
    assert (books.figures, books.faults()) == ((6, 6, 300), [])


@pytest.mark.parametrize("gained", [4, 12], ids=["too little", "too much"])
def test_what_is_rebuilt_must_be_what_came(gained: int) -> None:
    books = account()
    books.gone("B", "left")
    books.take(share("A", 2, [0, 1, 2, 3, 4, 5], gained))
    assert books.faults() == [f"range: 6 partitions came to members and {gained} were rebuilt"]


def test_drained_is_what_somebody_has_committed() -> None:
    books = account()
    ends = {(IMPRESSIONS, 0): 5, (CLICKS, 0): 0}
    books.take(load(dump(Read("A", [(IMPRESSIONS, 0, 4)]))))
    assert not books.drained(ends)
    books.take(Read("B", [(IMPRESSIONS, 0, 5)]))
    # A commit that arrives late does not move a position back.
    books.take(Read("A", [(IMPRESSIONS, 0, 3)]))
    assert books.drained(ends)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda results: results.pop(), "range: 1 clicks are missing, c2 for one"),
        (lambda results: results.append(("c1", "i1")), "range: 1 clicks were matched more than once, c1 for one"),
        (lambda results: results.append(("c3", "i1")), "range: 1 clicks must not have been matched, c3 for one"),
        (lambda results: results.append(("c2", "i1")), "range: 1 clicks have the wrong impression, c2 for one"),
    ],
    ids=["missing", "twice", "forged", "wrong"],
)
def test_every_wrong_result_is_seen(spoil: Callable[[list[tuple[str, str]]], object], fault: str) -> None:
    results = [("c1", "i1"), ("c2", "i2")]
    matches = dict(results)
    assert wrong("range", results, matches) == []
    spoil(results)
    assert fault in wrong("range", results, matches)


def test_a_campaign_has_clicks_of_all_kinds_and_comes_from_its_seed() -> None:
    one = campaign(1, 1000, 5)
    assert one == campaign(1, 1000, 5) != campaign(2, 1000, 5)
    records = [record for batch in one.batches for record in batch]
    shown = {record.key: record.timestamp for record in records if record.topic == IMPRESSIONS}
    clicks = [record for record in records if record.topic == CLICKS]
    late = {r.value.decode() for r in clicks if r.key in shown and r.timestamp - shown[r.key] > one.window_ms}
    forged = {r.value.decode() for r in clicks if r.key not in shown}
    assert late
    assert forged
    assert one.matches.keys() == {r.value.decode() for r in clicks} - late - forged
    assert [r.timestamp for r in records] == sorted(r.timestamp for r in records)


class Log:
    """One number of both topics, with its results. Owners take turns."""

    def __init__(self, records: list[Record], window_ms: int, seed: int) -> None:
        self.topics = {topic: [r for r in records if r.topic == topic] for topic in (IMPRESSIONS, CLICKS)}
        self.window_ms = window_ms
        self.committed = {IMPRESSIONS: 0, CLICKS: 0}
        self.times = {IMPRESSIONS: 0, CLICKS: 0}
        self.results: list[Match] = []
        self.chance = random.Random(seed)

    def owner(self) -> NumberJoin:
        """A new owner. It reads again exactly the records that it must."""
        join = NumberJoin(self.window_ms)
        join.times |= self.times
        for match in self.results:
            if match.timestamp >= min(self.times.values()):
                join.emitted(match.click, match.timestamp)
        for topic, records in self.topics.items():
            start = join.start_of(topic, self.times)
            for record in records[: self.committed[topic]]:
                if record.timestamp >= start:
                    join.take(topic, record.key.decode(), record.value.decode(), record.timestamp)
        return join

    def work(self) -> None:
        """Owners come and go until everything is committed. Some end between their results and their commit."""
        while any(self.committed[topic] < len(records) for topic, records in self.topics.items()):
            join = self.owner()
            for _ in range(self.chance.randrange(1, 4)):
                reached = dict(self.committed)
                for topic in self.chance.sample(list(self.topics), 2):
                    some = self.topics[topic][reached[topic] :][: self.chance.randrange(60)]
                    reached[topic] += len(some)
                    for record in some:
                        self.results += join.take(topic, record.key.decode(), record.value.decode(), record.timestamp)
                if self.chance.random() < 0.3:
                    break
                self.committed, self.times = reached, dict(join.times)
                join.committed()


@pytest.mark.parametrize("seed", range(20))
def test_any_interleaving_and_any_owners_find_the_same(seed: int) -> None:
    data = campaign(seed, 400, 5)
    log = Log([record for batch in data.batches for record in batch], data.window_ms, seed)
    log.work()
    found = [(match.click, match.impression) for match in log.results]
    assert wrong("any", found, data.matches) == []


def test_a_join_forgets_what_can_match_no_more() -> None:
    join = NumberJoin(window_ms=10)
    for time in range(1000):
        join.take(IMPRESSIONS, f"i{time}", "ad", time)
        join.take(CLICKS, f"unknown{time}", f"c{time}", time)
        join.committed()
    held = [each for each in vars(join).values() if isinstance(each, (dict, deque))]
    assert held
    assert max(map(len, held)) <= 12


@pytest.mark.needs("time")
@pytest.mark.first
def test_the_example_ends_by_itself_and_well() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stream_join", "--partitions=6", "--members=3", "--impressions=1500"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=os.environ | {"PYTHONPATH": os.path.join(os.path.dirname(__file__), "..", "examples")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in done.stdout.splitlines() if "│" in line]
    figures = {row[0]: list(map(int, row[1:])) for row in rows}
    assert figures.keys() == {"range", "sticky-join", "cooperative-sticky-join"}
    matches = len(campaign(315, 1500, 5).matches)
    for strategy, (came, rebuilt, records, results, mistakes) in figures.items():
        assert records > 0
        assert (results, mistakes) == (matches, 0)
        if strategy != "range":
            # The example itself checks this, except for range.
            assert came == rebuilt
            # At least two numbers of two topics move at each of four events, but fewer than with range.
            assert 16 <= rebuilt < figures["range"][1]
    assert "nothing wrong" in done.stdout.splitlines()[-1]
    assert "\x1b" not in done.stdout


def test_bad_options_are_refused_in_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stream_join", "--partitions=3", "--members=3"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | {"PYTHONPATH": os.path.join(os.path.dirname(__file__), "..", "examples")},
    )
    assert done.returncode == 2
    assert "more partitions than members" in done.stderr
