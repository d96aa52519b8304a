"""`kafka-assignors embedded`: the embedded Kafka as a process, as `python -m kafka_assignors.embedded`."""

from __future__ import annotations

import typer

from kafka_assignors.embedded.__main__ import main

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""typer reads no option of this command; `main` reads all of them, `--help` too."""


def embedded(context: typer.Context) -> None:
    """Run the embedded Kafka until it is interrupted; --help lists the options."""
    raise typer.Exit(main(context.args, prog="kafka-assignors embedded"))
