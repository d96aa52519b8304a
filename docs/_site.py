"""For mkdocs: the pages that live at the top of the repository, where GitHub and PyPI look for them.

Links are as GitHub resolves them, so those that cross the border of docs/ are rewritten on both sides.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"(?<=\]\()(?P<target>[^)#:]+)(?=[#)])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from above docs/."""
    root = Path(config.config_file_path).parent
    for source, name in PAGES.items():
        text = (root / source).read_text()
        text = LINK.sub(lambda link: PAGES.get(link["target"], link["target"].removeprefix("docs/")), text)
        files.append(File.generated(config, name, content=_elsewhere(text, "", config)))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Take the mark off the link to the repository by which the theme's script asks GitHub for the number of stars."""
    return output.replace(' data-md-component="source"', "")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links out of docs/ at the pages that were added, or at the repository."""
    depth = page.file.src_uri.count("/")
    up = "../" * (depth + 1)
    for source, name in PAGES.items():
        markdown = markdown.replace(f"]({up}{source}", f"]({'../' * depth}{name}")
    return _elsewhere(markdown, up, config)


def _elsewhere(text: str, up: str, config: MkDocsConfig) -> str:
    """Links to code: it is read in the repository."""
    parts = "benches|examples|python|rust|tests|Makefile|Cargo.toml|pyproject.toml"
    return re.sub(rf"\]\({re.escape(up)}(?=(?:{parts})[/)])", f"]({config.repo_url}/blob/main/", text)
