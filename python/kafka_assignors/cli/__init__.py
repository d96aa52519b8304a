"""The command `kafka-assignors`: one module for each of its commands, put together in `app`."""

import sys

from kafka_assignors.stdout import guarded


def main() -> None:
    """The entry point. If its libraries are missing, it prints one sentence and exits with status 2."""
    try:
        from kafka_assignors.cli.app import app
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich"):
            raise
        print("kafka-assignors needs typer and rich: pip install kafka-assignors[cli]", file=sys.stderr)
        sys.exit(2)
    with guarded():
        app()
