"""Every example in README, docs/ and the docstrings runs as printed.

Sybil reads them: it has no dependencies, runs the blocks of one page in one namespace, so that a page reads as a story,
and takes both plain blocks and `>>>` blocks, whose printed results it compares.
"""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

import kafka_assignors
from kafka_assignors.embedded import EmbeddedKafka

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
ELLIPSIS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(kafka_assignors.__path__, f"{kafka_assignors.__name__}.")
    return [kafka_assignors, *(importlib.import_module(module.name) for module in found)]


def marked(page: Path) -> object:
    """The page that needs Spark goes where the session is."""
    spark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]
    return pytest.param(page, marks=spark) if page.name == "spark.md" else page


@pytest.mark.parametrize("page", [marked(page) for page in PAGES], ids=named)
def test_examples_run_as_printed(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """What a page takes for a broker on this machine is an embedded one, with the topic that the pages speak of."""
    if page.name == "spark.md":
        request.getfixturevalue("spark")
    with EmbeddedKafka(topics={"orders": 6}) as kafka:
        copy = tmp_path / page.name
        copy.write_text(page.read_text().replace("localhost:9092", kafka.bootstrap_servers))
        sybil = Sybil(parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS)], path=str(tmp_path))
        for example in sybil.parse(copy).examples():
            example.evaluate()


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_docstrings_run_as_printed(module: ModuleType) -> None:
    assert doctest.testmod(module, optionflags=ELLIPSIS).failed == 0


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]*)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if target and not (page.parent / target).exists()] == []
