"""``kons learners``: the registry, a line each."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kons.cli.run import print_json
from kons.cli.screen import plain_table, printer
from kons.recipes import KERNELS, LOSSES, RECIPES
from kons.runs.settings import PLACED, SHARED

__all__ = ["show"]


def show(*, json: bool) -> int:
    """Print the names that --learner takes, and what --set takes for each."""
    if json:
        print_json(_document())
        return 0
    console = printer()
    table = plain_table()
    table.add_column("learner", no_wrap=True)
    table.add_column("what it is, and what --set takes")
    for name, recipe in RECIPES.items():
        table.add_row(Text(name, style="bold"), recipe.description)
        table.add_row("", Text(", ".join(_own(recipe.parameters)), style="dim"))
    console.print()
    console.print(table)
    console.print(Text.assemble("\nAll of them take ", (", ".join(SHARED), "dim"), " as well."))
    for what, names in (("Kernels", KERNELS), ("Losses", LOSSES)):
        console.print(Text.assemble(f"{what}: ", (", ".join(names), "dim"), "."))
    console.print("\nFor example:")
    console.print(
        Text("  kons run FILE --target COLUMN --learner embedded --set max_atoms=400", style="cyan"),
        soft_wrap=True,
    )
    console.print()
    return 0


def _own(parameters: tuple[str, ...]) -> list[str]:
    return [name for name in parameters if name not in PLACED]


def _document() -> dict[str, Any]:
    return {
        "learners": {
            name: {"description": recipe.description, "parameters": [*_own(recipe.parameters), *SHARED]}
            for name, recipe in RECIPES.items()
        },
        "kernels": list(KERNELS),
        "losses": list(LOSSES),
    }
