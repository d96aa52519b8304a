"""`make demo`: exit status 0 if no message was lost and none was read by two owners at once in a generation."""

import argparse
import sys
import time

from demo.story import TOPICS, DemoError, Story
from kafka_assignors.embedded import EmbeddedKafka


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument(
        "--strategy",
        default="sticky",
        help="the group's strategy as text: `cooperative-sticky`, or your own, `my_module:Failover(zone=a)`",
    )
    strategy = parser.parse_args().strategy
    started = time.monotonic()
    with EmbeddedKafka(topics=TOPICS) as kafka:
        story = Story(kafka.bootstrap_servers, strategy)
        try:
            faults = story.play()
        except DemoError as error:
            faults = [str(error)]
    for fault in faults:
        story.view.say(fault, "bold red")
    ledger = story.ledger
    story.view.say(
        f"{len(story.board.rebalances)} rebalances in {time.monotonic() - started:.0f} s; "
        f"{ledger.produced.total()} messages produced, {ledger.missing} lost, {ledger.repeated} read twice, "
        f"{'nothing' if not faults else 'something'} wrong",
        "bold green" if not faults else "bold red",
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
