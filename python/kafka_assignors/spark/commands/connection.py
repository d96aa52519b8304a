"""The cluster that a command of the pipeline reads: its address, and the settings of the client that reads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.errors import OptionError
from kafka_assignors.flags import deprecated
from kafka_assignors.net.command_line import BOOTSTRAP_VARIABLE
from kafka_assignors.properties import settings_given

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BootstrapServer",
    "ConfigFile",
    "JavaSettings",
    "OldConfigFile",
    "Settings",
    "client_settings",
    "file_given",
]

BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap",
        help=f"HOST:PORT of a broker, or several with commas; by default the value of ${BOOTSTRAP_VARIABLE}.",
        metavar="HOST:PORT",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        help="A setting of the connection by confluent-kafka's name: security.protocol=SSL. Repeatable.",
        metavar="NAME=VALUE",
    ),
]
JavaSettings = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        help="A setting of a Java consumer, which reads the records: security.protocol=SSL. Repeatable.",
        metavar="NAME=VALUE",
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", help="A file of such settings, one a line; -X overrides it.", metavar="FILE"),
]
OldConfigFile = Annotated[str | None, typer.Option("--config-file", hidden=True)]
"""The earlier spelling of `--config`."""


def file_given(config: str | None, old_config: str | None) -> str | None:
    """The file of `--config`, or of its earlier spelling, for which a warning is printed."""
    if old_config is None:
        return config
    deprecated("--config-file", "--config")
    return old_config if config is None else config


def client_settings(bootstrap: str | None, settings: Sequence[str] | None, config: str | None) -> dict[str, str]:
    """All settings of a client of Java's, which checks their names by itself.

    Raises:
        OptionError: the file cannot be read, a line of it or a setting is not NAME=VALUE, or there is no address.
    """
    found = {setting.name: setting.value for setting in settings_given(config, settings)}
    if bootstrap is not None:
        found["bootstrap.servers"] = bootstrap
    elif not found.get("bootstrap.servers"):
        found["bootstrap.servers"] = os.environ.get(BOOTSTRAP_VARIABLE, "")
    if not found.get("bootstrap.servers"):
        raise OptionError(
            "no cluster is named; give --bootstrap-server HOST:PORT, or bootstrap.servers in the file of --config"
        )
    return found
