"""The page of the tables' columns has the columns of the schemas."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_assignors.spark.advice import RECOMMENDATIONS
from kafka_assignors.spark.schemas import TABLES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "spark-tables.md").read_text("utf-8")


def test_every_column_is_on_the_page_with_its_type() -> None:
    told: dict[str, list[tuple[str, str, bool]]] = {}
    for section in PAGE.split("\n## ")[1:]:
        name, _, text = section.partition("\n")
        columns = re.findall(r"^\| `(\w+)` \| `([^`]+)`(, \*optional\*)? \| [^|]*\w[^|]* \|$", text, re.MULTILINE)
        told[name] = [(column, kind, bool(optional)) for column, kind, optional in columns]
    wanted = {name: [(each.name, each.type, each.optional) for each in columns] for name, columns in TABLES.items()}
    of_advice = [(*column.split(" ", 1), False) for column in RECOMMENDATIONS.split(", ")]
    assert told == wanted | {"recommendations": of_advice}
