"""The public API of the package is what tests/public-names.txt says, and the API reference shows all of it."""

import difflib
import importlib

import pytest

from support.public_names import LIST, ROOTS, lines, shown

# A logger and modules are attributes of a package, too; these are the names that programs import.
CLIENTS = [name for name in ROOTS if ".clients." in name]


def test_the_public_names_are_those_of_the_list() -> None:
    """A lost name or a new signature breaks programs; a new name is a promise. `make public-names` updates the list."""
    listed = LIST.read_text().splitlines()
    changes = list(difflib.unified_diff(listed, lines(), "tests/public-names.txt", "the sources", lineterm="", n=0))
    assert changes == []


def test_the_list_is_of_the_package() -> None:
    """griffe reads the sources and imports nothing: the list must hold for the installed package, too."""
    listed = [line.partition(" is ")[0] for line in LIST.read_text().splitlines()]
    for root in ROOTS[:4]:
        module = importlib.import_module(root)
        wanted = {f"{root}.{name}" for name in module.__all__ if not isinstance(getattr(module, name), type(importlib))}
        assert wanted - {line.partition(":")[0].partition("(")[0] for line in listed} <= {f"{root}.__version__"}, root


@pytest.mark.parametrize("root", ["kafka_assignors", *CLIENTS])
def test_the_reference_shows_every_public_name(root: str) -> None:
    """A page of docs/reference shows each public name: by itself, or with its class or module."""
    listed = dict(line.split(" is ") for line in LIST.read_text().splitlines() if " is " in line)
    pages = set(shown())
    origins = [origin for name, origin in listed.items() if name.rpartition(".")[0] == root and "__" not in name]
    assert origins
    hidden = [it for it in origins if not {it, it.rpartition(".")[0], it.rpartition(".")[0].rpartition(".")[0]} & pages]
    assert hidden == []
