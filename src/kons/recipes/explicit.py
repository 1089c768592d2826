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
``skegd``         span of a sample   none                Zhang, Liao 2019
================  =================  ==================  ==========================================
"""

from __future__ import annotations

from typing import Any

from kons.kernels import Kernel, Polynomial
from kons.learners import DualGradient, FeatureLearner
from kons.losses import Loss, Squared

__all__ = [
    "adagrad",
    "adam",
    "aogd_ald",
    "dual_sgd",
    "fastfood",
    "fogd",
    "nogd",
    "ogd",
    "ons",
    "skegd",
    "sketched_ons",
    "vaw",
]

#: The columns and a constant.
AFFINE = Polynomial(degree=1, offset=1.0)


def ogd(
    loss: Loss, *, bound: float = 1.0, step_size: Any = None, radius: float | None = None
) -> FeatureLearner:
    """Online gradient descent on the columns (Zinkevich, ICML 2003): ``u <- u - eta_t g x``.

    Regret O(sqrt(T)), whatever the losses; O(d) a row. ``step_size`` is a number or a function of t; None is
    ``bound/(L max |x|^2 sqrt(t))``. Not for columns of different scales, or related ones: ``ons`` and ``vaw``
    learn those in a fraction of the rows.

    >>> from kons import Squared
    >>> learner = ogd(Squared())
    >>> for t in range(100):
    ...     learner.learn_one([1.0], 0.5)
    >>> round(learner.predict_one([1.0]), 3)
    0.5
    """
    return FeatureLearner(
        AFFINE,
        loss,
        bound=bound,
        curvature="scaled" if step_size is None else "none",
        step_size=step_size,
        radius=radius,
    )


def adagrad(
    loss: Loss, *, bound: float = 1.0, step_size: Any = None, regularization: float = 1e-8
) -> FeatureLearner:
    """AdaGrad (Duchi, Hazan, Singer, JMLR 2011): a step size for each column, by its past slopes.

    ::

        u_i <- u_i - eta G_i / (alpha + sqrt(sum_s G_si^2))

    Regret O(sqrt(T)), and less where slopes are sparse; O(d) a row. ``step_size`` None is ``bound/10``. Not
    for related columns, which a diagonal does not see.

    >>> from kons import Squared
    >>> adagrad(Squared()).curvature
    'diagonal'
    """
    return FeatureLearner(
        AFFINE,
        loss,
        bound=bound,
        curvature="diagonal",
        step_size=step_size,
        regularization=regularization,
    )


def adam(
    loss: Loss,
    *,
    bound: float = 1.0,
    step_size: Any = 0.001,
    momentum: float = 0.9,
    discount: float = 0.999,
    regularization: float = 1e-8,
) -> FeatureLearner:
    """Adam (Kingma, Ba, ICLR 2015): AdaGrad that forgets, with momentum; O(d) a row.

    Without a guarantee: the published proof is wrong, and there are convex losses on which it does not
    converge (Reddi, Kale, Kumar, ICLR 2018). Not for a single pass over a short stream: its step of 0.001 is
    one for millions of rows.

    >>> from kons import Squared
    >>> adam(Squared()).momentum
    0.9
    """
    return FeatureLearner(
        AFFINE,
        loss,
        bound=bound,
        curvature="diagonal",
        step_size=step_size,
        momentum=momentum,
        discount=discount,
        regularization=regularization,
    )


def ons(
    loss: Loss, *, bound: float = 1.0, regularization: float = 1.0, step_size: Any = None
) -> FeatureLearner:
    """The Online Newton Step on the columns (Hazan, Agarwal, Kale, Machine Learning 69, 2007).

    ::

        A <- A + eta (g x)(g x)^T,    u <- u - A^-1 g x

    KONS with a linear kernel, at O(d^2) a row whatever t is. Regret O(d log T) for losses with curvature.
    Not with more than some hundred columns: ``sketched_ons`` is O(d).

    >>> from kons import Squared
    >>> ons(Squared()).second_order
    'gradient'
    """
    return FeatureLearner(
        AFFINE, loss, bound=bound, curvature="gradient", regularization=regularization, step_size=step_size
    )


def sketched_ons(
    loss: Loss,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    step_size: Any = None,
    directions: int = 10,
) -> FeatureLearner:
    """Sketched-ONS (Luo, Agarwal, Cesa-Bianchi, Langford, NIPS 2016), with frequent directions.

    As ``ons``, with A known in at most ``2*directions`` directions: O(d*directions) a row. The regret of ONS,
    plus what the sketch took off, over alpha. Not for few columns, where all of A costs no more.

    >>> from kons import Squared
    >>> sketched_ons(Squared(), directions=5).curvature
    'sketched'
    """
    return FeatureLearner(
        AFFINE,
        loss,
        bound=bound,
        curvature="sketched",
        regularization=regularization,
        step_size=step_size,
        directions=directions,
    )


def vaw(*, bound: float = 1.0, regularization: float = 1.0) -> FeatureLearner:
    """The Vovk-Azoury-Warmuth forecaster: ridge regression on the columns that counts the row it predicts.

    ::

        u_t = argmin  sum_{s<t} (y_s - u^T x_s)^2 + (alpha/2) |u|^2 + (u^T x_t)^2

    For the squared loss only. Regret d C^2 log T, nothing to tune, O(d^2) a row: what every other learner of
    numbers is to be compared with. Not for targets that are not linear in the columns.

    >>> vaw().forward
    True
    """
    return FeatureLearner(
        AFFINE, Squared(), bound=bound, curvature="hessian", regularization=regularization, forward=True
    )


def fogd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    dimension: int = 400,
    step_size: Any = None,
    seed: int = 0,
) -> FeatureLearner:
    """FOGD (Lu, Hoi, Wang, Zhao, Liu, JMLR 17, 2016): gradient descent on random Fourier features.

    O(D d) a row and O(D d) numbers, whatever t is; regret O(sqrt(T)) plus T/sqrt(D). ``step_size`` None is
    ``bound/(L sqrt(t))``; the paper's is a constant, found on the data. Not where accuracy counts: as many
    atoms in ``embedded`` predict better, because they lie where the rows do.

    >>> from kons import Gaussian, Squared
    >>> fogd(Gaussian(), Squared(), dimension=50).features
    'fourier'
    """
    return FeatureLearner(
        kernel,
        loss,
        bound=bound,
        features="fourier",
        dimension=dimension,
        step_size=step_size,
        seed=seed,
    )


def fastfood(kernel: Kernel, loss: Loss, **parameters: Any) -> FeatureLearner:
    """FOGD with Fastfood's features (Le, Sarlos, Smola, ICML 2013): O(D log d) a row, O(D) numbers.

    Parameters are those of :func:`fogd`. For hundreds of columns; with few ``fogd`` is faster.

    >>> from kons import Gaussian, Squared
    >>> fastfood(Gaussian(), Squared()).features
    'fastfood'
    """
    return FeatureLearner(**fogd(kernel, loss, **parameters).parameters() | {"features": "fastfood"})


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
) -> DualGradient:
    """DualSGD (Le, Nguyen, Nguyen, Phung, NIPS 2016): a budget of points, and random features of the others.

    A point that goes becomes a part of ``w^T z(x)``, so that its removal costs next to nothing; O(B d + D d)
    a row. The step of the paper is 1/(decay t). Not for accuracy: as many atoms in ``embedded`` have a
    curvature.

    >>> from kons import Gaussian, Squared
    >>> dual_sgd(Gaussian(), Squared(), max_points=30).max_points
    30
    """
    return DualGradient(
        kernel,
        loss,
        bound=bound,
        step_size=step_size,
        decay=decay,
        max_points=max_points,
        dimension=dimension,
        seed=seed,
    )


def nogd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    max_atoms: int = 100,
    step_size: Any = None,
) -> FeatureLearner:
    """NOGD (Lu, Hoi, Wang, Zhao, Liu, JMLR 17, 2016): gradient descent in the span of the first points.

    The first ``max_atoms`` points that do not depend on those before make the span (Nystrom's features, of
    full rank); O(B^2) a row. Before it is full this is kernel gradient descent. Not where the stream moves
    away from its first rows; nor for accuracy: ``embedded`` has the same features and a curvature.

    >>> from kons import Gaussian, Squared
    >>> nogd(Gaussian(), Squared(), max_atoms=30).max_atoms
    30
    """
    return FeatureLearner(
        kernel,
        loss,
        bound=bound,
        features="span",
        max_atoms=max_atoms,
        tolerance=0.0,
        step_size=step_size,
    )


def aogd_ald(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    radius: float = 10.0,
    tolerance: float = 1e-3,
    max_atoms: int = 1_000_000_000,
    regularization: float = 1e-8,
) -> FeatureLearner:
    """AOGD-ALD (Li, Liao, ICML 2023): gradient descent in a ball of the span of independent points.

    ::

        eta_t = radius / sqrt(sum_s |g_s phi_s|^2),    the gradient projected on the span

    Regret O(radius sqrt(sum of losses)) for smooth losses; O(B^2) a row. The ball has to hold the function
    that is looked for. Not for accuracy: ``nons_ald``, of the same paper, has a curvature.

    >>> from kons import Gaussian, Squared
    >>> aogd_ald(Gaussian(), Squared()).curvature
    'norm'
    """
    return FeatureLearner(
        kernel,
        loss,
        bound=bound,
        features="span",
        max_atoms=max_atoms,
        tolerance=tolerance,
        curvature="norm",
        step_size=radius,
        radius=radius,
        regularization=regularization,
    )


def skegd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    max_atoms: int = 100,
    tolerance: float = 1e-4,
    step_size: Any = None,
    seed: int = 0,
) -> FeatureLearner:
    """SkeGD (Zhang, Liao, ICML 2019): gradient descent on features of a sampled kernel matrix, renewed.

    As ``nogd``, with atoms that stay a uniform sample of all rows: what was learned is projected on the new
    span when one goes. O(B^2) a row, and B^3 for each of some B log(T/B) replacements. Not for streams that
    do not move, where ``nogd`` is simpler.

    *Departure.* The paper compresses its sampled columns once more, by a sparse random transform, and keeps
    the best k directions; here all of their span is kept.

    >>> from kons import Gaussian, Squared
    >>> skegd(Gaussian(), Squared()).features
    'sample'
    """
    return FeatureLearner(
        kernel,
        loss,
        bound=bound,
        features="sample",
        max_atoms=max_atoms,
        tolerance=tolerance,
        step_size=step_size,
        seed=seed,
    )
