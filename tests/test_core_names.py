"""The public API of the core crate is what tests/core-names.txt says."""

import difflib

import pytest

from support.core_names import LIST, lines


@pytest.mark.needs("index")
@pytest.mark.first
@pytest.mark.timeout(400)
def test_the_public_names_of_the_core_are_those_of_the_list() -> None:
    """A lost name or a new signature breaks programs; a new name is a promise. `make core-names` updates the list."""
    listed = LIST.read_text().splitlines()
    changes = list(difflib.unified_diff(listed, lines(), "tests/core-names.txt", "the sources", lineterm="", n=0))
    assert changes == []
