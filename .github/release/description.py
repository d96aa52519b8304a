"""The description of a release on an index: README, with links that lead somewhere from there.

In the repository README's links are relative, as GitHub and the documentation site resolve them. An index shows the
same text on a page of its own, where `docs/clients.md` does not exist: each such link gets the address of the file at
the tag of the release, and each picture the address of its content.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY: str = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
# A link of Markdown whose target is a path: `](docs/clients.md#releases)`, and for a picture the text before it.
LINK = re.compile(r"(?P<picture>!\[[^\]\n]*)?\]\((?P<path>[\w./-]+)(?P<place>#[^)\s]*)?\)")


def absolute(text: str, version: str, root: Path = ROOT) -> str:
    """The text with the addresses of the repository's files at the tag of a version; other links stay."""

    def of_link(found: re.Match[str]) -> str:
        if not (root / found["path"]).exists():
            # Code may look like a link.
            return found[0]
        shown = "raw" if found["picture"] else "tree" if (root / found["path"]).is_dir() else "blob"
        address = f"{REPOSITORY}/{shown}/v{version}/{found['path']}{found['place'] or ''}"
        return f"{found['picture'] or ''}]({address})"

    return LINK.sub(of_link, text)


def relative_links(text: str, root: Path = ROOT) -> list[str]:
    """The links to files of the repository that an index would not find."""
    return [found["path"] for found in LINK.finditer(text) if (root / found["path"]).exists()]
