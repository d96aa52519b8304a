"""Maps for the terminal: every partition is drawn once, in the row of its owner, for any width of the line."""

import random

import pytest

from kafka_assignors.report.terminal import count_map, ownership_map

SHADES = "░▒▓█■"


def drawn(text: str, members: list[str]) -> list[str]:
    """The row of each column, in order. Partitions without an owner are in the row ``nobody``."""
    rows = [*members, "nobody"]
    found: list[str] = []
    for block in text.split("\n\n")[:-1]:
        lines = {line.split()[0]: line for line in block.splitlines() if line.split()[0] in rows}
        width = len(lines[members[0]])
        for column in range(len(max(lines, key=len)), width):
            found += [name for name, line in lines.items() if line[column] in SHADES]
    return found


@pytest.mark.parametrize("width", [24, 31, 60, 200])
def test_every_partition_is_drawn_once(width: int) -> None:
    choose = random.Random(width)
    members = ["alpha", "b", "gamma-1"]
    topics = {}
    for number in range(4):
        count = choose.randint(1, 40)
        topics[f"topic-{number}"] = [(choose.choice([0, 1, 2, None]), choose.randint(0, 50)) for _ in range(count)]
    text = ownership_map(members, topics, width=width).plain
    expected = ["nobody" if row is None else members[row] for cells in topics.values() for row, _ in cells]
    assert drawn(text, members) == expected
    assert all(len(line) <= width for line in text.split("\n\n")[0].splitlines())


def test_shades_say_how_much() -> None:
    text = ownership_map(["a"], {"x": [(0, 0), (0, 1), (0, 50), (0, 99)]}, width=80).plain
    assert "a ░▒▓█" in text
    assert text.endswith("░ no lag, ▒ up to 33, ▓ up to 66, █ up to 99")
    assert ownership_map(["a"], {"x": [(0, None)]}, width=80).plain.endswith("■ lag not known")
    assert ownership_map(["a"], {"x": [(0, 0)]}, width=80).plain.endswith("░ no lag")


def test_topics_that_do_not_fit_stand_below() -> None:
    topics = [f"t{number:02}" for number in range(25)]
    text = count_map(["a", "b"], topics, {(0, column): 1 + column % 3 for column in range(25)}, width=12).plain
    assert [line.split(":")[0].strip() for line in text.splitlines() if "topics" in line and "of 25" in line] == [
        "topics 1 to 10 of 25",
        "topics 11 to 20 of 25",
        "topics 21 to 25 of 25",
    ]
    assert text.count("▒") + text.count("▓") + text.count("█") == 25 + 2
    assert "up to 3 partitions of a topic" in text
