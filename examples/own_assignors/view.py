"""A table after each step: the partitions of each member, and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from own_assignors.scenes import Joins

if TYPE_CHECKING:
    from rich.console import Console

    from kafka_assignors import Plan
    from own_assignors.live import Troupe
    from own_assignors.scenes import Assigned, Leaves, Scene


def show(console: Console, scene: Scene, step: Joins | Leaves, plan: Plan, troupe: Troupe) -> None:
    did = "joins" if isinstance(step, Joins) else "leaves"
    table = Table(title=f"{scene.title}: {step.name} {did}", title_justify="left", caption_justify="left")
    for column in ("member", "has", "why"):
        table.add_column(column)
    for name, member in sorted(troupe.members.items()):
        assigned = troupe.assigned(name)
        table.add_row(name, listed(assigned) or "nothing", scene.why(member, assigned))
    certificate = plan.verify()
    left = f"; nobody has {len(plan.unassigned)}, {plan.unassigned[0].reason}" if plan.unassigned else ""
    table.caption = (
        f"kept {plan.kept}, moved {plan.moved}, balance score {certificate.balance_score} where "
        f"{certificate.balance_score_bound} is possible without the rule{left}"
    )
    console.print(table)


def listed(assigned: Assigned) -> str:
    return "  ".join(f"{topic} {','.join(map(str, numbers))}" for topic, numbers in assigned.items())
