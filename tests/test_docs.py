"""Every example in README, docs/ and the docstrings runs as printed.

Sybil runs them. It has no dependencies. All blocks of a page share one namespace, so that a block can use the names of
the blocks before it. Sybil runs plain blocks, and `>>>` blocks, whose printed results it compares.
"""

import ast
import doctest
import gc
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import aiokafka
import confluent_kafka
import pyarrow
import pyarrow.parquet
import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser
from typer.testing import CliRunner

import kafka_assignors
from kafka_assignors.cli.app import app
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.metrics.measures import MEASURES
from support import jars
from support.broker import Kafka, unique
from support.offsets_records import commit_key, commit_value
from support.standalone_spark import standalone

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
# Not a module but a logger, for the logs of librdkafka.
LOGGER = "kafka_assignors.librdkafka"
# Not modules but metrics of OpenTelemetry, and their attributes.
METRICS = {measure.name for measure in MEASURES} | {"kafka_assignors.assignor"}
METRICS |= {f"kafka_assignors.{measure.label}" for measure in MEASURES if measure.label is not None}
SOURCES = sorted((ROOT / "python").glob("**/*.py"))
ELLIPSIS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(kafka_assignors.__path__, f"{kafka_assignors.__name__}.")
    return [kafka_assignors, *(importlib.import_module(module.name) for module in found)]


def marked(page: Path) -> object:
    """The page on Spark runs in the group of tests that share a Spark session."""
    marks = {
        "spark.md": [pytest.mark.needs("spark"), pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)],
        # kstreams declares a model in a form that pydantic 2.12 deprecates.
        "frameworks.md": [
            pytest.mark.needs("frameworks"),
            pytest.mark.filterwarnings("ignore:Using `@model_validator`"),
        ],
    }
    return pytest.param(page, marks=marks[page.name]) if page.name in marks else page


@pytest.mark.parametrize("page", [marked(page) for page in PAGES], ids=named)
def test_examples_run_as_printed(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedded Kafka with the topic of the pages replaces the broker on localhost."""
    # The page on frameworks replaces this class. Other tests run in this process, so the class is restored at the end.
    monkeypatch.setattr(aiokafka, "AIOKafkaConsumer", aiokafka.AIOKafkaConsumer)
    if page.name == "spark.md":
        request.getfixturevalue("spark")
    with EmbeddedKafka(topics={"orders": 6}) as kafka:
        copy = tmp_path / page.name
        copy.write_text(page.read_text().replace("localhost:9092", kafka.bootstrap_servers))
        sybil = Sybil(parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS)], path=str(tmp_path))
        document = sybil.parse(copy)
        for example in document.examples():
            example.evaluate()
        # librdkafka's producers would report the broker's end on the terminal, each second, until this process ends.
        document.namespace.clear()
        gc.collect()


# ---- the shell lines of the page on Spark ----

SPARK_PAGE = (ROOT / "docs" / "spark.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(PYSPARK_PYTHON=\S+ )?(python -m kafka_assignors\.spark|kafka-assignors spark) ")
# The options whose values are paths.
PATHS = {f"--{name}" for name in ("in", "out", "records", "commits", "offsets", "events", "topics")}
CLUSTER, INTERPRETER = "spark://host:7077", "/opt/pipeline/bin/python"


def blocks(language: str) -> list[str]:
    """The page's blocks of code in a language."""
    return [block for marked_as, block in BLOCK.findall(SPARK_PAGE) if marked_as == language]


def shell_lines() -> list[str]:
    """The commands of the page, in order. A backslash at the end of a line continues it."""
    return [line for block in blocks("") for line in block.replace("\\\n", "").splitlines()]


HERE = [line for line in shell_lines() if CLUSTER not in line]
THERE = [line for line in shell_lines() if CLUSTER in line]


def run_in(folder: Path, *command: str) -> None:
    """Runs a command like a shell in which `python` is this interpreter."""
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "KAFKA_ASSIGNORS_CACHE": str(jars.CACHE),
    }
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def run_here(folder: Path, line: str) -> None:
    """Runs a command in the Spark session of this process. Its JVM has another current folder: paths are absolute."""
    program, *words = shlex.split(line)
    assert program == "kafka-assignors"
    whole = [str(folder / word) if before in PATHS else word for before, word in zip(["", *words], words, strict=False)]
    done = CliRunner().invoke(app, whole)
    assert done.exit_code == 0, f"{line}\n{done.output}"


def test_the_shell_lines_are_commands_of_the_pipeline() -> None:
    assert len(HERE) >= 9
    assert len(THERE) == 1
    assert [line for line in shell_lines() if COMMAND.match(line) is None] == []


@pytest.mark.needs("spark")
@pytest.mark.first
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("spark")
def test_the_shell_lines_run_one_after_the_other(
    kafka_broker: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one folder and in the page's order. The page's program for a capture runs against a real broker, too.

    Two of the lines run as processes, as those of tests/spark do. The others run in the Spark of this process, since
    starting another Spark takes ten seconds of a processor. The line of the whole pipeline runs in
    tests/spark/test_pipeline.py.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_ASSIGNORS_CACHE", str(jars.CACHE))
    topic = kafka_broker.create_topic(unique("docs"), 1)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": unique("g")})
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    columns = {"key": "binary", "value": "binary", "partition": "int32", "offset": "int64", "timestamp": "int64"}
    record = dict(zip(columns, (commit_key("g", topic, 0), commit_value(42, 900), 0, 1, 1_000), strict=True))
    dump = pyarrow.Table.from_pylist([record], pyarrow.schema(list(columns.items())))
    (tmp_path / "dump").mkdir()
    pyarrow.parquet.write_table(dump, tmp_path / "dump" / "part.parquet")
    for line in HERE:
        if " pipeline " in line:
            continue
        # A tenth of the page's fleet has groups of every kind.
        small = line.replace("--groups 300 ", "--groups 30 ").replace("broker:9092", kafka_broker.bootstrap_servers)
        if " synth " in line or line.endswith(" --help"):
            run_in(tmp_path, "bash", "-c", small)
        else:
            run_here(tmp_path, small)
    (program,) = blocks("py")
    run_in(tmp_path, sys.executable, "-c", program.replace("broker:9092", kafka_broker.bootstrap_servers))
    commits = pyarrow.parquet.read_table(tmp_path / "history" / "offset_commits").to_pylist()
    assert [row["topic"] for row in commits].count(topic) == 1
    assert (tmp_path / "report" / "report.html").exists()


@pytest.mark.needs("spark")
@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_the_shell_line_for_a_cluster_runs_on_one(tmp_path: Path) -> None:
    (synth,) = (line for line in HERE if " synth " in line)
    run_in(tmp_path, "bash", "-c", synth)
    with standalone(tmp_path) as master:
        for line in THERE:
            run_in(tmp_path, "bash", "-c", line.replace(CLUSTER, master).replace(INTERPRETER, sys.executable))
    assert list((tmp_path / "replayed-there" / "rebalances").glob("*.parquet"))


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_docstrings_run_as_printed(module: ModuleType) -> None:
    assert doctest.testmod(module, optionflags=ELLIPSIS).failed == 0


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def names_in(text: str) -> set[str]:
    """Every dotted name of the package, and every name that an example imports from the package."""
    dotted = set(re.findall(r"(?<![\w/.])kafka_assignors(?:\.[A-Za-z_]\w*)+", text))
    imports = re.findall(r"^[ >.]*(from kafka_assignors[\w.]* import (?:\([^)]*\)|[^\n(]+))", text, re.MULTILINE)
    for found in imports:
        (statement,) = ast.parse(re.sub(r"^\.\.\. ", "", found, flags=re.MULTILINE)).body
        assert isinstance(statement, ast.ImportFrom)
        dotted |= {f"{statement.module}.{alias.name}" for alias in statement.names}
    return dotted - {LOGGER} - METRICS


def test_names_are_found() -> None:
    text = (
        "`kafka_assignors.a.B` and\n>>> from kafka_assignors.c import (\n...     D as E,\n... )\nkafka_assignors_core.f"
    )
    assert names_in(text) == {"kafka_assignors.a.B", "kafka_assignors.c", "kafka_assignors.c.D"}
    assert exists("kafka_assignors.errors.LagError")
    assert not exists("kafka_assignors.errors.NoError")
    assert not exists("kafka_assignors.nowhere")


@pytest.mark.parametrize("page", [*PAGES, *SOURCES], ids=named)
def test_names_exist_where_they_are_said_to_be(page: Path) -> None:
    """In pages, and in the docstrings, comments and messages of the package."""
    assert [name for name in sorted(names_in(page.read_text())) if not exists(name)] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]*)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as GitHub and mkdocs make them."""
    lines = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    headings = (re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", line).lower() for line in lines)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=named)
def test_anchors_are_headings(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]*)#([^)]*)\)", page.read_text())
    pages = [(page.parent / target if target else page, anchor) for target, anchor in links]
    assert [(target, anchor) for target, anchor in pages if anchor not in anchors(target)] == []
