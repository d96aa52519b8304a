"""`pipeline`: the whole way, on a made-up fleet."""

from pathlib import Path
from typing import Annotated

import typer

from kafka_assignors.spark.commands import Conf, Master, settings, told


def pipeline(
    out: Annotated[Path, typer.Option(help="The folder that everything goes to; what it has from before is replaced.")],
    groups: Annotated[int, typer.Option(help="How many consumer groups.")] = 1_000,
    seed: Annotated[int, typer.Option(help="Another seed is another fleet.")] = 0,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Go the whole way on a made-up fleet: synth, lag, replay, report. Needs Java, and no Kafka."""
    from rich.console import Console

    from kafka_assignors.errors import OptionError
    from kafka_assignors.report.page import check_libraries
    from kafka_assignors.spark.fleet import FleetOptions
    from kafka_assignors.spark.pipeline import run

    console = Console(highlight=False, markup=False, soft_wrap=True)
    with told():
        FleetOptions(seed, groups)
        if out.parts and out.parts[0].endswith(":"):
            raise OptionError(f"--out is {str(out)!r}; give a folder of this machine, without a scheme")
        check_libraries()
        console.print(f"The report will be here: {(out / 'report.html').resolve().as_uri()}")
        run(out, groups=groups, seed=seed, master=master, console=console, conf=settings(conf))
