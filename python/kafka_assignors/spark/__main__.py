"""`python -m kafka_assignors.spark`: the commands of `kafka-assignors spark`, for `spark-submit` and for clusters."""

import sys


def main() -> None:
    """Runs the commands. Without typer or rich it prints one sentence and exits with status 2."""
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
