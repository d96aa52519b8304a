"""Tracers that patch the clients' classes see the calls of ours: the same spans, and the same headers in records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_assignors.embedded import EmbeddedKafka

pytestmark = pytest.mark.needs("frameworks")

PROGRAM = Path(__file__).parents[1] / "programs" / "traces.py"
RECORDS = 8
# Datadog's library sends no telemetry, requests no configuration from an agent, and writes its headers into records.
QUIET = {
    "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    "DD_KAFKA_PROPAGATION_ENABLED": "true",
    "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    "DD_TRACE_STARTUP_LOGS": "false",
}


def traced(tracer: str, client: str, whose: str) -> list[str]:
    """The spans and headers of a run, without the spans of polls that returned no record."""
    # One partition: with several, the order of the records would be left to chance.
    with EmbeddedKafka(topics={"orders": 1}) as kafka:
        arguments = [tracer, client, whose, kafka.bootstrap_servers, "orders"]
        done = subprocess.run(
            [sys.executable, "-P", str(PROGRAM), *arguments],
            env={**os.environ, **QUIET},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    spans = [json.loads(line) for line in done.stdout.splitlines()]
    empty = [span for span in spans if span[1].get("kafka.received_message") == "False"]
    return sorted(json.dumps(span, sort_keys=True) for span in spans if span not in empty)


@pytest.mark.parametrize(
    ("tracer", "client"),
    [
        ("opentelemetry", "kafka-python"),
        ("opentelemetry", "aiokafka"),
        ("opentelemetry", "confluent"),
        ("ddtrace", "aiokafka"),
        ("ddtrace", "confluent"),
    ],
)
def test_our_classes_have_the_spans_of_the_clients(tracer: str, client: str) -> None:
    ours = traced(tracer, client, "ours")
    assert ours == traced(tracer, client, "theirs")
    spans = [json.loads(line) for line in ours]
    sent = [name for name, _ in spans if "send" in name or "produce" in name]
    joined = [names for name, names in spans if name == "headers" and "traceparent" in names]
    assert (len(sent), len(joined)) == (RECORDS, RECORDS)
    assert len(spans) >= 3 * RECORDS
