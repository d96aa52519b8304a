"""The live tests that docs/fault-scenarios.md names exist. The simulation checks its own column."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "fault-scenarios.md"


def test_every_live_test_of_the_table_is_there() -> None:
    cells = [
        line.rstrip(" |").rpartition(" | ")[2] for line in PAGE.read_text().splitlines() if re.match(r"\| \d+ \|", line)
    ]
    assert len(cells) == 42
    named = 0
    for part in "<br>".join(cells).split("<br>"):
        files = re.findall(r"`(test_\w+)\.py`", part)
        assert len(files) <= 1, part
        assert files or part == "–", part
        for file in files:
            (path,) = TESTS.rglob(f"{file}.py")
            text = path.read_text()
            named += 1
            for function in re.findall(r"`(test_\w+)`", part):
                assert f"def {function}(" in text, f"{path.name} has no {function}"
    assert named > 10
