"""`kafka-assignors exporter`: the groups of a cluster as Prometheus metrics."""

from __future__ import annotations

import signal
import sys
import threading
from importlib import resources
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import exit_on_error
from kafka_assignors.flags import deprecated
from kafka_assignors.net.command_line import connection_settings
from kafka_assignors.planner.fleet import Limits

if TYPE_CHECKING:
    from types import FrameType

    from kafka_assignors.metrics.endpoint import Endpoint
    from kafka_assignors.metrics.exporter import Exporter

_FILES = "kafka_assignors.metrics"


def exporter(
    bootstrap: options.BootstrapServer = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            help="The address for Prometheus. By default only this machine can reach it.",
            metavar="HOST:PORT",
        ),
    ] = "127.0.0.1:9464",
    include: Annotated[
        list[str] | None,
        typer.Option("--include", help="Only groups that this regular expression finds. Repeatable.", metavar="REGEX"),
    ] = None,
    old_include: Annotated[list[str] | None, typer.Option("--groups", hidden=True)] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="No group that this regular expression finds. Repeatable.", metavar="REGEX"),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", min=1.0, help="The seconds from one reading of the cluster to the next.")
    ] = 30.0,
    most_groups: Annotated[
        int,
        typer.Option("--max-groups", min=1, help="Series of so many groups, the worst first; the others are counted."),
    ] = 2_000,
    max_lag: Annotated[
        int | None, typer.Option("--max-lag", min=0, help="More records of lag than that are a warning.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0, help="A record that waits longer than that is a warning.")
    ] = None,
    isolation: Annotated[
        str, typer.Option("--isolation-level", help="read_committed: lag ends at the first open transaction.")
    ] = "read_uncommitted",
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Print the Grafana dashboard of these metrics, and exit.")
    ] = False,
    rules: Annotated[
        bool, typer.Option("--rules", help="Print Prometheus' alert rules for these metrics, and exit.")
    ] = False,
) -> None:
    """Serve all groups of a cluster as Prometheus metrics: lag, balance, moves, generations, broken rules.

    Read-only: it joins no group and commits nothing. A thread reads the cluster; a scrape gets the result of the last
    reading at once.

    \b
    kafka-assignors exporter --bootstrap-server localhost:9092 --listen 0.0.0.0:9464
    kafka-assignors exporter --bootstrap-server localhost:9092 --include '^billing' --exclude '-test$'
    kafka-assignors exporter --dashboard > kafka-assignors.json

    Exit status: 0 after SIGTERM or Ctrl-C, 2 for bad input or an address where nothing can listen. A cluster that
    cannot be reached is no reason to end: kafka_assignors_up is 0 until it can.
    """
    with exit_on_error():
        if dashboard or rules:
            name = "dashboard.json" if dashboard else "alerts.yml"
            sys.stdout.write(resources.files(_FILES).joinpath(name).read_text(encoding="utf-8"))
            return
        from kafka_assignors.metrics.endpoint import Endpoint, address_of
        from kafka_assignors.metrics.exporter import Exporter, Settings, wanted_groups

        if old_include:
            deprecated("--groups", "--include")
        options.check_reset(reset)
        made = Exporter(
            Settings(
                connection=connection_settings(bootstrap, settings, config),
                interval=interval,
                timeout=timeout,
                wanted=wanted_groups([*(include or ()), *(old_include or ())], exclude or ()),
                most_groups=most_groups,
                limits=Limits(max_lag, max_seconds),
                reset=reset,
                isolation_level=isolation,
            )
        )
        with Endpoint(*address_of(listen), lambda: made.page) as endpoint:
            _serve(made, endpoint)


def _serve(made: Exporter, endpoint: Endpoint) -> None:
    """Reads the cluster and serves the metrics until SIGTERM or Ctrl-C."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        # This also ends a reading that is under way, which may be waiting for a broker.
        raise KeyboardInterrupt

    server = threading.Thread(target=endpoint.serve_forever, name="kafka-assignors-exporter", daemon=True)
    server.start()
    before = signal.signal(signal.SIGTERM, end)
    try:
        host, port = endpoint.server_address[:2]
        typer.echo(f"listening on http://{_shown(str(host))}:{port}/metrics", err=True)
        made.run()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        endpoint.shutdown()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
