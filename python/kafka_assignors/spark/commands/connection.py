"""Settings of Kafka clients on the command line: an address, a file, single ones; the latter win."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Bootstrap", "Config", "ConfigFile", "client_settings"]

Bootstrap = Annotated[str | None, typer.Option(help="HOST:PORT of the cluster.")]
Config = Annotated[list[str] | None, typer.Option(help="NAME=VALUE, a setting of the client; may be given repeatedly.")]
ConfigFile = Annotated[
    str | None, typer.Option(help="A file of such lines: the place for passwords, which others see on a command line.")
]


def client_settings(bootstrap: str | None, config: Sequence[str] | None, file: str | None) -> dict[str, str]:
    """All settings.

    Raises:
        OptionError: the file cannot be read, or a line of it, or a setting, is no NAME=VALUE; or there is no address.
    """
    settings: dict[str, str] = {}
    if file is not None:
        try:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(
                f"--config-file: {file} cannot be read ({error}); give a text file of NAME=VALUE lines"
            ) from error
        for number, line in enumerate(lines, start=1):
            if line.strip() and not line.lstrip().startswith(("#", "!")):
                # The line itself may hold a password.
                settings.update([_pair(line, f"--config-file: line {number} of {file}")])
    for text in config or ():
        settings.update([_pair(text, "--config")])
    if bootstrap is not None:
        settings["bootstrap.servers"] = bootstrap
    if not settings.get("bootstrap.servers"):
        raise OptionError("no cluster is named; give --bootstrap, or bootstrap.servers in --config-file")
    return settings


def _pair(text: str, where: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise OptionError(f"{where} is no NAME=VALUE, such as security.protocol=SSL")
    return name.strip(), value.strip()
