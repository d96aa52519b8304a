"""The cluster that a command of the pipeline reads: its address, and the settings of the client that reads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.errors import OptionError
from kafka_assignors.flags import deprecated
from kafka_assignors.net.command_line import (
    BOOTSTRAP_SERVER,
    BOOTSTRAP_VARIABLE,
    CONFIG_FILE,
    JAVA_SETTINGS,
    SETTINGS,
)
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
    typer.Option(*BOOTSTRAP_SERVER.names, help=BOOTSTRAP_SERVER.help, metavar=BOOTSTRAP_SERVER.metavar),
]
Settings = Annotated[list[str] | None, typer.Option(*SETTINGS.names, help=SETTINGS.help, metavar=SETTINGS.metavar)]
JavaSettings = Annotated[
    list[str] | None,
    typer.Option(*JAVA_SETTINGS.names, help=JAVA_SETTINGS.help, metavar=JAVA_SETTINGS.metavar),
]
ConfigFile = Annotated[str | None, typer.Option(*CONFIG_FILE.names, help=CONFIG_FILE.help, metavar=CONFIG_FILE.metavar)]
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
