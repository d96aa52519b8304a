"""All commands. To add one: a module beside this one with a function, and a line below."""

from typing import Annotated

import typer

from kafka_assignors import __version__
from kafka_assignors.cli import audit_keys

app = typer.Typer(
    name="kafka-assignors",
    no_args_is_help=True,
    add_completion=False,
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


app.command("audit-keys")(audit_keys.audit_keys)
