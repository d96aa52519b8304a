"""The schemas of the answers, from the dataclasses: `python -m support.schemas` prints the tables of docs/output.md."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from typing import Any

from kafka_assignors import intervals
from kafka_assignors.autoscale import Replayed
from kafka_assignors.cluster import Missing
from kafka_assignors.planner import (
    autoscale,
    claims,
    clients_named,
    compare,
    cost,
    decode,
    describe,
    fleet,
    keys,
    kip848,
    migrate,
    observed_group,
    plan,
    reasons,
    size,
    switch,
)

ROOTS: dict[str, tuple[Any, dict[str, tuple[str, str]]]] = {
    "fleet": (
        fleet.Fleet,
        {
            "wrong": ("true or false", "whether a rule is not met, or something could not be read"),
            "verdicts": ("object of number", "how many groups have each verdict, those that `--top` hides included"),
        },
    ),
    "describe": (describe.DescribedGroup, {"warnings": ("number", "how many of the findings are warnings")}),
    "plan": (plan.PlannedGroup, {"warnings": ("number", "how many of the findings are warnings")}),
    "compare": (compare.Comparison, {}),
    "rebalance-cost": (cost.Cost, {}),
    "size": (size.SizedGroup, {}),
    "autoscale": (autoscale.Autoscaled, {}),
    "migrate": (
        migrate.Migration,
        {
            "wrong": ("true or false", "whether something is in the way of a group, or could not be read"),
            "ways": ("object of number", "how many groups go each way"),
        },
    ),
    "decode": (decode.Decoded, {}),
    "decode-group": (decode.DecodedGroup, {}),
    "audit-keys": (keys.KeyAudit, {"agree": ("true or false", "whether all topics join, or all hashes agree")}),
    "audit-topics": (keys.PlacementAudit, {"agree": ("true or false", "whether all topics join")}),
}
"""The root of each answer, and the fields that precede the root's own fields."""

# Of two classes with one name, the class of the later module counts: `size` imports a class `Join` of its own.
_MODULES = (
    autoscale,
    size,
    claims,
    clients_named,
    compare,
    cost,
    decode,
    describe,
    fleet,
    intervals,
    keys,
    kip848,
    migrate,
    observed_group,
    plan,
    reasons,
    switch,
)
CLASSES: dict[str, Any] = {
    name: each
    for module in _MODULES
    for name, each in vars(module).items()
    if isinstance(each, type) and dataclasses.is_dataclass(each)
} | {"Missing": Missing, "Replayed": Replayed}
_SIMPLE = {
    "int": "number",
    "float": "number",
    "str": "text",
    "bool": "true or false",
    "bytes": "text in hexadecimal",
    "None": "null",
    "Kind": "text",
    "Way": "text",
    "Blocks": "text",
    "Any": "any value",
}


def words(annotation: str) -> str:
    """The type of an annotated value in JSON, in words."""
    text = annotation.strip().strip('"')
    parts = _split(text, "|")
    if len(parts) > 1:
        return " or ".join(dict.fromkeys(map(words, parts)))
    found = re.fullmatch(r"(\w+)\[(.*)\]", text, re.DOTALL)
    if found is None:
        return _SIMPLE.get(text, text)
    kind, inner = found[1], _split(found[2], ",")
    if kind in ("Mapping", "dict"):
        return f"object of {words(inner[1])}"
    if kind == "Literal":
        return "text"
    if kind == "tuple" and inner[-1].strip() != "...":
        return f"list: {', '.join(map(words, inner))}"
    return f"list of {words(inner[0])}"


def _split(text: str, mark: str) -> list[str]:
    """The parts of a text between marks outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def described(kind: Any) -> dict[str, str]:
    """The sentence about each attribute in the docstring of a dataclass."""
    text = inspect.getdoc(kind) or ""
    _, _, attributes = text.partition("Attributes:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {6,}.*)*)", attributes, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", sentence).rstrip(".") for name, sentence in found}


def rows(kind: Any) -> list[tuple[str, str, str]]:
    """Name, type and sentence of each field."""
    told = described(kind)
    return [
        (field.name, words(str(field.type)), told[field.name].replace("None", "null"))
        for field in dataclasses.fields(kind)
    ]


def parts(root: Any) -> list[Any]:
    """A dataclass, followed by the dataclasses in its fields."""
    found = [root]
    for kind in found:
        for field in dataclasses.fields(kind):
            for name in re.findall(r"\w+", str(field.type)):
                if name in CLASSES and CLASSES[name] not in found:
                    found.append(CLASSES[name])
    return found


def table(fields: list[tuple[str, str, str]]) -> list[str]:
    """The lines of a table in Markdown."""
    return ["| Field | Type | |", "|---|---|---|", *(f"| `{name}` | {kind} | {said} |" for name, kind, said in fields)]


def pages() -> dict[str, list[str]]:
    """The lines of each section of docs/output.md, by its heading."""
    found: dict[str, list[str]] = {}
    shown: set[type] = set()
    for name, (root, first) in ROOTS.items():
        head: list[Any] = [("schema", "text", f"`kafka-assignors/{name}/1`")]
        head += [(field, *rest) for field, rest in first.items()]
        found[name] = table([*head, *rows(root)])
        for kind in parts(root)[1:]:
            if kind not in shown:
                shown.add(kind)
                found[kind.__name__] = table(rows(kind))
    return found


if __name__ == "__main__":
    for heading, lines in pages().items():
        sys.stdout.write("\n".join([f"### {heading}", "", *lines, "", ""]))
