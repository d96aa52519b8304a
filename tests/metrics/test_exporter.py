"""The exporter without a broker: its figures of known groups, its page when readings fail, and its server."""

from __future__ import annotations

import dataclasses
import gzip
import http.client
import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka_assignors.cluster import Look, Missing
from kafka_assignors.errors import ClusterError, KafkaAssignorsError, NetworkError, OptionError
from kafka_assignors.metrics.endpoint import Endpoint, address_of
from kafka_assignors.metrics.exporter import Exporter, Page, Settings, wanted_groups
from kafka_assignors.metrics.fleet_families import GROUP_GAUGES, label
from kafka_assignors.planner.fleet import VERDICTS, fleet
from support.fleets import cluster, of_broker, troubled
from support.logs import records_of_the_package

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1"}


class Scripted:
    """An exporter that makes these readings, or fails with these errors, one each minute."""

    def __init__(self, *looks: Look | KafkaAssignorsError, **settings: Any) -> None:
        self._looks = list(looks)
        self.now = 1_000.0
        self.exporter = Exporter(
            Settings(NOBODY, **{"interval": 60.0, **settings}), read=self._read, clock=lambda: self.now
        )

    def _read(self) -> Look:
        look = self._looks.pop(0)
        if isinstance(look, KafkaAssignorsError):
            raise look
        return look

    def look(self, times: int = 1) -> dict[tuple[str, ...], float]:
        """Makes readings; returns the samples by name and values of the labels, in alphabetical order of the labels."""
        for _ in range(times):
            self.exporter.look()
            self.now += 60.0
        return samples(self.exporter.page)


def samples(page: Page) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(page.plain.decode()):
        for sample in family.samples:
            key = (sample.name.removeprefix("kafka_assignors_"), *(text for _, text in sorted(sample.labels.items())))
            assert key not in found, "Prometheus refuses a page with the same series twice"
            found[key] = sample.value
    return found


def two() -> list[Look]:
    return [Look(troubled()), Look(troubled(later=True))]


def test_the_figures_are_those_of_the_fleet() -> None:
    found = Scripted(*two()).look(2)
    described = fleet(Look(troubled(later=True)), troubled(), seconds=60.0)
    assert len(described.groups) == 10
    for group in described.groups:
        for suffix, _, value_of in GROUP_GAUGES:
            assert found.get((f"group_{suffix}", group.group_id)) == value_of(group), (suffix, group.group_id)
        assert found["group_verdict", group.group_id, group.verdict] == 1
        rules = {finding.rule for finding in group.warnings}
        assert {key[2] for key in found if key[:2] == ("group_broken_rule", group.group_id)} == rules
    assert {key[1]: value for key, value in found.items() if key[0] == "groups"} == {
        verdict: described.verdicts.get(verdict, 0) for verdict in VERDICTS
    }
    # One group of each protocol.
    assert found["group_info", "new-protocol", "moved", "consumer", "Stable", "uniform"] == 1
    assert found["group_info", "costly", "ready", "classic", "Stable", "range"] == 1
    assert (found["group_lag_records", "behind"], found["group_lag_seconds", "behind"]) == (24_400, 122.0)
    assert found["up",] == 1


def test_what_takes_two_looks_is_absent_after_the_first() -> None:
    found = Scripted(*two()).look()
    assert {
        key for key in found if key[0] in ("group_stuck_partitions", "group_lag_growth_records_per_second")
    } == set()
    assert found["group_lag_records", "dead"] == 400


def test_generations_are_counted_from_look_to_look_and_leave_the_hour() -> None:
    def epoch(number: int) -> Look:
        group = of_broker({"a": {"t": [0]}}, {"t": [5]}, epoch=number)
        return Look(cluster({"t": [5]}, {"g": group}))

    scripted = Scripted(epoch(7), epoch(9), epoch(9), *[epoch(10)] * 70)
    assert scripted.look()["group_generations_per_hour", "g"] == 0
    found = scripted.look(2)
    assert (found["group_generations_per_hour", "g"], found["group_rebalances_total", "g"]) == (2, 2)
    assert scripted.look()["group_generations_per_hour", "g"] == 3
    found = scripted.look(69)
    assert (found["group_generations_per_hour", "g"], found["group_rebalances_total", "g"]) == (0, 3)


def test_a_group_that_goes_is_forgotten_after_an_hour() -> None:
    gone = Look(cluster({}, {}))
    scripted = Scripted(*two(), *[gone] * 70)
    scripted.look(3)
    assert scripted.exporter._generations._totals
    assert {key for key in scripted.look(69) if key[0] == "group_members"} == set()
    assert scripted.exporter._generations._totals == {}


def test_a_look_that_fails_keeps_the_figures_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    down = NetworkError("no broker can be reached")
    scripted = Scripted(*two(), *[down] * 5, Look(troubled(later=True)))
    with caplog.at_level(logging.WARNING, "kafka_assignors"):
        scripted.look(2)
        found = scripted.look()
        assert (found["up",], found["failed_looks_total",], found["looks_total",]) == (0, 1, 3)
        assert found["group_lag_records", "dead"] == 400
        found = scripted.look(4)
        assert {key[0] for key in found} == {"up", "failed_looks_total", "looks_total", "look_seconds"}
        found = scripted.look()
        assert (found["up",], found["group_lag_records", "dead"]) == (1, 400)
    assert [record.getMessage() for record in records_of_the_package(caplog)] == [
        "no broker can be reached",
        "the whole cluster can be read again",
    ]


def test_a_partial_answer_says_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    refused = Missing("group", "secret", "it cannot be described: GROUP_AUTHORIZATION_FAILED")
    parts = (refused, Missing("broker", "10.0.0.2:9092", "no route"), Missing("gone", "late", "it was deleted"))
    scripted = Scripted(*[dataclasses.replace(Look(troubled()), missing=parts)] * 2)
    with caplog.at_level(logging.WARNING, "kafka_assignors"):
        found = scripted.look(2)
    kinds = {key[1]: value for key, value in found.items() if key[0] == "missing"}
    assert kinds == {"broker": 1, "group": 1, "gone": 1, "offsets": 0, "topic": 0}
    assert (found["up",], found["group_lag_records", "dead"]) == (1, 400)
    (said,) = [record.getMessage() for record in records_of_the_package(caplog)]
    assert "GROUP_AUTHORIZATION_FAILED" in said
    assert "late" not in said


def test_another_cluster_at_the_address_begins_anew() -> None:
    other = dataclasses.replace(troubled(), cluster="another")
    found = Scripted(*two(), Look(other), Look(other)).look(3)
    assert found["up",] == 0
    assert ("group_lag_records", "dead") not in found


def test_there_are_series_of_the_worst_groups_only() -> None:
    found = Scripted(*two(), most_groups=3).look(2)
    assert {key[1] for key in found if key[0] == "group_members"} == {"dead", "stuck", "unread"}
    assert found["groups_without_series",] == 7
    assert sum(value for key, value in found.items() if key[0] == "groups") == 10


def test_every_group_has_a_bounded_number_of_series() -> None:
    found = Scripted(*two()).look(2)
    of_group: dict[str, int] = {}
    for key in found:
        if key[0].startswith("group_"):
            of_group[key[1]] = of_group.get(key[1], 0) + 1
    assert max(of_group.values()) <= len(GROUP_GAUGES) + 2 + 2 + 10


HOSTILE = ['a"b', "a\\b", "a\nb", "</script>", "\u202eevil", "x" * 5_000, "x" * 5_001, "", "\x00\x1b[31m"]


def test_names_of_strangers_change_nothing_but_their_own_labels() -> None:
    groups = {name: of_broker({"a": {"t": [0]}}, {"t": [5]}) for name in HOSTILE}
    found = Scripted(Look(cluster({"t": [9]}, groups))).look()
    names = [key[1] for key in found if key[0] == "group_lag_records"]
    assert sorted(names) == sorted(map(label, HOSTILE))
    assert max(map(len, names)) == 200


def test_expressions_choose_groups() -> None:
    wanted = wanted_groups(["^billing", "^orders"], ["-test$"])
    assert wanted is not None
    names = ["billing", "billing-test", "orders-2", "other", "my-billing"]
    assert [name for name in names if wanted(name)] == ["billing", "orders-2"]
    assert wanted_groups([], []) is None
    without = wanted_groups([], ["^console-consumer-"])
    assert without is not None
    assert [without("console-consumer-1"), without("x")] == [False, True]
    with pytest.raises(OptionError, match=r"--exclude is '\(', which is no regular expression"):
        wanted_groups(["a"], ["("])


@pytest.mark.parametrize("settings", [{"interval": 0.0}, {"interval": float("nan")}, {"most_groups": 0}])
def test_settings_that_cannot_be_used_are_refused(settings: Any) -> None:
    with pytest.raises(OptionError, match=next(iter(settings))):
        Settings(NOBODY, **settings)


def test_a_defect_of_a_setting_ends_the_exporter() -> None:
    scripted = Scripted(OptionError("ssl.ca.location is no file"))
    with pytest.raises(OptionError, match="no file"):
        scripted.exporter.run()


# The server.


@pytest.fixture
def served() -> Iterator[tuple[Scripted, Endpoint]]:
    scripted = Scripted(*two() * 50)
    scripted.exporter.look()
    with Endpoint("127.0.0.1", 0, lambda: scripted.exporter.page) as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, args=(0.01,))
        thread.start()
        yield scripted, endpoint
        endpoint.shutdown()
        thread.join(60)


def ask(endpoint: Endpoint, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*endpoint.server_address[:2], timeout=10)  # type: ignore[arg-type]
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_a_scrape_gets_the_page_as_it_is_and_packed(served: tuple[Scripted, Endpoint]) -> None:
    scripted, endpoint = served
    answer, body = ask(endpoint, "/metrics")
    assert (answer.status, body) == (200, scripted.exporter.page.plain)
    assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    answer, packed = ask(endpoint, "/metrics?x=1", Accept_Encoding="gzip, deflate")
    assert (answer.getheader("Content-Encoding"), gzip.decompress(packed)) == ("gzip", body)
    answer, nothing = ask(endpoint, "/metrics", "HEAD")
    assert (answer.status, answer.getheader("Content-Length"), nothing) == (200, str(len(body)), b"")


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/", "GET", 200), ("/-/ready", "GET", 200), ("/x", "GET", 404), ("/", "POST", 501)]
)
def test_other_paths(served: tuple[Scripted, Endpoint], path: str, method: str, status: int) -> None:
    assert ask(served[1], path, method)[0].status == status


def test_many_scrapes_at_once_get_whole_pages_while_looks_go_on(served: tuple[Scripted, Endpoint]) -> None:
    scripted, endpoint = served
    bodies: list[bytes] = []

    def scrape() -> None:
        for _ in range(5):
            bodies.append(ask(endpoint, "/metrics")[1])

    threads = [threading.Thread(target=scrape) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        scripted.look()
    for thread in threads:
        thread.join(60)
    assert len(bodies) == 40
    for body in set(bodies):
        assert samples(Page(body, b""))["group_members", "stuck"] == 2


def test_looks_at_once_are_made_one_after_the_other() -> None:
    scripted = Scripted(*two() * 4)
    threads = [threading.Thread(target=scripted.exporter.look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert samples(scripted.exporter.page)["looks_total",] == 8


def test_a_client_that_says_nothing_holds_up_nobody(served: tuple[Scripted, Endpoint]) -> None:
    with socket.create_connection(endpoint_of(served)):
        assert ask(served[1], "/metrics")[0].status == 200


def endpoint_of(served: tuple[Scripted, Endpoint]) -> tuple[str, int]:
    host, port = served[1].server_address[:2]
    return str(host), int(port)


def test_two_exporters_at_one_address_are_one_clear_error(served: tuple[Scripted, Endpoint]) -> None:
    _, port = endpoint_of(served)
    with pytest.raises(OptionError, match=rf"--listen is 127\.0\.0\.1:{port}, where nothing can listen: .*in use"):
        Endpoint("127.0.0.1", port, lambda: Page(b"", b""))


@pytest.mark.parametrize("text", ["9464", "localhost:", ":9464", "localhost:http", "localhost:70000", "localhost:١"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="give HOST:PORT"):
        address_of(text)


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(OptionError, match="nothing can listen"):
        Endpoint("host.invalid", 0, lambda: Page(b"", b""))


def test_addresses_of_both_families() -> None:
    assert address_of("[::]:9464") == ("::", 9464)
    assert address_of("0.0.0.0:1") == ("0.0.0.0", 1)


def test_a_cluster_error_is_told_and_tried_again() -> None:
    scripted = Scripted(ClusterError("the groups cannot be listed"), Look(troubled()))
    assert scripted.look()["up",] == 0
    assert scripted.look()["up",] == 1
