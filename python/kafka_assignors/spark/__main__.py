"""`python -m kafka_assignors.spark`: the pipeline's commands; without their libraries, one sentence and status 2."""

import sys


def main() -> None:
    """The entry point."""
    try:
        from kafka_assignors.spark.app import app
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich"):
            raise
        print(
            "python -m kafka_assignors.spark needs typer and rich: pip install kafka-assignors[spark]", file=sys.stderr
        )
        sys.exit(2)
    from kafka_assignors.stdout import guarded

    with guarded():
        app()


if __name__ == "__main__":
    main()
