"""Named algorithms as rows of choices; the registry that the command line and the adapters read.

::

    algorithms  those of the follow-up papers
    registry    learners, kernels and losses by name
    tasks       a learner in raw units for a task: for_task

===============  ===============  ===================  ============================  =============
name             A lives in       curvature            who enters                    on growth
===============  ===============  ===================  ============================  =============
``auto``         several spans    l'' (squared)        atoms a sample of rows        refitted
``kons``         feature space    eta*g^2              every point                   -
``ridge``        feature space    l'' (squared)        every point                   -
``sketched``     feature space    eta*g^2              a coin by leverage            -
``embedded``     span of B atoms  l''                  atoms by dependence           carry
``pros_n_kons``  span of B atoms  (sigma/2)*g^2        atoms by KORS                 restart
``con_kons``     span of B atoms  (sigma/2)*g^2        atoms by KORS                 carry
``b_kons``       span of B atoms  (sigma/2)*g^2        atoms by KORS, a cap          restart
``nons_ald``     span of B atoms  eta*g^2              atoms by dependence           carry
``pkawv``        span of B atoms  l'' (squared)        atoms given or by dependence  carry, forward
===============  ===============  ===================  ============================  =============

Two algorithms that differ in one cell differ in one argument.

*Conventions.* The follow-up papers add ``(sigma/2) g g^T`` to A where the first adds ``sigma g g^T``: their
step size is half of :func:`kons.step_sizes.for_loss`'s. They also let a new atom take effect in the row
after its own; here it does so in its own row, after the prediction. With ``"restart"`` nothing of that row
is learned either way, so the two agree; with ``"carry"`` one step differs by the new coordinate.
"""

from kons.recipes.algorithms import b_kons, con_kons, nons_ald, pkawv, pros_n_kons
from kons.recipes.dictionaries import DICTIONARIES
from kons.recipes.registry import KERNELS, LOSSES, RECIPES, Recipe, kernel_of, make
from kons.recipes.tasks import for_task, together, warmup_for

__all__ = [
    "DICTIONARIES",
    "KERNELS",
    "LOSSES",
    "RECIPES",
    "Recipe",
    "b_kons",
    "con_kons",
    "for_task",
    "kernel_of",
    "make",
    "nons_ald",
    "pkawv",
    "pros_n_kons",
    "together",
    "warmup_for",
]
