"""``kons learners``: the registry, a line each."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kons.cli.run import print_json
from kons.cli.screen import plain_table, printer
from kons.recipes import KERNELS, LOSSES, RECIPES, Recipe
from kons.recipes.registry import SHARED
from kons.runs.settings import PLACED, Settings

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
        default = " (the default)" if name == Settings.learner else ""
        table.add_row(Text(name, style="bold"), recipe.description + default)
        own = recipe.accepts if recipe.in_raw_units else recipe.parameters
        table.add_row("", Text(", ".join(_told(own)), style="dim"))
    console.print()
    console.print(table)
    whole = ", ".join(name for name, recipe in RECIPES.items() if recipe.in_raw_units)
    console.print(Text.assemble(f"\nAll but {whole} take ", (", ".join(SHARED), "dim"), " as well."))
    for what, names in (("Kernels", KERNELS), ("Losses", LOSSES)):
        console.print(Text.assemble(f"{what}: ", (", ".join(names), "dim"), "."))
    console.print("\nFor example:")
    console.print(
        Text("  kons run FILE --target COLUMN --learner embedded --set max_atoms=400", style="cyan"),
        soft_wrap=True,
    )
    console.print()
    return 0


def _told(parameters: tuple[str, ...]) -> list[str]:
    """Without those that have an option of their own."""
    return [name for name in parameters if name not in PLACED]


def _entry(recipe: Recipe) -> dict[str, Any]:
    return {"description": recipe.description, "parameters": _told(recipe.accepts)}


def _document() -> dict[str, Any]:
    return {
        "learners": {name: _entry(recipe) for name, recipe in RECIPES.items()},
        "kernels": list(KERNELS),
        "losses": list(LOSSES),
    }
