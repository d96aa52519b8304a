"""The lag-based plug-ins, called by the clients' own coordinators: which source is read, when, and on which thread."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator

from kafka_assignors import OptionError, StateError
from kafka_assignors.clients import aiokafka, kafka_python
from support.commanded_members import AiokafkaMember, Group, KafkaPythonMember, Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafka_assignors.lag import Lags

Build = Callable[..., Any]


class Told:
    """A source that can be made to wait. It keeps the arguments of its calls."""

    def __init__(self, *lags: int) -> None:
        self.known = list(lags)
        self.asked: list[tuple[str, ...]] = []
        self.threads: set[threading.Thread] = set()
        self.come = threading.Event()
        self.come.set()

    def lags(self, topics: Iterable[str], group_id: str) -> Lags:
        assert group_id == "g"
        self.asked.append(tuple(topics))
        self.threads.add(threading.current_thread())
        answer = {topic: list(self.known) for topic in topics}
        assert self.come.wait(60)
        return answer


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


@pytest.fixture
def aio(stage: Stage) -> Build:
    def build(name: str, assignor: Any, topics: dict[str, int] | None = None, **more: Any) -> AiokafkaMember:
        made: AiokafkaMember = stage.add(AiokafkaMember, name, [assignor], topics or {"t": 4}, attach=True, **more)
        return made

    return build


@pytest.fixture
def python(stage: Stage) -> Build:
    def build(name: str, strategy: Any, topics: dict[str, int] | None = None) -> KafkaPythonMember:
        made: KafkaPythonMember = stage.add(KafkaPythonMember, name, [strategy], topics or {"t": 4})
        return made

    return build


def lag_by_member(member: Any) -> dict[str, int] | None:
    found: dict[str, int] | None = member.assignor.last_report.plan.lag_by_member
    return found


def test_the_event_loop_runs_while_the_lags_are_awaited(aio: Build) -> None:
    """The source answers only if the loop runs. A plug-in that blocked the loop would wait until the deadline."""
    source = Told(5, 0, 7, 1)
    source.come.clear()
    member = aio("a", aiokafka.LagBasedAssignor(lags=source))
    member.do(lambda: member.loop.call_later(0.05, source.come.set))
    Group().rebalance(member)
    assert lag_by_member(member) == {"a": 13}
    assert source.asked == [("t",)]
    assert threading.current_thread() not in source.threads


def test_lags_are_asked_for_before_the_join(aio: Build) -> None:
    source = Told(5, 0, 7, 1)
    member = aio("a", aiokafka.LagBasedAssignor(lags=source))
    member.metadata()
    assert source.asked == [("t",)]


def test_only_a_member_that_may_lead_asks(aio: Build) -> None:
    sources = Told(1, 1, 1, 1), Told(1, 1, 1, 1)
    a, b = (aio(name, aiokafka.LagBasedAssignor(lags=source)) for name, source in zip("ab", sources, strict=True))
    group = Group()
    group.rebalance(a, b)
    assert [len(source.asked) for source in sources] == [1, 1], "a newcomer may lead"
    group.rebalance(a, b)
    assert [len(source.asked) for source in sources] == [2, 1]
    # When `b` leads later, the lags that it read at its join do not count.
    sources[1].known = [9, 9, 9, 9]
    group.rebalance(b, a)
    assert [len(source.asked) for source in sources] == [3, 2]
    assert lag_by_member(b) == {"a": 18, "b": 18}


def test_a_leader_asks_for_the_topics_of_others_too(aio: Build) -> None:
    source, topics = Told(3, 4), {"mine": 2, "other": 2}
    a = aio("a", aiokafka.LagBasedAssignor(lags=source), topics, subscribed=["mine"])
    b = aio("b", aiokafka.LagBasedAssignor(lags=Told(0, 0)), topics, subscribed=["other"])
    group = Group()
    group.rebalance(a, b)
    assert source.asked == [("mine",), ("mine", "other")], "it learnt of the others from their metadata"
    assert lag_by_member(a) == {"a": 7, "b": 7}
    group.rebalance(a, b)
    assert source.asked[2:] == [("mine", "other")]


def test_a_join_that_is_tried_again_asks_once(aio: Build) -> None:
    source = Told(5, 0, 7, 1)
    source.come.clear()
    member = aio("a", aiokafka.LagBasedAssignor(lags=source))
    for _ in range(5):
        member.metadata()
    assert source.asked == [("t",)]
    source.come.set()
    Group().rebalance(member)
    assert lag_by_member(member) == {"a": 13}


@pytest.mark.parametrize("in_time", [True, False])
def test_a_version_of_aiokafka_that_cannot_wait(
    aio: Build, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, in_time: bool
) -> None:
    """The lags count if they arrived while the group was joining."""
    plain = GroupCoordinator._perform_assignment
    assert inspect.iscoroutinefunction(plain)
    monkeypatch.setattr(GroupCoordinator, "_perform_assignment", lambda self, response: plain(self, response))
    source = Told(5, 0, 7, 1)
    if not in_time:
        source.come.clear()
    member = aio("a", aiokafka.LagBasedAssignor(lags=source))
    sent = member.metadata()
    if in_time:
        member.assignor._inquiry.answer(60)
    member.joined(1, "a", [("a", None, sent)])
    member.complete(member.syncing().assignments["a"])
    source.come.set()
    assert len(member.held()) == 4
    assert lag_by_member(member) == ({"a": 13} if in_time else None)
    late = [each for each in caplog.messages if "had not answered when the group had joined" in each]
    assert len(late) == (0 if in_time else 1)


def test_a_late_answer_does_not_count_for_the_next_rebalance(aio: Build) -> None:
    source = Told(5, 0, 7, 1)
    source.come.clear()
    member, group = aio("a", aiokafka.LagBasedAssignor(lags=source, deadline=0.05)), Group()
    group.rebalance(member)
    assert lag_by_member(member) is None
    source.known = [1, 1, 1, 1]
    source.come.set()
    for thread in source.threads:
        thread.join()
    member.assignor._options = member.assignor._options.__class__(lags=source, deadline=60.0)
    group.rebalance(member)
    assert lag_by_member(member) == {"a": 4}


def test_kafka_python_asks_while_it_plans(python: Build) -> None:
    """The source runs on a thread of its own: on the client's thread it could read no response."""
    source, threads = Told(5, 0, 7, 1), []
    strategy = partial(
        kafka_python.LagBasedAssignor,
        lags=source,
        on_rebalance=lambda report: threads.append(threading.current_thread()),
    )
    a, b = python("a", strategy), python("b", strategy)
    Group().rebalance(a, b)
    # A set, since a busy machine may need a second attempt.
    assert set(source.asked) == {("t",)}
    assert source.threads.isdisjoint(threads)
    assert lag_by_member(a) == {"a": 7, "b": 6}
    assert a.held() == {("t", 2), ("t", 1)}


def test_what_was_given_is_claimed_next(aio: Build, python: Build) -> None:
    """Both plug-ins write the history as `sticky` does. A leader on one client reads claims of the other client."""
    options: dict[str, Any] = {"lags": {"t": [50, 40, 30, 20]}, "keep": "owners", "threshold": 1_000}
    a = python("a", kafka_python.LagBasedAssignor(**options))
    b = aio("b", aiokafka.LagBasedAssignor(**options))
    group = Group()
    group.rebalance(a, b)
    before = a.held(), b.held()
    group.rebalance(b, a)
    assert (a.held(), b.held()) == before
    assert b.assignor.last_report.plan.moved == 0
    assert (a.assignor.state.generation, b.assignor.state.generation) == (2, 2)


def test_a_generation_that_aiokafka_tells(aio: Build) -> None:
    """aiokafka's pull request #1185 gives the generation to every assignor."""
    member = aio("a", aiokafka.LagBasedAssignor(lags={"t": [1, 1, 1, 1]}))
    Group().rebalance(member)
    member.assignor.on_generation_assignment(8)
    assert member.assignor.state.generation == 8


def test_without_a_consumer_nothing_can_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """As on an interpreter without frames, before `attach`."""
    told = SimpleNamespace(
        version=1, topics=["t"], user_data=None, owned_partitions=None, generation_id=-1, rack_id=None
    )
    members = [SimpleNamespace(member_id="a", group_instance_id=None, metadata=told)]
    cluster = SimpleNamespace(partitions_for_topic=lambda topic: {0, 1})
    assert set(kafka_python.LagBasedAssignor().assign(cluster, members)) == {"a"}
    assert "the consumer could not be found; call attach(consumer), or give lags=" in caplog.text


@pytest.mark.parametrize("module", [aiokafka, kafka_python], ids=["aiokafka", "kafka-python"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scope": "all"}, "scope is 'all'; give one of 'topic', 'group'"),
        ({"max_skew": -1}, "max_skew is -1; give an integer"),
        ({"keep": "all"}, "keep is 'all'; give one of 'none', 'owners'"),
        ({"threshold": 5}, "threshold is 5, but keep is 'none'"),
        ({"deadline": float("inf")}, "deadline is inf; give a positive number of seconds"),
        ({"lags": 7}, "lags is of type int; give a mapping of topic to lags, a LagSource, or a function"),
    ],
)
def test_unknown_options(module: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        module.LagBasedAssignor(**options)


@pytest.mark.parametrize(
    ("lags", "reason"),
    [
        ([1, 2, 3], 'lags["t"] has 3 lags, but the topic 4 partitions; give one per partition'),
        ([1, 2, 3, 4, 5], 'lags["t"] has 5 lags, but the topic 4 partitions; give one per partition'),
        ([1, 2, 3, -1], 'lags["t"][3] is -1; a lag cannot be negative'),
        ([1, 2, 3, float("nan")], 'lags["t"][3] is of type float'),
        (None, 'lags has no topic "t"; give its 4 lags, one per partition'),
    ],
)
@pytest.mark.parametrize("given", ["mapping", "function"])
def test_lags_that_do_not_fit(
    aio: Build, python: Build, lags: Any, reason: str, given: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The rebalance completes, and the leader logs the error."""
    known: dict[str, Any] = {} if lags is None else {"t": lags}
    source: Any = known if given == "mapping" else lambda topics, group_id: known
    for member in (
        aio("a", aiokafka.LagBasedAssignor(lags=source)),
        python("b", kafka_python.LagBasedAssignor(lags=source)),
    ):
        caplog.clear()
        Group().rebalance(member)
        assert len(member.held()) == 4
        assert lag_by_member(member) is None
        (warning,) = [message for message in caplog.messages if "are not known" in message]
        assert reason in warning


def test_one_instance_in_two_consumers_is_refused(python: Build) -> None:
    shared = kafka_python.LagBasedAssignor()
    python("a", shared)
    with pytest.raises(StateError, match=r"one .*LagBasedAssignor instance was given to two consumers"):
        python("b", shared)
