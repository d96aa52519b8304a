"""`pipeline`: all steps on a made-up fleet."""

from typing import Annotated

import typer

from kafka_assignors.spark.commands import Conf, Master, exit_on_error, settings


def pipeline(
    out: Annotated[str, typer.Option(help="The folder for tables and report; existing ones are replaced.")],
    groups: Annotated[int, typer.Option(help="How many consumer groups.")] = 1_000,
    seed: Annotated[int, typer.Option(help="The seed of the random numbers: an equal seed makes an equal fleet.")] = 0,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run all steps on a made-up fleet: synth, lag, replay, report. Needs Java, and no Kafka."""
    with exit_on_error():
        from rich.console import Console

        from kafka_assignors.report.page import check_libraries, local_folder
        from kafka_assignors.spark.fleet import FleetOptions
        from kafka_assignors.spark.pipeline import run

        console = Console(highlight=False, markup=False, soft_wrap=True)

        FleetOptions(seed, groups)
        folder = local_folder(out, "--out")
        check_libraries()
        console.print(f"The report will be here: {(folder / 'report.html').resolve().as_uri()}")
        run(folder, groups=groups, seed=seed, master=master, console=console, conf=settings(conf))
