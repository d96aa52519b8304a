"""`python -m partitioners`: runs the scenarios, prints tables, writes figures and plots; 1 if a bound fails."""

from __future__ import annotations

import argparse
import importlib
import sys
from fnmatch import fnmatch
from pathlib import Path

from rich.console import Console

from partitioners.report import Options, Scenario, plot, show, write

# Each module has a tuple SCENARIOS.
MODULES = ("simulated", "live_kafka_python", "kip_480", "live_librdkafka")


def scenarios() -> list[Scenario]:
    """All scenarios, in the order of their modules."""
    modules = [importlib.import_module(f"partitioners.{name}") for name in MODULES]
    return [scenario for module in modules for scenario in module.SCENARIOS]


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="partitioners", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="scenarios by name or pattern, such as simulated-*"
    )
    parser.add_argument("--quick", action="store_true", help="short runs, one round; the bars do not bind")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each contender, medians are reported (3)")
    parser.add_argument(
        "--out", type=Path, default=Path("target/bench-partitioners"), help="where figures and plots go"
    )
    parser.add_argument("--list", action="store_true", help="print the scenarios' names and stop")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1:
        parser.error(f"--rounds is {chosen.rounds}; give at least 1")
    known = scenarios()
    if chosen.list:
        print(*(scenario.name for scenario in known), sep="\n")
        return 0
    for pattern in chosen.only or ():
        if not any(fnmatch(scenario.name, pattern) for scenario in known):
            parser.error(f"--only is {pattern!r}, which fits no scenario; --list names them")
    options = Options(quick=chosen.quick, rounds=1 if chosen.quick else chosen.rounds)
    chosen.out.mkdir(parents=True, exist_ok=True)
    # If the output goes to a file, make it wide enough for the tables.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    failed = []
    for scenario in known:
        if chosen.only and not any(fnmatch(scenario.name, pattern) for pattern in chosen.only):
            continue
        result = scenario.run(options)
        show(scenario, result, console)
        write(scenario, result, options, chosen.out)
        plot(scenario, result, chosen.out)
        failed += [
            f"{scenario.name}: {bar.what}: {bar.value:.3g} ({bar.bound})" for bar in result.bars if not bar.holds
        ]
    console.print(f"figures and plots are in {chosen.out}")
    for line in failed:
        console.print(f"FAILS: {line}")
    if failed and options.quick:
        console.print("a quick run: the bars do not bind")
    return 1 if failed and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
