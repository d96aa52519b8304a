"""The settings of a connection, from a command line and a file; and the flags that give them."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import OptionError
from kafka_assignors.flags import FlagTexts
from kafka_assignors.net.config import CONNECTION
from kafka_assignors.net.oauth import NAMES, with_token
from kafka_assignors.printable import printable
from kafka_assignors.properties import settings_given

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BOOTSTRAP_SERVER",
    "BOOTSTRAP_VARIABLE",
    "CONFIG_FILE",
    "JAVA_SETTINGS",
    "LIBRDKAFKA_SETTINGS",
    "OF_OTHERS",
    "SETTINGS",
    "connection_settings",
]

BOOTSTRAP_VARIABLE = "KAFKA_ASSIGNORS_BOOTSTRAP_SERVERS"
"""The environment variable with the address of the brokers, for commands to which none is given."""

BOOTSTRAP_SERVER = FlagTexts(
    ("--bootstrap-server", "--bootstrap"),
    f"HOST:PORT of a broker, or several with commas; by default the value of ${BOOTSTRAP_VARIABLE}.",
    "HOST:PORT",
)


def _settings(whose: str) -> FlagTexts:
    """`-X`, with the client whose names it takes."""
    return FlagTexts(("-X",), f"{whose}: security.protocol=SASL_SSL. Repeatable.", "NAME=VALUE")


SETTINGS = _settings("A setting of the connection by confluent-kafka's name")
JAVA_SETTINGS = _settings("A setting of a Java consumer, which reads the records")
LIBRDKAFKA_SETTINGS = _settings("A setting of librdkafka, which reads the records")
CONFIG_FILE = FlagTexts(("--config",), "A file of such settings, one a line; -X overrides it.", "FILE")

OF_OTHERS = frozenset(
    (
        "acks",
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "batch.size",
        "client.rack",
        "compression.type",
        "debug",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "heartbeat.interval.ms",
        "isolation.level",
        "key.deserializer",
        "key.serializer",
        "linger.ms",
        "log_level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "partition.assignment.strategy",
        "queue.buffering.max.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.ms",
        "session.timeout.ms",
        "statistics.interval.ms",
        "topic.metadata.refresh.interval.ms",
        "transactional.id",
        "value.deserializer",
        "value.serializer",
    )
)
"""Settings that do not concern connections. A client's own file may have them; the commands skip them there."""


def connection_settings(
    bootstrap: str | None, settings: Sequence[str] | None, config: str | None, *, instead: str = ""
) -> dict[str, Any]:
    """The settings of a connection, as `kafka_assignors.net` takes them.

    Args:
        bootstrap: the address of `--bootstrap-server`.
        settings: those of `-X`, as NAME=VALUE.
        config: the file of `--config`.
        instead: the end of the error if no address is given. It names what else may be given, such as a file.

    Raises:
        OptionError: there is no broker, a line is not NAME=VALUE, a name is no setting of a connection, or the file
            cannot be read. No value is repeated: it may be a secret.
    """
    given = [each for each in settings_given(config, settings) if each.single or each.name not in OF_OTHERS]
    found: dict[str, Any] = {_checked(each.name, each.where): each.value for each in given}
    if bootstrap is not None:
        found["bootstrap.servers"] = bootstrap
    elif not found.get("bootstrap.servers"):
        found["bootstrap.servers"] = os.environ.get(BOOTSTRAP_VARIABLE, "")
    if not found.get("bootstrap.servers"):
        raise OptionError(f"there is no broker; give --bootstrap-server HOST:PORT{instead}")
    return with_token(found)


def _checked(name: str, where: str) -> str:
    """Refuses an unknown name: with a misspelt `security.protocol` the connection would not be encrypted."""
    if name in CONNECTION or name in NAMES:
        return name
    near = difflib.get_close_matches(name, sorted(CONNECTION | NAMES), 1)
    hint = f"did you mean {near[0]}?" if near else "docs/connections.md has those that there are"
    raise OptionError(f"{where} has '{printable(name)}', which is no setting of a connection; {hint}")
