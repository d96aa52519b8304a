"""For griffe: examples in docstrings as blocks of code. Markdown takes their prompts for quotations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from griffe import Extension

if TYPE_CHECKING:
    from griffe import Object

# An example is what begins with a prompt, up to the next empty line.
EXAMPLE = re.compile(r"(?:^|(?<=\n\n))(?P<indent>[ ]*)>>> .*(?:\n[ ]*\S.*)*")


class Doctests(Extension):
    """Fences every example."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for each module, class, function and attribute, after what is in it."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    indent = example["indent"]
    return f"{indent}```pycon\n{example[0]}\n{indent}```"
