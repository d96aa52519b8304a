"""One command line: all commands are subcommands of `kafka-assignors`, and a flag means the same in each of them."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast, get_args, get_origin, get_type_hints

import pytest
from typer.models import OptionInfo
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.embedded.__main__ import parser_of
from kafka_assignors.spark.app import app as spark
from kafka_assignors.spark.commands.connection import client_settings
from support.snapshots import before, orders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import typer


ROOT = Path(__file__).parents[1]


class Flag(NamedTuple):
    """A flag of a command: its name, the type of its values, and the name of a value in `--help`."""

    command: str
    name: str
    type: Any
    metavar: str | None
    hidden: bool = False


def commands(of: typer.Typer = app, prefix: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in of.registered_commands:
        assert command.callback is not None
        yield f"{prefix}{command.name}", command.callback
    for group in of.registered_groups:
        assert group.typer_instance is not None
        yield from commands(group.typer_instance, f"{prefix}{group.name} ")


def flags() -> Iterator[Flag]:
    for command, function in commands():
        for name, hint in get_type_hints(function, include_extras=True).items():
            if get_origin(hint) is Annotated:
                kind, info, *_ = get_args(hint)
                if isinstance(info, OptionInfo):
                    # typer keeps the first name in `default` until it makes the command.
                    given = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
                    for flag in given or [f"--{name.replace('_', '-')}"]:
                        yield Flag(command, flag, kind, info.metavar, info.hidden)
    for action in parser_of("embedded")._actions:
        for flag in action.option_strings:
            kind = bool if action.nargs == 0 else action.type if isinstance(action.type, type) else str
            yield Flag("embedded", flag, kind, cast("str | None", action.metavar), action.help == argparse.SUPPRESS)


def test_every_command_is_below_one() -> None:
    names = {name for name, _ in commands()}
    assert {"describe", "plan", "embedded", "spark capture", "spark replay"} <= names
    below = {f"spark {name}" for name, _ in commands(spark)}
    assert below == {name for name in names if name.startswith("spark ")}
    assert len(below) == 9


@pytest.mark.parametrize("page", ["README.md", "docs/planner.md"])
def test_pages_list_every_command(page: str) -> None:
    text = (ROOT / page).read_text()
    every = {name.split()[0] for name, _ in commands()}
    assert {name for name in every if not re.search(rf"`(kafka-assignors )?{name}[` ]", text)} == set()


def value_of(kind: Any) -> str:
    """The type of one value, whether the flag is optional or repeatable, or neither."""
    if isinstance(kind, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
    return "choice" if issubclass(kind, Enum) else str(kind.__name__)


def test_the_type_of_a_flags_value_is_found() -> None:
    found = {(flag.command, flag.name): value_of(flag.type) for flag in flags()}
    assert (found["snapshot", "--group"], found["plan", "--group"], found["audit-keys", "--format"]) == (
        "str",
        "str",
        "choice",
    )
    assert {"str", "int", "float", "bool", "choice"} == set(found.values())


def test_a_flag_has_one_meaning() -> None:
    """In all commands a flag has one type and one form of a value. Deprecated spellings, which are hidden, may differ.

    A command about one group takes `--group` once, and another takes it repeatedly: the value is the same.
    """
    shown: dict[str, dict[tuple[str, str | None], list[str]]] = {}
    for flag in flags():
        if not flag.hidden:
            meaning = value_of(flag.type), flag.metavar
            shown.setdefault(flag.name, {}).setdefault(meaning, []).append(flag.command)
    assert len([name for name, meanings in shown.items() if sum(map(len, meanings.values())) > 1]) > 30
    assert {name: meanings for name, meanings in shown.items() if len(meanings) > 1} == {}
    forms = {tuple(flag.type) for flag in flags() if flag.name == "--format"}
    assert forms == {("text", "json", "csv"), ("text", "json")}


def test_a_command_that_reads_a_cluster_takes_its_settings_in_one_way() -> None:
    of = {command: {flag.name for flag in flags() if flag.command == command} for command, _ in commands()}
    reading = {command for command, found in of.items() if "--bootstrap-server" in found}
    assert {"describe", "audit-keys", "spark capture", "spark snapshot"} <= reading
    for command in reading:
        assert {"-X", "--config", "--bootstrap"} <= of[command], command


def test_spark_is_the_same_command_in_both_forms() -> None:
    one, other = CliRunner().invoke(app, ["spark", "replay", "--nope"]), CliRunner().invoke(spark, ["replay", "--nope"])
    assert one.exit_code == other.exit_code == 2
    assert CliRunner().invoke(app, ["spark", "synth", "--help"]).exit_code == 0


# `embedded` has a parser of its own, which always knows `-h` and `--help`.
@pytest.mark.parametrize("command", [name for name, _ in commands() if name != "embedded"])
def test_h_is_help(command: str) -> None:
    short, long = (CliRunner().invoke(app, [*command.split(), flag]) for flag in ("-h", "--help"))
    assert (short.exit_code, long.exit_code) == (0, 0)
    assert short.stdout == long.stdout


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("kafka-assignors fl", {"fleet"}),
        ("kafka-assignors spark re", {"replay", "report"}),
        ("kafka-assignors fleet --s", {"--snapshot", "--since", "--sort", "--save"}),
        ("kafka-assignors fleet --format ", {"text", "json", "csv"}),
    ],
)
def test_tab_completes(words: str, completed: set[str]) -> None:
    """With the variables that bash sets: the words, and the number of the word that it completes."""
    script = "import sys; sys.argv[0] = 'kafka-assignors'; from kafka_assignors.cli import main; main()"
    position = str(len(words.split(" ")) - 1)
    asked = {"_KAFKA_ASSIGNORS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": position}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env={**os.environ, **asked},
    )
    assert set(done.stdout.split()) == completed


def test_the_environment_names_the_brokers() -> None:
    named = {"KAFKA_ASSIGNORS_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    for command in (["fleet", "--timeout", "1"], ["describe", "--group", "g", "--timeout", "1"]):
        asked = CliRunner().invoke(app, command, env=named)
        assert (asked.exit_code, "127.0.0.1:1" in asked.stderr) == (2, True), asked.stderr
        # An option on the command line overrides the environment.
        given = CliRunner().invoke(app, [*command, "-X", "bootstrap.servers=127.0.0.1:2"], env=named)
        assert "127.0.0.1:2" in given.stderr
        none = CliRunner().invoke(app, command, env={"KAFKA_ASSIGNORS_BOOTSTRAP_SERVERS": None})
        assert "there is no broker" in none.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_ASSIGNORS_BOOTSTRAP_SERVERS", "a:1")
        assert client_settings(None, None, None) == {"bootstrap.servers": "a:1"}
        assert client_settings("b:2", None, None) == {"bootstrap.servers": "b:2"}


def test_the_commands_import_no_optional_library() -> None:
    script = "import sys, kafka_assignors.cli.app; print(*sorted({'pyspark', 'pandas', 'pyarrow', 'numpy', 'kafka', "
    script += "'aiokafka', 'confluent_kafka', 'matplotlib', 'jinja2'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=240)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "command",
    [
        ["capture", "--out", "o", "--bootstrap-server", "127.0.0.1:1", "--jar", "none"],
        ["decode", "--records", "r", "--out", "o", "--cluster", "c"],
        ["lag", "--out", "o", "--offsets", "o", "--commits", "c"],
        ["pipeline", "--out", "o"],
        ["replay", "--events", "e", "--topics", "t", "--out", "o"],
        ["report", "--in", "i", "--out", "o"],
        ["synth", "--out", "o"],
    ],
    ids=lambda command: command[0],
)
def test_without_spark_there_is_one_sentence(command: list[str], tmp_path: Path) -> None:
    for name in ("pyspark", "numpy", "pandas", "pyarrow"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name} here', name='{name}')\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "kafka_assignors.cli", "spark", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kafka-assignors: ")
    assert done.stderr.endswith("pip install kafka-assignors[spark]\n")


@pytest.mark.parametrize("form", [["kafka_assignors.cli", "embedded"], ["kafka_assignors.embedded"]], ids=" ".join)
def test_the_embedded_kafka_runs_until_it_is_interrupted(form: list[str]) -> None:
    command = [sys.executable, "-m", *form, "--port", "0", "--create-topic", "orders=3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0


def test_the_embedded_kafka_reads_its_own_options() -> None:
    command = [sys.executable, "-m", "kafka_assignors.cli", "embedded"]
    told = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, timeout=240)
    assert told.stdout.startswith("usage: kafka-assignors embedded")
    assert "--default-partitions" in told.stdout
    wrong = subprocess.run([*command, "--port", "x"], capture_output=True, text=True, check=False, timeout=240)
    assert (wrong.returncode, "kafka-assignors embedded: error: argument --port" in wrong.stderr) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the stream")
def test_a_closed_standard_output_is_one_sentence() -> None:
    command = [sys.executable, "-m", "kafka_assignors.cli", "--version"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=dict(os.environ),
    )
    said = "kafka-assignors: standard output cannot be written: Bad file descriptor\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_the_earlier_spelling_of_decode_still_works() -> None:
    golden = "0000000100017400000002000000000000000200000005"
    old = CliRunner().invoke(app, ["decode", golden, "--form", "hex"])
    assert old.stderr == "kafka-assignors: --form is deprecated; give --input-format\n"
    new = CliRunner().invoke(app, ["decode", golden, "--input-format", "hex"])
    assert (old.exit_code, old.stdout) == (new.exit_code, new.stdout) == (0, new.stdout)


DEPRECATED = [
    ("decode", "--form", "--input-format"),
    ("plan", "--all", "--all-moves"),
    ("fleet", "--looks", "--count"),
    ("autoscale", "--looks", "--readings"),
    ("autoscale", "--deadline", "--late-after"),
    ("exporter", "--groups", "--include"),
    ("audit-keys", "--partitions", "--partition-count"),
    ("spark capture", "--config-file", "--config"),
    ("spark snapshot", "--config-file", "--config"),
    ("spark replay", "--strategies", "--strategy"),
    ("spark autoscale", "--strategies", "--strategy"),
    ("spark autoscale", "--deadline", "--late-after"),
    ("spark synth", "--events", "--rebalances"),
    ("spark synth", "--snapshots", "--offset-snapshots"),
]


@pytest.mark.parametrize(("command", "old", "new"), DEPRECATED)
def test_help_has_the_new_flag_and_not_the_deprecated_one(command: str, old: str, new: str) -> None:
    shown = set(re.findall(r"(?<!\S)--[\w-]+", CliRunner().invoke(app, [*command.split(), "--help"]).stdout))
    assert (new in shown, old in shown) == (True, False)


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        ("plan --snapshot now.json --join 1", "--all", "--all-moves"),
        ("autoscale --snapshot now.json --since before.json --policy fixed(replicas=2)", "--looks 3", "--readings 3"),
        (
            "autoscale --snapshot now.json --since before.json --policy fixed(replicas=2)",
            "--deadline 7m",
            "--late-after 7m",
        ),
        ("audit-keys keys.txt", "--partitions 1", "--partition-count 1"),
    ],
)
def test_a_deprecated_flag_still_works(
    command: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    orders().save("now.json")
    before(orders(), 10, arrived=5, read=20).save("before.json")
    (tmp_path / "keys.txt").write_text("a\n")
    first, second = (CliRunner().invoke(app, [*command.split(), *given.split()]) for given in (old, new))
    assert (first.exit_code, second.exit_code, second.stderr) == (0, 0, "")
    assert first.stdout == second.stdout
    assert first.stderr == f"kafka-assignors: {old.split()[0]} is deprecated; give {new.split()[0]}\n"


def test_the_deprecated_flags_of_commands_that_end_early() -> None:
    """Some read a cluster, and the pipeline starts a JVM: each command here has a wrong option."""
    fleet = CliRunner().invoke(app, ["fleet", "--snapshot", "x.json", "--looks", "5"]).stderr.splitlines()
    assert fleet == [
        "kafka-assignors: --looks is deprecated; give --count",
        "kafka-assignors: --count goes with --watch",
    ]
    replay = ["replay", "--events", "e", "--topics", "t", "--out", "o", "--strategies", "range,best"]
    autoscale = ["autoscale", "--policy", "fixed(replicas=2)", "--offsets", "o", "--out", "o", "--strategies", "best"]
    for command in (replay, autoscale):
        done = CliRunner().invoke(spark, command)
        first, second = done.stderr.splitlines()
        assert (done.exit_code, first) == (
            2,
            "kafka-assignors: --strategies is deprecated; give --strategy for each strategy",
        )
        assert second.startswith("kafka-assignors: the strategy is 'best'; give one of")
    late = CliRunner().invoke(spark, [*autoscale[:-2], "--deadline", "60", "--strategy", "best"]).stderr
    assert late.startswith("kafka-assignors: --deadline is deprecated; give --late-after\n")
    wrong = CliRunner().invoke(spark, [*autoscale[:-2], "--late-after", "60"])
    assert (wrong.exit_code, "--late-after is '60'; give a duration such as 45m" in wrong.stderr) == (2, True)
    exporter = CliRunner().invoke(app, ["exporter", "--bootstrap-server", "b:1", "--groups", "("]).stderr.splitlines()
    assert exporter[0] == "kafka-assignors: --groups is deprecated; give --include"
    assert exporter[1].startswith("kafka-assignors: --include is '(', which is no regular expression")
    counts = ["--events", "5", "--snapshots", "1"]
    synth = CliRunner().invoke(spark, ["synth", "--out", "o", "--days", "0", *counts]).stderr.splitlines()
    assert synth[:2] == [
        "kafka-assignors: --events is deprecated; give --rebalances",
        "kafka-assignors: --snapshots is deprecated; give --offset-snapshots",
    ]
    assert synth[2].startswith("kafka-assignors: days is 0.0")


def test_the_earlier_forms_of_topic(tmp_path: Path) -> None:
    """`audit-keys` and the embedded Kafka took NAME=PARTITIONS with `--topic`, which names a topic of a cluster."""
    (tmp_path / "keys.txt").write_text("a\nb\n")
    command = ["audit-keys", str(tmp_path / "keys.txt"), "--format", "json"]
    old, new = (
        CliRunner().invoke(app, [*command, *(word for use in ("a=3:crc32", "b=3:murmur2") for word in (flag, use))])
        for flag in ("--topic", "--as-topic")
    )
    assert old.stderr == "kafka-assignors: --topic NAME=PARTITIONS is deprecated; give --as-topic NAME=PARTITIONS\n"
    assert (old.exit_code, old.stdout, new.stderr) == (new.exit_code, new.stdout, "")
    embedded = [sys.executable, "-m", "kafka_assignors.embedded", "--port", "0", "--topic", "a b"]
    done = subprocess.run(embedded, capture_output=True, text=True, check=False, timeout=240)
    first, second = done.stderr.splitlines()
    assert (done.returncode, first) == (2, "kafka-assignors: --topic is deprecated; give --create-topic")
    assert second.startswith("python -m kafka_assignors.embedded: ")
    shown = subprocess.run([*embedded[:3], "--help"], capture_output=True, text=True, check=True, timeout=240).stdout
    assert ("--create-topic NAME" in shown, " --topic" in shown) == (True, False)
