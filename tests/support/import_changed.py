"""Runs a program that was written for confluent-kafka, unchanged or with its imports changed to ours.

Run as ``python import_changed.py ours|theirs program.py argument ...``.
"""

from __future__ import annotations

import ast
import importlib
import os
import signal
import sys
import types

OURS = {
    "confluent_kafka": {"Consumer", "DeserializingConsumer", "Producer", "SerializingProducer"},
    "confluent_kafka.aio": {"AIOConsumer"},
}
PACKAGE = "kafka_assignors.clients.confluent"
# `import confluent_kafka` becomes an import of this module: the client's module, with our classes in place of its own.
WHOLE = "confluent_kafka_with_ours"


class Imports(ast.NodeTransformer):
    """``from confluent_kafka import Consumer, KafkaError`` becomes two imports: ours, and the client's."""

    def __init__(self) -> None:
        self.changed = 0

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        known = OURS.get(node.module or "", set())
        ours = [each for each in node.names if each.name in known]
        theirs = [each for each in node.names if each.name not in known]
        self.changed += len(ours)
        made = [(node.module, theirs), (PACKAGE, ours)]
        return [ast.copy_location(ast.ImportFrom(*each, level=0), node) for each in made if each[1]]

    def visit_Import(self, node: ast.Import) -> ast.Import:
        for each in node.names:
            if each.name == "confluent_kafka":
                each.name, each.asname = WHOLE, each.asname or each.name
                self.changed += 1
        return node


def whole() -> types.ModuleType:
    module = types.ModuleType(WHOLE)
    module.__dict__.update(importlib.import_module("confluent_kafka").__dict__)
    for name in OURS["confluent_kafka"]:
        setattr(module, name, getattr(importlib.import_module(PACKAGE), name))
    return module


def main(which: str, program: str, *arguments: str) -> None:
    with open(program, encoding="utf-8") as file:
        tree: ast.Module = ast.parse(file.read(), program)
    if which == "ours":
        imports = Imports()
        tree = ast.fix_missing_locations(imports.visit(tree))
        if not imports.changed:
            raise ValueError(f"{program} imports nothing that we have")
        sys.modules[WHOLE] = whole()
    # A process in the background of a shell starts with SIGINT ignored, and Python does not change that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [program, *arguments]
    sys.path.insert(0, os.path.dirname(program))
    exec(compile(tree, program, "exec"), {"__name__": "__main__", "__file__": program})


if __name__ == "__main__":
    main(*sys.argv[1:])
