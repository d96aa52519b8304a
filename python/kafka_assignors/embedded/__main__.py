"""Runs the embedded Kafka as a process of its own, until it is interrupted."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence

from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.errors import EmbeddedKafkaError
from kafka_assignors.flags import BAD_INPUT, deprecated


def _topic(text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    try:
        return name, int(count or 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: give NAME or NAME=PARTITIONS") from None


def parser_of(prog: str) -> argparse.ArgumentParser:
    """The parser of the command's flags; `prog` is the command as the user typed it."""
    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, epilog=f"For example: {prog} --port 9092 --create-topic orders=12"
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=9092, help="the port; 0 takes a free one (%(default)s)")
    parser.add_argument(
        "--create-topic",
        type=_topic,
        action="append",
        default=[],
        metavar="NAME[=PARTITIONS]",
        help="a topic that is there from the start, of one partition by default; repeatable",
    )
    parser.add_argument("--topic", type=_topic, action="append", help=argparse.SUPPRESS)
    parser.add_argument("--auto-create-topics", action="store_true", help="create the topics that clients ask for")
    parser.add_argument(
        "--default-partitions", type=int, default=1, help="the partition count of such topics (%(default)s)"
    )
    return parser


def main(arguments: Sequence[str] | None = None, prog: str = "python -m kafka_assignors.embedded") -> int:
    """The command. Its first line of output is the address for `bootstrap.servers`.

    Args:
        arguments: its arguments; None takes those of the process.
        prog: the command as the user typed it, for the help and the errors.
    """
    parser = parser_of(prog)
    options = parser.parse_args(arguments)
    if options.topic is not None:
        deprecated("--topic", "--create-topic")

    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        kafka = EmbeddedKafka(
            dict([*options.create_topic, *(options.topic or ())]),
            host=options.host,
            port=options.port,
            auto_create_topics=options.auto_create_topics,
            default_partitions=options.default_partitions,
        )
    except (EmbeddedKafkaError, OSError) as error:
        parser.exit(BAD_INPUT, f"{parser.prog}: {error}\n")
    with kafka:
        print(kafka.bootstrap_servers, flush=True)
        stopped.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
