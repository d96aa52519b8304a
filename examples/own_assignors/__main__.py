"""`make example-own`: exit status 0 if all members had partitions of one plan after every step."""

import sys

from rich.console import Console

from kafka_assignors.embedded import EmbeddedKafka
from own_assignors.live import SceneError, Troupe
from own_assignors.scenes import SCENES
from own_assignors.view import show


def main() -> int:
    console = Console()
    topics = {topic: count for scene in SCENES for topic, count in scene.topics.items()}
    with EmbeddedKafka(topics=topics) as kafka:
        for scene in SCENES:
            try:
                with Troupe(kafka.bootstrap_servers, scene) as troupe:
                    for step, plan in troupe.play():
                        show(console, scene, step, plan, troupe)
            except SceneError as error:
                console.print(str(error), style="bold red")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
