"""Every public name of the package, as griffe reads it from the sources. A test compares the names with
`tests/public-names.txt`.

A name is public if the API reference (docs/reference) shows it, or if a module of `ROOTS` exports it. A line is a name
with its signature, its annotation or its origin. After an intended change, `make public-names` writes the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "public-names.txt"
# The modules from which programs import by name, beside those of the reference.
ROOTS = (
    "kafka_assignors",
    "kafka_assignors.clients.aiokafka",
    "kafka_assignors.clients.confluent",
    "kafka_assignors.clients.kafka_python",
    "kafka_assignors.spark",
)


def shown() -> list[str]:
    """The modules and classes that the pages of the API reference show."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    return [path for page in pages for path in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)]


def lines() -> list[str]:
    """The list, sorted: the same for the same sources."""
    # griffe reads the sources of this package alone: installed packages and compiled modules do not change the list.
    package = griffe.load(
        "kafka_assignors",
        search_paths=[str(ROOT / "python")],
        allow_inspection=False,
        resolve_aliases=True,
        resolve_external=False,
    )
    assert isinstance(package, griffe.Module)
    found: set[str] = set()
    for path in [*ROOTS, *shown()]:
        found |= set(_of(path, package[path.partition(".")[2]] if "." in path else package))
    return sorted(found)


def _of(path: str, item: Any) -> Iterator[str]:
    """The lines of a name and of its members. `item` is an object of griffe, or an alias with the same attributes."""
    if item.is_module:
        for name, member in item.members.items():
            if _exported(item, name):
                if member.is_alias and member.target_path.startswith("kafka_assignors."):
                    yield f"{path}.{name} is {member.target_path}"
                elif not member.is_module:
                    yield from _of(f"{path}.{name}", member)
    elif item.is_class:
        bases = f"({', '.join(map(str, item.bases))})" if item.bases else ""
        made = (
            re.sub(r"^[^(]*", "", _signature(item.members["__init__"])) if "__init__" in item.members else _fields(item)
        )
        yield f"{path}: class{bases}{f' made with {made}' if made else ''}"
        # A class includes the members that it inherits from another class of this package, even from a private one.
        for name, member in item.all_members.items():
            if not name.startswith("_") and (not member.is_alias or getattr(member, "inherited", False)):
                yield from _of(f"{path}.{name}", member)
    elif item.is_function:
        yield f"{path}{re.sub(r'^[^(]*', '', _signature(item))}"
    else:
        annotation = item.annotation
        value = f" = {item.value}" if item.value is not None and not item.has_labels("property") else ""
        yield f"{path}{f': {annotation}' if annotation else ''}{value if not annotation else ''}"


def _exported(module: griffe.Object | griffe.Alias, name: str) -> bool:
    if module.exports is not None:
        return name in {str(each) for each in module.exports}
    return not name.startswith("_") and not module.members[name].is_alias


def _signature(function: griffe.Object | griffe.Alias) -> str:
    """A signature in one line, without `self`."""
    function = function.final_target if isinstance(function, griffe.Alias) else function
    assert isinstance(function, griffe.Function)
    text = re.sub(r"\s+", " ", str(function.signature(return_type=True)))
    return re.sub(r"\((self|cls)(, /)?(, )?", "(", text, count=1)


def _fields(item: griffe.Object | griffe.Alias) -> str:
    """The parameters of a dataclass, which griffe computes from its fields."""
    parameters = [it for it in getattr(item, "parameters", ()) if it.name != "self"]
    return f"({', '.join(str(it) for it in parameters)})" if parameters else ""


if __name__ == "__main__":
    print("\n".join(lines()))
