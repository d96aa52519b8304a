"""`kafka-assignors audit-keys`, on the command line, and its parts."""

import base64
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import kafka_assignors
from kafka_assignors import MissingDependencyError, OptionError
from kafka_assignors.cli.app import app
from kafka_assignors.errors import KeyFileError
from kafka_assignors.planner.key_files import read_keys
from kafka_assignors.planner.keys import ANYWHERE, TopicUse, audit, compare, infer

KEYS = [b"user-%d" % number for number in range(1000)]
THEIRS = {"murmur2": confluent_kafka.murmur2, "crc32": confluent_kafka.consistent, "fnv1a": confluent_kafka.fnv1a}


def placed(name: str, partitions: int, keys: list[bytes] = KEYS) -> list[tuple[bytes | None, int]]:
    return [(key, THEIRS[name](key, partitions)) for key in keys]


# ---- the audit of keys ----


def test_disagreements_are_those_of_the_clients() -> None:
    report = audit([*KEYS, KEYS[0], None], [TopicUse("orders", 12)], examples=2)
    assert (report.records, report.keys, report.null, report.empty) == (1002, 1000, 1, 0)
    assert [each.hashes for each in report.disagreements] == [
        ("murmur2", "crc32"),
        ("murmur2", "fnv1a"),
        ("crc32", "fnv1a"),
    ]
    for each in report.disagreements:
        one, other = (THEIRS[name] for name in each.hashes)
        differ = [(key, (one(key, 12), other(key, 12))) for key in KEYS if one(key, 12) != other(key, 12)]
        assert (each.differ, each.share) == (len(differ), len(differ) / 1000)
        assert [(example.key, example.partitions) for example in each.examples] == differ[:2]
        assert 0.8 < each.share < 1


def test_spreads_count_records_not_keys() -> None:
    records = [*KEYS, *[KEYS[0]] * 500]
    for spread in audit(records, [TopicUse("orders", 7)]).spreads:
        expected = Counter(THEIRS[spread.hash](key, 7) for key in records)
        assert spread.records == tuple(expected[number] for number in range(7))
        assert (spread.fewest, spread.most, spread.empty) == (min(expected.values()), max(expected.values()), 0)
    few = audit([b"a"], [TopicUse("orders", 3)]).spreads[0]
    assert (few.fewest, few.most, few.empty) == (0, 1, 2)


def test_an_empty_key_is_anywhere_for_librdkafka() -> None:
    report = audit([b""], [TopicUse("a", 5, "crc32"), TopicUse("b", 5, "crc32")])
    spreads = {spread.hash: spread for spread in report.spreads}
    assert (spreads["crc32"].anywhere, spreads["crc32"].most, spreads["murmur2"].most) == (1, 0, 1)
    example = report.disagreements[0].examples[0]
    assert (example.key, example.partitions) == (b"", (confluent_kafka.murmur2(b"", 5), ANYWHERE))
    assert not report.agree
    assert "each of the 1 records with an empty key anywhere" in report.joins[0].reason
    # With a single partition, a record without a fixed place can only go there.
    assert audit([b""], [TopicUse("a", 1), TopicUse("b", 1)]).agree


@pytest.mark.parametrize(
    ("one", "other", "joins", "reason"),
    [
        ((12, "murmur2"), (12, "murmur2"), True, "both have 12 partitions and are written with murmur2"),
        ((12, "murmur2"), (6, "murmur2"), False, "they have 12 and 6 partitions"),
        ((12, "crc32"), (12, "murmur2"), False, "they are written with crc32 and murmur2, which put"),
        ((12, None), (12, "murmur2"), False, "they may be written with"),
        ((1, None), (1, "fnv1a"), True, "the hashes put every one of these keys into the same partition"),
    ],
)
def test_which_topics_join(one: tuple[int, str | None], other: tuple[int, str], joins: bool, reason: str) -> None:
    report = audit(KEYS, [TopicUse("a", *one), TopicUse("b", *other)])
    assert (report.joins[0].topics, report.joins[0].joins, report.agree) == (("a", "b"), joins, joins)
    assert report.joins[0].reason.startswith(reason)


def test_every_pair_of_topics_is_judged() -> None:
    uses = [TopicUse("a", 12, "murmur2"), TopicUse("b", 12, "murmur2"), TopicUse("c", 12, "crc32")]
    report = audit(KEYS, uses)
    assert [(join.topics, join.joins) for join in report.joins] == [
        (("a", "b"), True),
        (("a", "c"), False),
        (("b", "c"), False),
    ]
    assert not report.agree


@pytest.mark.parametrize("count", [0, -1, 2**31])
def test_topics_that_there_are_not(count: int) -> None:
    with pytest.raises(OptionError, match=rf"topic 'orders' is to have {count} partitions; give 1 to 2147483647"):
        TopicUse("orders", count)


def test_nothing_to_audit() -> None:
    with pytest.raises(OptionError, match="topic 'orders' has the hash 'md5'; give one of murmur2, crc32, fnv1a"):
        TopicUse("orders", 1, "md5")
    with pytest.raises(OptionError, match=r"there is no key to audit \(2 records without one\)"):
        audit([None, None], [TopicUse("orders", 1)])
    with pytest.raises(OptionError, match="there is no topic"):
        audit(KEYS, [])
    with pytest.raises(OptionError, match="there is no topic"):
        compare([])
    with pytest.raises(OptionError, match="topic 'orders' has no key to audit: none of 1 records has a key"):
        compare([("orders", 2, [(None, 1)])])
    with pytest.raises(OptionError, match="a record of 'orders' is in partition 2; it has 0 to 1"):
        infer("orders", 2, [(b"a", 2)])


# ---- the partitions of existing records ----


@pytest.mark.parametrize("name", THEIRS)
def test_the_hash_of_a_topic_is_found(name: str) -> None:
    found = infer("orders", 12, [*placed(name, 12), (None, 3)])
    assert (found.records, found.keyed, found.hashes, found.neither) == (1001, 1000, (name,), 0)
    assert found.matches[name] == 1000
    assert all(count < 200 for other, count in found.matches.items() if other != name)
    assert found.text == f"all 1000 keyed records are placed with {name}"


def test_one_partition_tells_nothing_and_joins() -> None:
    report = compare([("a", 1, placed("crc32", 1)), ("b", 1, placed("murmur2", 1))])
    assert report.placements[0].text == "all 1000 keyed records fit murmur2 as well as crc32 as well as fnv1a"
    assert report.agree


def test_a_mix_is_named() -> None:
    found = infer("orders", 12, placed("murmur2", 12, KEYS[:600]) + placed("crc32", 12, KEYS[600:]))
    assert (found.hashes, found.neither, found.moved) == ((), 0, None)
    both = sum(a == b for a, b in zip(placed("murmur2", 12), placed("crc32", 12), strict=True))
    assert found.only["murmur2"] + found.only["crc32"] + both >= 900
    assert found.text.startswith(f"mixed: of 1000 keyed records only murmur2 explains {found.only['murmur2']} (")
    assert not compare([("orders", 12, placed("murmur2", 12, KEYS[:600]) + placed("crc32", 12, KEYS[600:]))]).agree


def test_a_topic_that_has_grown_is_told() -> None:
    found = infer("orders", 12, placed("crc32", 8, KEYS[:500]) + placed("crc32", 12, KEYS[500:]))
    assert found.moved is not None
    count, name, partitions = found.moved
    assert (name, partitions) == ("crc32", 8)
    assert count == found.neither > 250
    assert "crc32 over 8 partitions explains" in found.text


def test_a_partitioner_of_their_own_is_explained_by_nothing() -> None:
    found = infer("orders", 12, [(key, len(key) % 12) for key in KEYS])
    assert (found.hashes, found.moved) == ((), None)
    assert found.neither > 500


@pytest.mark.parametrize(
    ("other", "joins", "reason"),
    [
        (placed("murmur2", 12), True, "both have 12 partitions and are placed with murmur2; 0 of 1000 keys seen in"),
        (placed("crc32", 12), False, "they are placed with murmur2 and crc32; "),
        (placed("murmur2", 12) + placed("crc32", 12), False, "no single hash explains 'b'; "),
    ],
    ids=["same", "other", "mixed"],
)
def test_which_live_topics_join(other: list[tuple[bytes | None, int]], joins: bool, reason: str) -> None:
    report = compare([("a", 12, placed("murmur2", 12)), ("b", 12, other)])
    assert (report.agree, report.joins[0].joins) == (joins, joins)
    assert report.joins[0].reason.startswith(reason)


def test_counts_must_be_equal_whatever_the_hash() -> None:
    report = compare([("a", 12, placed("murmur2", 12)), ("b", 6, placed("murmur2", 6))])
    assert not report.agree
    assert report.joins[0].reason.startswith("they have 12 and 6 partitions; ")


# ---- files ----


def test_files_of_lines(tmp_path: Path) -> None:
    text = tmp_path / "keys.txt"
    text.write_bytes(b"one\ntwo\r\n\n\xff\xfe\nlast")
    assert read_keys(str(text)) == [b"one", b"two", b"", b"\xff\xfe", b"last"]
    assert read_keys(str(text), most=2) == [b"one", b"two"]
    for form, encode in (("hex", lambda key: key.hex().encode()), ("base64", base64.b64encode)):
        text.write_bytes(b"\n".join(map(encode, KEYS)))
        assert read_keys(str(text), form=form) == KEYS


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_of_columns(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"keys.{ending}"
    table = pyarrow.table({"id": ["007", "x", "größe"], "number": [1, 2, 3]})
    if ending == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)
    keys = [b"007", b"x", "größe".encode()]
    assert read_keys(str(path), column="id") == keys
    assert read_keys(str(path), column="id", most=1) == keys[:1]
    with pytest.raises(KeyFileError, match="no column is named; give one of id, number"):
        read_keys(str(path))
    with pytest.raises(KeyFileError, match="there is no column 'key'; give one of id, number"):
        read_keys(str(path), column="key")
    path.write_bytes(b"")
    with pytest.raises(KeyFileError, match=f"cannot be read as {ending}"):
        read_keys(str(path), column="id")


def test_parquet_keeps_nulls_and_refuses_numbers(tmp_path: Path) -> None:
    path = tmp_path / "keys.parquet"
    kind: Any = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table({"id": pyarrow.array(["a", None], kind)}), path)
    assert read_keys(str(path)) == [b"a", None]
    pyarrow.parquet.write_table(pyarrow.table({"id": [1]}), path)
    with pytest.raises(KeyFileError, match="column 'id' is of type int64; give text or binary"):
        read_keys(str(path))


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys"
    with pytest.raises(KeyFileError, match="keys cannot be read: No such file"):
        read_keys(str(path))
    path.write_bytes(b"00ff\nxyz\n")
    with pytest.raises(KeyFileError, match="keys, line 2: not hex"):
        read_keys(str(path), form="hex")
    with pytest.raises(KeyFileError, match="keys, line 2: not base64"):
        read_keys(str(path), form="base64")
    with pytest.raises(KeyFileError, match="the format 'xml' is not one; give one of text, hex"):
        read_keys(str(path), form="xml")
    with pytest.raises(KeyFileError, match="text has no column 'id'"):
        read_keys(str(path), column="id")
    with pytest.raises(KeyFileError, match="0 keys are asked for; give at least 1"):
        read_keys(str(path), most=0)
    path.write_bytes(b"x" * (5 << 20))
    with pytest.raises(KeyFileError, match="line 1: longer than 4194304 bytes"):
        read_keys(str(path))
    for module in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install kafka-assignors\[arrow\]"):
        read_keys("keys.parquet")


# ---- the command ----


@pytest.fixture
def keys_file(tmp_path: Path) -> str:
    path = tmp_path / "keys.txt"
    path.write_bytes(b"\n".join(KEYS) + b"\n")
    return str(path)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["audit-keys", *arguments])


def test_the_exit_status_is_for_scripts(keys_file: str) -> None:
    assert call(keys_file, "--as-topic=a=12:murmur2", "--as-topic=b=12:murmur2").exit_code == 0
    assert call(keys_file, "--as-topic=a=12:murmur2", "--as-topic=b=12:crc32").exit_code == 1
    assert call(keys_file, "--as-topic=a=12", "--as-topic=b=12").exit_code == 1
    assert call(keys_file, "--partition-count=1", "--partition-count=12").exit_code == 1
    assert call(keys_file, "--partition-count=1").exit_code == 0


def test_text_names_the_verdict(keys_file: str) -> None:
    done = call(keys_file, "--as-topic=orders=12:murmur2", "--as-topic=payments=12:crc32")
    assert "orders and payments do NOT join: they are written with murmur2 and crc32" in done.stdout
    assert f"'user-0': {THEIRS['murmur2'](KEYS[0], 12)}, {THEIRS['crc32'](KEYS[0], 12)}" in done.stdout
    assert "murmur2: Java" in done.stdout
    assert call(keys_file, "--partition-count=1").stdout.rstrip().endswith("The hashes agree on every key.")


def test_json_is_the_report(keys_file: str) -> None:
    topics = "--as-topic=orders=12:murmur2", "--as-topic=payments=12:crc32"
    done = call(keys_file, *topics, "--format=json", "--examples=1")
    report = json.loads(done.stdout)
    assert (report["agree"], report["records"], report["keys"]) == (False, 1000, 1000)
    assert report["joins"][0]["topics"] == ["orders", "payments"]
    first = report["disagreements"][0]
    assert (first["hashes"], first["partitions"]) == (["murmur2", "crc32"], 12)
    assert bytes.fromhex(first["examples"][0]["key"]) in KEYS
    assert sum(report["spreads"][0]["records"]) == 1000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "there are no keys; give a file of them, or --bootstrap-server"),
        (["{keys}"], "there is no partition count; give --partition-count or --as-topic"),
        (["{keys}", "--partition-count=2", "--as-topic=a=2"], "give either --partition-count or --as-topic"),
        (["{keys}", "--as-topic=a"], "--as-topic 'a' is not NAME=PARTITIONS"),
        (["{keys}", "--topic=a"], "--topic 'a' is a topic of a live cluster, and the keys are in a file"),
        (["{keys}", "--as-topic=a=2:md5"], "topic 'a' has the hash 'md5'"),
        (["{keys}", "--partition-count=0"], "partitions is 0; give 1 to 2147483647"),
        (["{keys}", "--partition-count=1", "-Xa=b"], "-X and --config are for a live cluster"),
        (["--topic=a", "-Xa=b"], "there is no broker; give --bootstrap-server"),
        (["--topic=a", "--config=a=secret"], "--config is the name of a file"),
        (["nowhere", "--partition-count=1"], "nowhere cannot be read: No such file"),
        (
            ["{keys}", "--bootstrap=localhost:1", "--topic=a"],
            "are for a live cluster, whose topics have the keys; give no file",
        ),
        (["--bootstrap=localhost:1", "--as-topic=a=2"], "there is no topic to read; give at least one --topic NAME"),
        (["--bootstrap=localhost:1", "--topic=a/b"], "--topic 'a/b' is no topic's name"),
        (["--bootstrap=localhost:1", "--topic=a", "-Xpassword"], "-X number 1 is not NAME=VALUE"),
        (["--bootstrap=localhost:1"], "there is no topic to read; give at least one"),
    ],
)
def test_bad_input_is_one_sentence(keys_file: str, arguments: list[str], text: str) -> None:
    done = call(*(argument.format(keys=keys_file) for argument in arguments))
    assert done.exit_code == 2
    assert done.stderr.startswith("kafka-assignors: ")
    assert text in done.stderr
    assert done.stdout == ""


def script(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "kafka_assignors.cli", *arguments]
    environment = os.environ | ({"PYTHONPATH": path} if path else {})
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=environment, input="a\n"
    )


def test_the_installed_command() -> None:
    assert script("--version").stdout.strip() == kafka_assignors.__version__
    done = script("audit-keys", "-", "--partition-count=1")
    assert (done.returncode, done.stderr) == (0, "")
    assert script("audit-keys", "--unknown").returncode == 2
    command = Path(sys.executable).with_name("kafka-assignors")
    assert subprocess.run([command, "--version"], capture_output=True, check=True, timeout=240).stdout


def test_without_typer_there_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('no typer here', name='typer')\n")
    done = script("--version", path=str(tmp_path))
    assert (done.returncode, done.stderr) == (
        2,
        "kafka-assignors needs typer and rich: pip install kafka-assignors[cli]\n",
    )
