"""The modules of the core that each module may use (docs/design.md, lib.rs)."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

CORE = Path(__file__).parents[1] / "rust" / "core" / "src"

# The rooms of the core, each with the rooms that it may use. lib.rs has the drawing.
ROOMS: dict[str, set[str]] = {
    "protocol": set(),
    "split_mix": set(),
    "expression": set(),
    "partitioner": {"protocol"},
    "offsets_topic": {"protocol"},
    "planning": {"protocol"},
    "verify": {"planning"},
    "member": {"protocol", "split_mix"},
    "embedded": {"protocol", "split_mix", "planning", "expression"},
}
# The verification shares values and the count of steps with the solvers. It shares no code that plans or settles
# claims: a defect there would otherwise pass its own check.
VALUES = {"budget", "group", "objective", "ownership", "plan", "restrictions", "score", "weights"}

# A name means one thing. These are types of several modules, each with the reason for which one name is right.
SAME_NAME = {
    "Assignor": "an assignor's name and properties, on the side of the group that plans: the members' or the broker's",
    "Change": "a move or a swap of the search for a better plan, by lag and by weight",
    "Config": "the settings of what the module runs: a member, the coordinator, a broker",
    "Connection": "the two ends of a connection: the member's and the coordinator's",
    "Connections": "all connections of that end",
    "Departure": "how a member leaves, by the classic protocol and by KIP-848's",
    "Outstanding": "the notice that the application carries out, by the classic protocol and by KIP-848's",
    "RowNumbers": "the verification numbers the rows again, since it shares no code with a solver",
}

# `("planning", "lag", "bound")` for rust/core/src/planning/lag/bound.rs.
Module = tuple[str, ...]


@cache
def core() -> dict[Module, str]:
    """The code of each module of the core, without comments and without test-only modules."""
    found: dict[Module, str] = {}

    def read(module: Module, file: Path, folder: Path) -> None:
        code = re.sub(r"//.*", "", file.read_text())
        test = r"#\[cfg\(test\)\]\s+(?:pub(?:\(\w+\))? )?mod \w+(?:;| \{.*?^\})"
        found[module] = code = re.sub(test, "", code, flags=re.DOTALL | re.MULTILINE)
        for name in re.findall(r"^(?:pub(?:\(\w+\))? )?mod (\w+);", code, flags=re.MULTILINE):
            of_its_own = folder / name / "mod.rs"
            read((*module, name), of_its_own if of_its_own.exists() else folder / f"{name}.rs", folder / name)

    read((), CORE / "lib.rs", CORE)
    return found


def expanded(tree: str) -> Iterator[str]:
    """`a::b` and `a::c::d` for `a::{b, c::{d}}`."""
    head, brace, items = tree.partition("{")
    if not brace:
        yield tree
        return
    for item in re.findall(r"(?:[^,{}]|\{[^{}]*\})+", items.rstrip().removesuffix("}")):
        yield from expanded(head + item.strip())


def known_to(module: Module) -> set[Module]:
    """The modules of the core that this module names, in a `use` or in a path."""
    code, modules = core()[module], core()
    paths = [path for tree in re.findall(r"\buse ([^;]+);", code) for path in expanded(tree)]
    # `$crate` in a macro does not count: it is resolved where the macro is used, and that use names the macro.
    paths += re.findall(r"(?<![$\w:])(?:crate|super)(?:::\w+)+", code)
    found = set()
    for path in paths:
        names = re.sub(r"\bas \w+|\s", "", path).split("::")
        at = module
        if names[0] == "crate":
            at, names = (), names[1:]
        while names and names[0] in {"self", "super"}:
            at, names = at[:-1] if names[0] == "super" else at, names[1:]
        while names and (*at, names[0]) in modules:
            at, names = (*at, names[0]), names[1:]
        found.add(at)
    return found - {module}


def types() -> dict[str, set[Module]]:
    """The modules that define a type of each name. An associated type is indented, and is no type of its own."""
    found: defaultdict[str, set[Module]] = defaultdict(set)
    public = r"^{}(?:pub(?:\([^)]*\))? )?(?:{}) (\w+)"
    for module, code in core().items():
        for definition in (public.format(" *", "struct|enum|trait|union"), public.format("", "type")):
            for name in re.findall(definition, code, flags=re.MULTILINE):
                found[name].add(module)
    return found


def test_the_core_is_read() -> None:
    """Without modules and imports, the tests below would pass and show nothing."""
    assert {module[0] for module in core() if module} == set(ROOMS)
    files = {path for path in CORE.rglob("*.rs") if "tests" not in path.parts and not path.stem.endswith("tests")}
    assert len(core()) > 0.9 * len(files)
    assert ("planning", "sticky") in known_to(("planning", "lag"))
    assert ("planning", "lag", "level") in known_to(("planning", "lag", "change"))
    assert ("embedded", "coordinator", "group") in known_to(("embedded", "coordinator", "commit"))
    assert len(types()) > 500
    assert {"GroupBuilder", "Strategy", "Field", "RackSet", "SyncGroupRequest"} <= types().keys()
    assert types()["Config"] == {
        ("member", "config"),
        ("embedded", "broker", "config"),
        ("embedded", "coordinator", "config"),
    }


def test_rooms_of_the_core_know_those_below() -> None:
    strays = [
        ("::".join(module), "::".join(known))
        for module in core()
        for known in known_to(module)
        if module and known and known[0] != module[0] and known[0] not in ROOMS[module[0]]
    ]
    assert strays == []


def test_the_verification_knows_no_solver() -> None:
    """Indirect imports included."""
    reached = {module for module in core() if module[:1] == ("verify",)}
    left = list(reached)
    while left:
        new = known_to(left.pop()) - reached
        reached |= new
        left += new
    planning = {module[1] for module in reached if module[0] == "planning"}
    assert planning == VALUES


def test_the_core_has_no_circles() -> None:
    """No module of a folder reaches itself through the others of the folder. A module and its inner modules are one."""
    folders: defaultdict[Module, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in core():
        for known in known_to(module):
            common = next((at for at, (a, b) in enumerate(zip(module, known, strict=False)) if a != b), None)
            if common is not None:
                folders[module[:common]][module[common]].add(known[common])
    circles = []
    for folder, graph in folders.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circles.append(("::".join(folder), error.args[1]))
    assert circles == []


def test_a_type_of_the_core_has_its_name_alone() -> None:
    """A reader of a name must not have to look at the imports for the type that is meant."""
    repeated = {name: sorted(map("::".join, modules)) for name, modules in types().items() if len(modules) > 1}
    assert {name: modules for name, modules in repeated.items() if name not in SAME_NAME} == {}
    assert SAME_NAME.keys() - repeated.keys() == set(), "one module alone has this type: remove it from SAME_NAME"
