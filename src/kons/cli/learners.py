"""``kons learners``: the registry, a line each."""

from __future__ import annotations

from typing import Any

from kons.cli.screen import Cell, Sheet, print_json
from kons.evaluation import RIVALS
from kons.recipes import DICTIONARIES, KERNELS, LOSSES, RECIPES, Recipe
from kons.recipes.row import SHARED
from kons.runs.settings import PLACED, Settings

__all__ = ["show"]


def show(*, json: bool) -> int:
    """Print the names that --learner takes, and what --set takes for each."""
    if json:
        learners = {
            name: _facts(recipe) | {"parameters": _told(recipe.accepts)} for name, recipe in RECIPES.items()
        }
        rivals = {name: rival.description for name, rival in RIVALS.items()}
        dictionaries = {name: _facts(row) | {"make": row.make.__name__} for name, row in DICTIONARIES.items()}
        known = {"learners": learners, "kernels": list(KERNELS), "losses": list(LOSSES), "rivals": rivals}
        print_json({**known, "dictionaries": dictionaries})
        return 0
    sheet = Sheet()
    rows: list[tuple[Cell, Cell]] = []
    for name, recipe in RECIPES.items():
        default = " (the default)" if name == Settings.learner else ""
        own = recipe.accepts if recipe.in_raw_units else recipe.parameters
        about = f"{recipe.cost} a row; not for {recipe.avoid}; {recipe.reference}."
        rows += [
            ((name, "bold"), recipe.description + default),
            *([("", about)] if recipe.reference else []),
            ("", (", ".join(_told(own)), "dim")),
        ]
    sheet.say()
    sheet.table("nt", rows, ("learner", "what it is, and what --set takes"))
    whole = ", ".join(name for name, recipe in RECIPES.items() if recipe.in_raw_units)
    plain = ", ".join(name for name, recipe in RECIPES.items() if "kernel" not in recipe.accepts)
    sheet.say(f"\nAll but {whole} take ", (", ".join(SHARED), "dim"), " as well,")
    sheet.say(f"but no kernel and bandwidth: {plain}.")
    sheet.say("Of a row: d columns, D features, B atoms, l directions, t rows so far.")
    for what, names in (("Kernels", KERNELS), ("Losses", LOSSES)):
        sheet.say(f"{what}: ", (", ".join(names), "dim"), ".")
    sheet.say("\nFor kons compare only, models of other libraries (pip install 'kons[rivals]'):")
    sheet.table("nt", [(name, (rival.description, "dim")) for name, rival in RIVALS.items()])
    sheet.say("\nDictionaries, in Python only (kons.dictionaries); a row costs, with B atoms and d features:")
    rows = []
    for name, one in DICTIONARIES.items():
        rows += [((name, "bold"), f"{one.description}; cost {one.cost}")]
        rows += [("", (f"not for {one.avoid}. {one.reference}", "dim"))]
    sheet.table("nt", rows)
    sheet.say("\nFor example:")
    sheet.command("kons run FILE --target COLUMN --learner embedded --set max_atoms=400")
    sheet.say()
    return 0


def _facts(recipe: Recipe) -> dict[str, Any]:
    names = {"description": "description", "cost": "cost", "not_for": "avoid", "reference": "reference"}
    return {word: getattr(recipe, name) for word, name in names.items()}


def _told(parameters: tuple[str, ...]) -> list[str]:
    """Without those that have an option of their own."""
    return [name for name in parameters if name not in PLACED]
