"""Who may know whom (docs/design.md): the import graph of the package, imports inside functions included."""

import subprocess
import sys
from functools import cache

import grimp

PACKAGE = "kafka_assignors"

# From the top down; a part may import what stands below it, never what stands beside or above.
LEVELS = (
    ("cli",),
    ("planner", "spark"),
    ("report", "cluster", "clients", "embedded"),
    ("net", "assignors", "assignor", "partitioners", "key_hash", "lag"),
    ("userdata", "group"),
    ("errors", "printable", "stdout", "_core"),
)
LEVEL = {part: len(LEVELS) - depth for depth, parts in enumerate(LEVELS) for part in parts}

KAFKA_CLIENTS = {"kafka", "aiokafka", "confluent_kafka"}
# Neighbours that do know each other, one way.
SIDEWAYS = {("assignors", "assignor"), ("assignors", "lag"), ("userdata", "group")}

# Who may import which optional dependency.
ALLOWED = {
    **{client: {"clients", "cluster", "lag"} for client in KAFKA_CLIENTS},
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "pyarrow": {"spark", "planner", "key_hash"},
    "numpy": {"spark", "report"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "typer": {"cli", "spark"},
    "rich": {"report", "cli", "spark"},
    "pytest": {"embedded"},
}


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(PACKAGE, include_external_packages=True, cache_dir=None)


def edges() -> list[tuple[str, str]]:
    """All direct imports, importer first; the root package re-exports the vocabulary and is nobody's part."""
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
    """An import of the extension module counts for grimp as one of the root, since it has no Python source."""
    lines = [
        (importer, details["line_contents"])
        for importer, imported in edges()
        if imported == PACKAGE and part(importer) != "cli"
        for details in graph().get_import_details(importer=importer, imported=PACKAGE)
    ]
    assert [line for line in lines if line[1] != f"from {PACKAGE} import _core"] == []


def test_clients_never_import_each_other() -> None:
    def client(module: str) -> str:
        return module.split(".")[2] if module.count(".") >= 2 else ""

    crossing = [
        (importer, imported)
        for importer, imported in edges()
        if imported.startswith(f"{PACKAGE}.") and part(importer) == part(imported) == "clients"
        if client(importer) != client(imported) and not client(imported).startswith("_")
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
