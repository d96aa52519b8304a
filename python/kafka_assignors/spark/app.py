"""All commands of the pipeline. A new one is a module in `commands` with a function, and a line below."""

import typer

from kafka_assignors.spark.commands import (
    autoscale,
    capture,
    decode,
    lag,
    pipeline,
    replay,
    report,
    snapshot,
    synth,
)

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    name="python -m kafka_assignors.spark",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _main() -> None:
    """Replay the history of a fleet of consumer groups through assignment strategies, on Spark."""


app.command("capture")(capture.capture)
app.command("decode")(decode.decode)
app.command("snapshot")(snapshot.snapshot)
app.command("lag")(lag.lag)
app.command("replay")(replay.replay)
app.command("autoscale")(autoscale.autoscale)
app.command("pipeline")(pipeline.pipeline)
app.command("report")(report.report)
app.command("synth")(synth.synth)
