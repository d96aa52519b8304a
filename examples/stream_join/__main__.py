"""`make example-join`: exit status 0 if all results are right and only gained partitions were rebuilt."""

import argparse
import sys
import time

from kafka_assignors.embedded import EmbeddedKafka
from stream_join.story import Story, StoryError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stream_join", description="KIP-315's advertising join, live.")
    parser.add_argument("--partitions", type=int, default=10, help="of each topic (default: 10, as in KIP-315)")
    parser.add_argument("--members", type=int, default=4, help="of each group at the start (default: 4, as in KIP-315)")
    parser.add_argument("--impressions", type=int, default=5000, help="in all (default: 5000)")
    parser.add_argument("--seed", type=int, default=315, help="of the data (default: 315)")
    options = parser.parse_args()
    if not 2 <= options.members < options.partitions or options.members > 20:
        parser.error("give 2 to 20 members, and more partitions than members")
    if options.impressions < 100:
        parser.error("give at least 100 impressions")
    started = time.monotonic()
    with EmbeddedKafka() as kafka:
        story = Story(kafka, options.partitions, options.members, options.impressions, options.seed)
        try:
            faults = story.play()
            story.view.summary(story.results, story.wrong)
        except StoryError as error:
            faults = [str(error)]
    for fault in faults:
        story.view.say(fault, "bold red")
    story.view.say(
        f"{time.monotonic() - started:.0f} s; {'nothing' if not faults else 'something'} wrong",
        "bold green" if not faults else "bold red",
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
