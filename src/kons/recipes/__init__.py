"""Named algorithms as rows of choices; the registry that the command line and the adapters read.

::

    algorithms  those of the follow-up papers
    explicit    learners of explicit features: linear, random features, first order in a span
    expansions  those over a kernel expansion that the literature compares with
    row         how a function of few lines becomes a recipe
    registry    learners, kernels and losses by name
    tasks       a learner in raw units for a task: for_task

===========================  ===============  ===============  ===========================  ==============
name                         A lives in       curvature        who enters                   on growth
===========================  ===============  ===============  ===========================  ==============
``auto``                     several spans    l'' (squared)    atoms a sample of rows       refitted
``adagrad``                  d columns        diagonal         -                            -
``adam``                     d columns        diagonal         -                            -
``aogd_ald``                 span of B atoms  one number       atoms by dependence          carry
``b_kons``                   span of B atoms  (sigma/2)*g^2    atoms by KORS, a cap         restart
``bogd``                     -                none             rows with a slope, a budget  -
``con_kons``                 span of B atoms  (sigma/2)*g^2    atoms by KORS                carry
``dual_sgd``                 -                none             rows with a slope, a budget  -
``embedded``                 span of B atoms  l''              atoms by dependence          carry
``fastfood``                 D random waves   none             -                            -
``fogd``                     D random waves   none             -                            -
``forgetron``                -                none             mistakes, a budget           -
``kaar``                     feature space    l'' (squared)    every point                  forward
``kons``                     feature space    eta*g^2          every point                  -
``krls``                     span of B atoms  l'' (squared)    atoms by dependence          carry
``narow``                    feature space    max(0, b - 1/q)  rows with a slope            -
``nogd``                     span of B atoms  none             the first B atoms            carry
``nons_ald``                 span of B atoms  eta*g^2          atoms by dependence          carry
``norma``                    -                none             rows with a slope            -
``ogd``                      d columns        none             -                            -
``ons``                      d columns        eta*g^2          every row                    -
``perceptron``               -                none             mistakes                     -
``pkawv``                    span of B atoms  l'' (squared)    atoms given, or dependence   carry, forward
``projectron``               span of B atoms  none             mistakes, by dependence      carry
``projectron_plus``          span of B atoms  none             mistakes, by dependence      carry
``pros_n_kons``              span of B atoms  (sigma/2)*g^2    atoms by KORS                restart
``rbp``                      -                none             mistakes, a budget           -
``ridge``                    feature space    l'' (squared)    every point                  -
``second_order_perceptron``  feature space    l'' (squared)    mistakes                     -
``skegd``                    two sketches     none             rows at random, renewed      projected
``sketched``                 feature space    eta*g^2          a coin by leverage           -
``sketched_ons``             d columns        eta*g^2          frequent directions          -
``vaw``                      d columns        l'' (squared)    every row                    forward
===========================  ===============  ===============  ===========================  ==============

Two algorithms that differ in one cell differ in one argument.

*Conventions.* The follow-up papers add ``(sigma/2) g g^T`` to A where the first adds ``sigma g g^T``: their
step size is half of :func:`kons.step_sizes.for_loss`'s. They also let a new atom take effect in the row
after its own; here it does so in its own row, after the prediction. With ``"restart"`` nothing of that row
is learned either way, so the two agree; with ``"carry"`` one step differs by the new coordinate.
"""

from kons.recipes import algorithms, expansions, explicit
from kons.recipes.algorithms import *  # noqa: F403 - each name stands where it is defined
from kons.recipes.expansions import *  # noqa: F403
from kons.recipes.explicit import *  # noqa: F403
from kons.recipes.registry import DICTIONARIES, KERNELS, LOSSES, RECIPES, kernel_of, make
from kons.recipes.row import Recipe
from kons.recipes.tasks import for_task, together, warmup_for

__all__ = ["DICTIONARIES", "KERNELS", "LOSSES", "RECIPES", "Recipe"]
__all__ += ["for_task", "kernel_of", "make", "together", "warmup_for"]
__all__ += algorithms.__all__ + expansions.__all__ + explicit.__all__
