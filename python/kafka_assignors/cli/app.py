"""All commands. A new one is a module beside this one with a function, and a line below."""

from typing import Annotated

import typer

from kafka_assignors import __version__
from kafka_assignors.cli import (
    audit_keys,
    autoscale,
    compare,
    decode,
    describe,
    embedded,
    exporter,
    fleet,
    migrate,
    plan,
    rebalance_cost,
    size,
    snapshot,
)
from kafka_assignors.spark.app import app as spark

app = typer.Typer(
    name="kafka-assignors",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Fair, sticky, lag-aware and join-aware partition assignment for Kafka consumer groups."""


app.command("fleet")(fleet.fleet)
app.command("exporter")(exporter.exporter)
app.command("describe")(describe.describe)
app.command("plan")(plan.plan)
app.command("compare")(compare.compare)
app.command("decode")(decode.decode)
app.command("snapshot")(snapshot.snapshot)
app.command("rebalance-cost")(rebalance_cost.rebalance_cost)
app.command("size")(size.size)
app.command("autoscale")(autoscale.autoscale)
app.command("migrate")(migrate.migrate)
app.command("audit-keys")(audit_keys.audit_keys)
app.command("embedded", context_settings=embedded.PASSED_ON)(embedded.embedded)
app.add_typer(spark, name="spark")
