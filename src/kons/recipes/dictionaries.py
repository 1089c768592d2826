"""The registry of dictionaries, for ``kons learners`` and for those who choose by name."""

from kons.dictionaries import (
    KORS,
    SQUEAK,
    FrequentDirections,
    KernelPCA,
    LinearDependence,
    RowSampling,
    UniformSample,
)
from kons.recipes.row import Recipe, told

__all__ = ["DICTIONARIES"]

#: Every dictionary by its name: ``DICTIONARIES[name].make(...)``.
DICTIONARIES: dict[str, Recipe] = {
    name: Recipe(made, **told(made))
    for name, made in {
        "kors": KORS,
        "squeak": SQUEAK,
        "row_sampling": RowSampling,
        "uniform": UniformSample,
        "linear_dependence": LinearDependence,
        "frequent_directions": FrequentDirections,
        "kernel_pca": KernelPCA,
    }.items()
}
