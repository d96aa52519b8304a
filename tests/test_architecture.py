"""The import graph of the package against the rules in docs/design.md, imports inside functions included.

And the private attributes of the Kafka clients: only the `_internals` module of each client's room may use them.
"""

import ast
import graphlib
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest

import kafka_assignors

PACKAGE = "kafka_assignors"

# From the top down. A part may import the parts below it, none beside it and none above it.
LEVELS = (
    ("cli",),
    ("planner", "spark", "metrics"),
    ("report", "cluster", "clients", "embedded"),
    ("member", "autoscale"),
    (
        "net",
        "strategies",
        "own",
        "own_plan",
        "within",
        "weighted",
        "weights",
        "assignors",
        "server_side",
        "assignor",
        "partitioners",
        "key_hash",
        "lag",
        "intervals",
    ),
    ("userdata", "group", "options", "properties", "flags"),
    ("errors", "printable", "stdout", "_core"),
)
LEVEL = {part: len(LEVELS) - depth for depth, parts in enumerate(LEVELS) for part in parts}

KAFKA_CLIENTS = {"kafka", "aiokafka", "confluent_kafka"}
# The allowed imports between parts of one level, in one direction each.
SIDEWAYS = {
    ("metrics", "planner"),
    ("strategies", "assignors"),
    ("strategies", "own"),
    ("weighted", "own"),
    ("weighted", "weights"),
    ("weighted", "assignors"),
    ("weighted", "assignor"),
    ("weights", "lag"),
    ("own", "own_plan"),
    ("own", "assignors"),
    ("own", "assignor"),
    ("own", "server_side"),
    ("assignors", "server_side"),
    ("assignors", "assignor"),
    ("server_side", "assignor"),
    ("assignors", "lag"),
    ("userdata", "group"),
}

# The parts that may import each optional dependency.
ALLOWED = {
    **{client: {"clients", "lag"} for client in KAFKA_CLIENTS},
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "pyarrow": {"spark", "planner", "key_hash"},
    "numpy": {"spark", "report"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "typer": {"cli", "spark"},
    "rich": {"report", "cli", "spark"},
    "prometheus_client": {"metrics"},
    "opentelemetry": {"metrics"},
    "pytest": {"embedded"},
}


ROOT = Path(kafka_assignors.__file__).parent
PRIVATE = re.compile(r"_[a-z]\w*$")
# The modules that handle objects of the clients, and may not use their private attributes.
OUTSIDE = sorted(
    path
    for path in [*ROOT.glob("lag/*.py"), *ROOT.glob("cluster/*.py"), *ROOT.glob("clients/**/*.py")]
    if path.name != "_internals.py"
)
# Private names of this package that several of its modules and classes use. No client may have them.
OURS = {
    "_attentive_consume",
    "_attentive_poll",
    "_checked",
    "_choose_partition",
    "_core",
    "_disown",
    "_on_statistics",
    "_plan_assignment",
    "_plan_with",
    "_rebalance",
    "_summoned",
    "_unplugged",
    "_was_closed",
}
# The classes of two modules that have one name, with the reason. Classes that only the rooms of clients have are not
# here: the same name means the same thing for each client.
_PLUG_IN = "public: an assignor, and the plug-in of a client that has it"
_PARTITIONER = "public: a partitioner, and its subclass for kafka-python"
_ERROR = "public: an error, and its subclass that is an error of the client"
SAME_NAME = {
    "AdaptivePartitioner": _PARTITIONER,
    "Cluster": "public: what a partitioner reads, and what a RateSource reads",
    "CooperativeStickyAssignor": _PLUG_IN,
    "CustomAssignor": _PLUG_IN,
    "DefaultPartitioner": _PARTITIONER,
    "LagBasedAssignor": _PLUG_IN,
    "Limits": "public: of the lag in planner.fleet, and of the figures in report.recommend",
    "OptionError": _ERROR,
    "Partitioner": _PARTITIONER,
    "RoundRobinPartitioner": _PARTITIONER,
    "StickyAssignor": _PLUG_IN,
    "StickyStreamJoinAssignor": _PLUG_IN,
    "TopicMetadataError": _ERROR,
    "UniformStickyPartitioner": _PARTITIONER,
}


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(PACKAGE, include_external_packages=True, cache_dir=None)


def edges() -> list[tuple[str, str]]:
    """All direct imports, importer first. The root package re-exports public names, and belongs to no part."""
    found = graph()
    return sorted(
        (importer, imported)
        for importer in found.modules
        if importer.startswith(f"{PACKAGE}.")
        for imported in found.find_modules_directly_imported_by(importer)
    )


def part(module: str) -> str:
    """`clients` for `kafka_assignors.clients.aiokafka`."""
    return module.split(".")[1]


def test_every_part_has_a_level() -> None:
    parts = {part(module) for module in graph().modules if module.startswith(f"{PACKAGE}.")}
    assert parts <= set(LEVEL), f"give {sorted(parts - set(LEVEL))} a place in LEVELS and in docs/design.md"


def test_imports_go_downwards() -> None:
    upwards = [
        (importer, imported)
        for importer, imported in edges()
        if imported.startswith(f"{PACKAGE}.")
        and part(importer) != part(imported)
        and LEVEL[part(imported)] >= LEVEL[part(importer)]
        and (part(importer), part(imported)) not in SIDEWAYS
    ]
    assert upwards == []


def test_nobody_below_imports_the_root() -> None:
    """The extension module has no Python source, so that grimp counts an import of it as an import of the root."""
    lines = [
        (importer, details["line_contents"])
        for importer, imported in edges()
        if imported == PACKAGE and part(importer) != "cli"
        for details in graph().get_import_details(importer=importer, imported=PACKAGE)
    ]
    assert [line for line in lines if line[1] != f"from {PACKAGE} import _core"] == []


def test_no_two_classes_have_one_name() -> None:
    """A name of `SAME_NAME` that only one module has any more fails as well."""
    modules: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, set()).add(str(path.relative_to(ROOT)))
    rooms = tuple(f"clients/{client}/" for client in ("aiokafka", "confluent", "kafka_python"))
    double = {
        name: sorted(found)
        for name, found in modules.items()
        if len(found) > 1 and not all(each.startswith(rooms) for each in found)
    }
    assert {name: found for name, found in double.items() if name not in SAME_NAME} == {}, "rename one of each pair"
    assert set(SAME_NAME) == set(double), "take the names that are unique now off SAME_NAME"


def test_no_import_circles() -> None:
    """Imports for type annotations included. The root package re-exports public names; no module below imports it."""
    imports: dict[str, set[str]] = {}
    for importer, imported in edges():
        if imported.startswith(f"{PACKAGE}."):
            imports.setdefault(importer, set()).add(imported)
    graphlib.TopologicalSorter(imports).prepare()


def test_what_the_clients_share_knows_no_client() -> None:
    strays = [
        (importer, imported)
        for importer, imported in edges()
        if importer.startswith(f"{PACKAGE}.clients.common") and imported in KAFKA_CLIENTS
    ]
    assert strays == []


def test_clients_never_import_each_other() -> None:
    def client(module: str) -> str:
        return module.split(".")[2] if module.count(".") >= 2 else ""

    crossing = [
        (importer, imported)
        for importer, imported in edges()
        if imported.startswith(f"{PACKAGE}.") and part(importer) == part(imported) == "clients"
        if client(importer) != client(imported) and client(imported) != "common"
    ]
    assert crossing == []


def test_optional_dependencies_stay_in_their_rooms() -> None:
    strays = [
        (importer, imported)
        for importer, imported in edges()
        if imported in ALLOWED and part(importer) not in ALLOWED[imported]
    ]
    assert strays == []


def test_the_package_needs_nothing_but_the_standard_library() -> None:
    foreign = {imported for _, imported in edges() if not imported.startswith(PACKAGE)}
    assert foreign - sys.stdlib_module_names - set(ALLOWED) == set()


def test_importing_the_package_imports_no_client() -> None:
    script = f"import sys, {PACKAGE}; print(*sorted({set(ALLOWED)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# The private attributes of the clients.


def is_self(node: ast.expr) -> bool:
    return ast.unparse(node) in ("self", "cls", "super()")


def touched(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each use of a private attribute of another object than `self`, by a dot or by `getattr` etc."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and PRIVATE.match(node.attr) and not is_self(node.value):
            yield node.lineno, node.attr
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "setattr", "delattr"):
            name = node.args[1]
            first = name.values[0] if isinstance(name, ast.JoinedStr) else name
            if isinstance(first, ast.Constant) and re.match("_(?!_)", str(first.value)):
                yield node.lineno, ast.unparse(name)


def own_names(tree: ast.AST) -> set[str]:
    """The private methods that a class defines, and the private attributes of `self` that it uses."""
    methods = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_self(node.value)}
    return {name for name in methods | used if PRIVATE.match(name)}


def names_of_clients(kind: type) -> set[str]:
    """The private names that a class inherits from classes of a client."""
    names: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.split(".")[0] not in KAFKA_CLIENTS:
            continue
        names |= {name for name in vars(base) if PRIVATE.match(name)}
        try:
            names |= own_names(ast.parse(textwrap.dedent(inspect.getsource(base))))
        except (OSError, TypeError):
            # A class in C: `vars` shows all of its names.
            continue
    return names


def module_of(path: Path) -> Any:
    name = ".".join([PACKAGE, *path.relative_to(ROOT).with_suffix("").parts])
    return importlib.import_module(name.removesuffix(".__init__"))


def test_what_belongs_to_a_client_is_found() -> None:
    """Tests the three functions that the tests below rely on."""
    tree = ast.parse("consumer._coordinator; getattr(client, f'_{name}'); hasattr(client, '_closed'); self._own = 1")
    assert [name for _, name in touched(tree)] == ["_coordinator", "f'_{name}'", "'_closed'"]
    internals = importlib.import_module(f"{PACKAGE}.clients.aiokafka._internals")
    assert {"_partition", "_serialize", "_metadata"} <= names_of_clients(internals.HookedProducer)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_private_attributes_of_clients_are_touched_in_internals_only(path: Path) -> None:
    strays = [(line, name) for line, name in touched(ast.parse(path.read_text())) if name not in OURS]
    assert strays == []


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_subclasses_of_the_clients_classes_have_private_names_of_their_own(path: Path) -> None:
    module = module_of(path)
    trees = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}
    for name, tree in trees.items():
        assert own_names(tree) & names_of_clients(getattr(module, name)) == set(), name


def test_our_private_names_are_no_clients() -> None:
    """No client defines a name in `OURS`. The tests above can therefore allow these names on any object."""
    defined = re.compile(rf"(?:def |self\.)({'|'.join(sorted(OURS))})\b")
    clients = [Path(importlib.import_module(client).__file__ or "").parent for client in sorted(KAFKA_CLIENTS)]
    sources = [path.read_text(errors="ignore") for client in clients for path in client.rglob("*.py")]
    assert len(sources) > 100
    assert {name for source in sources for name in defined.findall(source)} == set()
