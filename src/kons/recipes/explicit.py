"""Learners of explicit features, each a row of choices for :class:`kons.FeatureLearner`; one also has points.

================  =================  ==================  ==========================================
name              features           curvature           reference
================  =================  ==================  ==========================================
``ogd``           columns            none                Zinkevich 2003
``adagrad``       columns            diagonal            Duchi, Hazan, Singer 2011
``adam``          columns            diagonal, discount  Kingma, Ba 2015
``ons``           columns            gradient            Hazan, Agarwal, Kale 2007
``sketched_ons``  columns            sketched gradient   Luo, Agarwal, Cesa-Bianchi, Langford 2016
``vaw``           columns            hessian, forward    Vovk 2001; Azoury, Warmuth 2001
``fogd``          random Fourier     none                Lu, Hoi, Wang, Zhao, Liu 2016
``fastfood``      Fastfood           none                Le, Sarlos, Smola 2013
``dual_sgd``      points, Fourier    none                Le, Nguyen, Nguyen, Phung 2016
``nogd``          span of first B    none                Lu, Hoi, Wang, Zhao, Liu 2016
``aogd_ald``      span, dependence   one number          Li, Liao 2023
``skegd``         two sketches       none                Zhang, Liao 2019
================  =================  ==================  ==========================================
"""

from __future__ import annotations

from typing import Any

from kons.arrays import require_number
from kons.kernels import Kernel, Polynomial
from kons.learners import FeatureLearner, FunctionalGradient
from kons.losses import Hinge, Loss, Squared
from kons.policies import Budget
from kons.recipes.algorithms import UNLIMITED
from kons.recipes.row import Choices, row

__all__ = ["adagrad", "adam", "aogd_ald", "dual_sgd", "fastfood", "fogd", "nogd", "ogd", "ons", "skegd"]
__all__ += ["sketched_ons", "vaw"]

#: The columns and a constant.
AFFINE = Polynomial(degree=1, offset=1.0)


@row(FeatureLearner)
def ogd(loss: Loss, *, bound: float = 1.0, step_size: Any = None, radius: float | None = None) -> Choices:
    """Linear, online gradient descent.

    ::

        u <- u - eta_t g x

    Regret O(sqrt(T)), whatever the losses. ``step_size`` is a number or a function of t; None is
    ``bound/(L max |x|^2 sqrt(t))``. Where columns are related ``ons`` and ``vaw`` learn in a fraction of the
    rows.

    :cost: O(d)
    :not for: columns of different scales, or that go together
    :reference: Zinkevich, ICML 2003

    >>> from kons import Squared
    >>> learner = ogd(Squared())
    >>> for t in range(100):
    ...     learner.learn_one([1.0], 0.5)
    >>> round(learner.predict_one([1.0]), 3)
    0.5
    """
    return {"kernel": AFFINE, "curvature": "scaled" if step_size is None else "none"}


@row(FeatureLearner)
def adagrad(
    loss: Loss, *, bound: float = 1.0, step_size: Any = None, regularization: float = 1e-8
) -> Choices:
    """Linear, a step size for each column by its past slopes.

    ::

        u_i <- u_i - eta G_i / (alpha + sqrt(sum_s G_si^2))

    AdaGrad: regret O(sqrt(T)), and less where slopes are sparse. ``step_size`` None is ``bound/10``.

    :cost: O(d)
    :not for: columns that go together, which a diagonal does not see
    :reference: Duchi, Hazan, Singer, JMLR 2011

    >>> from kons import Squared
    >>> adagrad(Squared()).curvature
    'diagonal'
    """
    return {"kernel": AFFINE, "curvature": "diagonal"}


@row(FeatureLearner)
def adam(
    loss: Loss,
    *,
    bound: float = 1.0,
    step_size: Any = 0.001,
    momentum: float = 0.9,
    discount: float = 0.999,
    regularization: float = 1e-8,
) -> Choices:
    """Linear, AdaGrad that forgets, with momentum.

    Without a guarantee: the published proof is wrong, and there are convex losses on which it does not
    converge (Reddi, Kale, Kumar, ICLR 2018). Its step of 0.001 is one for millions of rows.

    :cost: O(d)
    :not for: short streams; it has no guarantee
    :reference: Kingma, Ba, ICLR 2015

    >>> from kons import Squared
    >>> adam(Squared()).momentum
    0.9
    """
    return {"kernel": AFFINE, "curvature": "diagonal"}


@row(FeatureLearner)
def ons(loss: Loss, *, bound: float = 1.0, regularization: float = 1.0, step_size: Any = None) -> Choices:
    """Linear, the online Newton step.

    ::

        A <- A + eta (g x)(g x)^T,    u <- u - A^-1 g x

    KONS with a linear kernel, whose cost does not grow with t. Regret O(d log T) for losses with curvature.

    :cost: O(d^2)
    :not for: more than some hundred columns, where sketched_ons is O(d)
    :reference: Hazan, Agarwal, Kale, Machine Learning 2007

    >>> from kons import Squared
    >>> ons(Squared()).second_order
    'gradient'
    """
    return {"kernel": AFFINE, "curvature": "gradient"}


@row(FeatureLearner)
def sketched_ons(
    loss: Loss,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    step_size: Any = None,
    directions: int = 10,
) -> Choices:
    """Linear, the online Newton step in few directions.

    As ``ons``, with A known in at most ``2*directions`` directions, the frequent ones. The regret of ONS,
    plus what the sketch took off, over alpha.

    :cost: O(d l + l^3)
    :not for: few columns, where ons costs no more
    :reference: Luo, Agarwal, Cesa-Bianchi, Langford, NIPS 2016

    >>> from kons import Squared
    >>> sketched_ons(Squared(), directions=5).curvature
    'sketched'
    """
    return {"kernel": AFFINE, "curvature": "sketched"}


@row(FeatureLearner, hessian=True)
def vaw(*, bound: float = 1.0, regularization: float = 1.0) -> Choices:
    """Linear, ridge regression that counts the row it predicts; squared loss.

    ::

        u_t = argmin  sum_{s<t} (y_s - u^T x_s)^2 + (alpha/2) |u|^2 + (u^T x_t)^2

    The forecaster of Vovk, Azoury and Warmuth: regret d C^2 log T, nothing to tune. What every other learner
    of numbers is to be compared with.

    :cost: O(d^2)
    :not for: more than some hundred columns; targets that are not linear in them
    :reference: Vovk 2001; Azoury, Warmuth, Machine Learning 2001

    >>> vaw().forward
    True
    """
    return {"kernel": AFFINE, "loss": Squared(), "curvature": "hessian", "forward": True}


@row(FeatureLearner)
def fogd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    dimension: int = 400,
    step_size: Any = None,
    seed: int = 0,
) -> Choices:
    """Gradient descent on random Fourier features.

    O(D d) numbers, whatever t is; regret O(sqrt(T)) plus T/sqrt(D). ``step_size`` None is
    ``bound/(L sqrt(t))``; the paper's is a constant, found on the data.

    :cost: O(D d)
    :not for: accuracy: as many atoms in embedded predict better, because they lie where the rows do
    :reference: Lu, Hoi, Wang, Zhao, Liu, JMLR 2016

    >>> from kons import Gaussian, Squared
    >>> fogd(Gaussian(), Squared(), dimension=50).features
    'fourier'
    """
    return {"features": "fourier"}


@row(FeatureLearner, takes=fogd)
def fastfood(kernel: Kernel, loss: Loss, **parameters: Any) -> Choices:
    """Gradient descent on random features made by fast transforms.

    O(D) numbers, for hundreds of columns. Parameters are those of :func:`fogd`.

    :cost: O(D log d)
    :not for: few columns, where fogd is faster
    :reference: Le, Sarlos, Smola, ICML 2013

    >>> from kons import Gaussian, Squared
    >>> fastfood(Gaussian(), Squared()).features
    'fastfood'
    """
    return fogd(kernel, loss, **parameters).parameters() | {"features": "fastfood"}


@row(FunctionalGradient, of_labels=Hinge())
def dual_sgd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    step_size: Any = None,
    decay: float = 0.0,
    max_points: int = 100,
    dimension: int = 400,
    seed: int = 0,
) -> Choices:
    """Gradient descent over a budget, points that go become random features.

    The point of the least norm goes, and becomes a part of ``w^T z(x)``: what its removal takes from f, D
    random features give back to 1/sqrt(D). The step of the paper is 1/(decay t).

    :cost: O(B d + D d)
    :not for: accuracy: as many atoms in embedded have a curvature
    :reference: Le, Nguyen, Nguyen, Phung, NIPS 2016

    >>> from kons import Gaussian, Squared
    >>> dual_sgd(Gaussian(), Squared(), max_points=30).budget.when_full
    'features'
    """
    return {"budget": Budget(max_points, "features")}


@row(FeatureLearner)
def nogd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    max_atoms: int = 100,
    rank: int | None = None,
    step_size: Any = None,
) -> Choices:
    """Gradient descent in the span of the first points.

    The first ``max_atoms`` points that do not depend on those before make the span (Nystrom's features), of
    which ``rank`` directions are kept: a fifth in the authors' program; None is all, and errs less. Before it
    is full this is kernel gradient descent. ``embedded`` has the same features and a curvature.

    :cost: O(B^2)
    :not for: streams that move away from their first rows
    :reference: Lu, Hoi, Wang, Zhao, Liu, JMLR 2016

    >>> from kons import Gaussian, Squared
    >>> nogd(Gaussian(), Squared(), max_atoms=30).max_atoms
    30
    """
    return {"features": "span", "tolerance": 0.0}


@row(FeatureLearner)
def aogd_ald(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    radius: float | None = None,
    tolerance: float = 1e-3,
    max_atoms: int = UNLIMITED,
    regularization: float = 1.0,
) -> Choices:
    """Gradient descent in a ball of the span of independent points.

    ::

        eta_t = radius / (alpha + sqrt(sum_s |g_s phi_s|^2)),    the gradient projected on the span

    Regret O(radius sqrt(sum of losses)) for smooth losses, against the functions of the ball. The first step
    is about as long as the radius. None is ``2*bound`` for the squared loss, of which the paper is, and
    ``10*bound`` for others, whose best functions go on growing where classes are apart.

    :cost: O(B^2)
    :not for: accuracy: nons_ald, of the same paper, has a curvature
    :reference: Li, Liao, ICML 2023

    >>> from kons import Gaussian, Squared
    >>> aogd_ald(Gaussian(), Squared()).curvature
    'norm'
    """
    if radius is None:
        radius = (2.0 if isinstance(loss, Squared) else 10.0) * require_number(bound, "bound", above=0.0)
    radius = require_number(radius, "radius", above=0.0)  # it is the step, too
    return {"features": "span", "curvature": "norm", "radius": radius, "step_size": radius}


@row(FeatureLearner)
def skegd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    max_atoms: int = 100,
    columns: int = 50,
    dimension: int = 80,
    rank: int | None = None,
    tolerance: float = 1e-4,
    step_size: Any = None,
    seed: int = 0,
) -> Choices:
    """Gradient descent in two sketches of the kernel matrix, kept up to date.

    Of ``max_atoms`` points, a uniform sample of the rows, ``columns`` columns of their kernel matrix are
    taken (S_m) and ``dimension`` signed sums (S_p); gradient descent runs in the features
    ``z(x)^T z(x') = k_m(x)^T F k_m(x')``, F of rank ``rank`` (None: all) with ``C F C^T`` nearest to the
    matrix as S_p sees it. :class:`kons.core.feature_maps.Sketch` has the formulas.

    *Departures*, the paper's text being not at hand: sums run over the points kept, so that a row costs the
    same for ever; both sketches are computed anew when these change, which equals rank-1 modifications; what
    was learned is projected on the new features; before there are ``max_atoms``, it is descent in their span.
    The sizes are ours.

    :cost: O(B^2)
    :not for: streams that do not move, where nogd is simpler
    :reference: Zhang, Liao, ICML 2019

    >>> from kons import Gaussian, Squared
    >>> skegd(Gaussian(), Squared()).features
    'sketch'
    """
    return {"features": "sketch"}
