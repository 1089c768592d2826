"""Learners over a kernel expansion from the literature, each a row of choices over the same update.

===========================  ======================  ===============  ==========  ======================
name                         learner                 curvature        who learns  who stays
===========================  ======================  ===============  ==========  ======================
``perceptron``               ``KONS``                none             mistakes    all
``norma``                    ``FunctionalGradient``  none             slopes      all, or the newest
``rbp``                      ``FunctionalGradient``  none             mistakes    B; one at random goes
``forgetron``                ``FunctionalGradient``  none             mistakes    B; the oldest goes
``bogd``                     ``FunctionalGradient``  none             slopes      B; by several rules
``projectron``               ``EmbeddedKONS``        none             mistakes    those outside the span
``projectron_plus``          ``EmbeddedKONS``        none             margins     those outside the span
``second_order_perceptron``  ``KONS``                l'' (squared)    mistakes    all
``narow``                    ``KONS``                max(0, b - 1/q)  slopes      all
``kaar``                     ``KONS``                l'' (squared)    all         all
``krls``                     ``EmbeddedKONS``        l'' (squared)    all         those outside the span
``krls, a window``           ``SlidingWindow``       l'' (squared)    all         the last N
===========================  ======================  ===============  ==========  ======================

Perceptrons are for labels -1 and +1, any number of classes inside :class:`kons.Classifier`. What they predict
is a score without a unit: its sign counts, and its ``bound`` only keeps it a number.
"""

from __future__ import annotations

from typing import Any, Literal

from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners import KONS, EmbeddedKONS, FunctionalGradient, SlidingWindow
from kons.losses import Hinge, Loss, Squared
from kons.policies import Budget, Dependence
from kons.recipes.algorithms import UNLIMITED

__all__ = [
    "bogd",
    "forgetron",
    "kaar",
    "krls",
    "narow",
    "norma",
    "perceptron",
    "projectron",
    "rbp",
    "second_order_perceptron",
]

# Scores of perceptrons grow with the number of mistakes: of several classes the highest must not be clipped.
SCORES = 1e6


def perceptron(kernel: Kernel, *, bound: float = SCORES) -> KONS:
    """The kernel perceptron: f <- f + y k(x, .) on mistakes, y*f(x) <= 0.

    With k(x,x) <= 1 it makes at most ``|g|^2 + 2 sum max(0, 1 - y g(x))`` mistakes, for every function g, the
    sum being over them. O(M) a row with M mistakes so far. Not on noisy labels: it never stops growing, see
    :func:`forgetron`.

    Rosenblatt, Psychological Review 1958; Freund, Schapire, Machine Learning 37, 1999 (with kernels).

    >>> from kons import Gaussian
    >>> learner = perceptron(Gaussian(1.0))
    >>> learner.advance([[0.0], [0.1], [3.0]], [1, 1, -1]).kept.tolist()
    [True, False, True]
    """
    return KONS(kernel, Hinge(), bound=bound, step_size=1.0, second_order="none", updates="mistakes")


def norma(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    step_size: Any = None,
    decay: float = 0.01,
    max_points: int | None = None,
) -> FunctionalGradient:
    """NORMA: stochastic gradient descent on the regularized risk, in function space.

    ::

        f <- (1 - eta*lambda) f - eta*loss'(f(x)) k(x, .)        eta ~ 1/sqrt(t)

    Regret O(sqrt(T)) on ``loss + (lambda/2) |f|^2``. O(t) a row; with ``max_points`` the oldest go, whose
    coefficients have decayed most. Not where the loss is curved: second order has log T.

    Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52, 2004.

    >>> from kons import Gaussian, Hinge
    >>> norma(Gaussian(1.0), Hinge(), max_points=50).budget
    Budget(points=50, when_full='oldest', largest=inf)
    """
    budget = None if max_points is None else Budget(max_points)
    return FunctionalGradient(kernel, loss, bound=bound, step_size=step_size, decay=decay, budget=budget)


def rbp(kernel: Kernel, *, bound: float = SCORES, max_points: int = 100, seed: int = 0) -> FunctionalGradient:
    """The randomized budget perceptron: with B points, a mistake takes the place of one chosen at random.

    With k(x,x) <= 1, expected mistakes are at most ``(E sum max(0, 1 - y g(x)) + |g| (B + sqrt(B)/4))/(1 -
    |g|/sqrt(B))`` for every g with ``|g| < sqrt(B)``, the sum being over them. O(B) a row. Not where B^2 a
    row can be afforded: :func:`projectron` loses nothing of what goes.

    Cavallanti, Cesa-Bianchi, Gentile: Tracking the best hyperplane with a simple budget Perceptron, Machine
    Learning 69, 2007.

    >>> from kons import Gaussian
    >>> rbp(Gaussian(1.0), max_points=50).budget.when_full
    'random'
    """
    return _budget_perceptron(kernel, bound, Budget(max_points, "random"), seed)


def forgetron(kernel: Kernel, *, bound: float = SCORES, max_points: int = 100) -> FunctionalGradient:
    """The self-tuned Forgetron: on a mistake, f shrinks and its oldest point goes.

    f shrinks by the largest factor for which what removals have cost stays within 15/32 of the mistakes;
    where B >= 84 and k(x,x) <= 1, mistakes are at most ``2 |g|^2 + 4 sum max(0, 1 - y g(x))`` for every g
    with ``|g| <= sqrt((B + 1)/log(B + 1))/4``. O(B) a row. Not where the past stays true: old points are
    forgotten whatever they know.

    Dekel, Shalev-Shwartz, Singer: The Forgetron, SIAM Journal on Computing 37, 2008.

    >>> from kons import Gaussian
    >>> forgetron(Gaussian(1.0), max_points=84).budget.when_full
    'shrink'
    """
    return _budget_perceptron(kernel, bound, Budget(max_points, "shrink"))


def _budget_perceptron(kernel: Kernel, bound: float, budget: Budget, seed: int = 0) -> FunctionalGradient:
    return FunctionalGradient(
        kernel, Hinge(), bound=bound, step_size=1.0, updates="mistakes", budget=budget, seed=seed
    )


def bogd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    step_size: Any = 0.2,
    decay: float = 0.01,
    max_points: int = 100,
    when_full: Literal["unbiased", "smallest", "project"] = "unbiased",
    largest: float = 1.0,
    seed: int = 0,
) -> FunctionalGradient:
    """Bounded online gradient descent: NORMA with a budget that is kept by removal or projection.

    ``"unbiased"`` removes a point at random and scales the others by B/(B - 1), clipped to ``largest``, so
    that f stays what it is on average (BOGD); ``"smallest"`` removes the one with the least norm,
    ``"project"`` gives what it had to the others, at O(B^3) a removal (budgeted stochastic gradient
    descent). Else O(B) a row. Not where B^2 a row can be afforded: ``embedded`` predicts better at the same
    size. Not ``"unbiased"`` under the squared loss: the noise of removals adds up, beyond the loss of a
    constant.

    Zhao, Wang, Wu, Jin, Hoi: Fast bounded online gradient descent algorithms, ICML 2012; Wang, Crammer,
    Vucetic: Breaking the curse of kernelization, JMLR 13, 2012.

    >>> from kons import Gaussian, Hinge
    >>> bogd(Gaussian(1.0), Hinge(), max_points=50, when_full="project").budget
    Budget(points=50, when_full='project', largest=1.0)
    """
    budget = Budget(max_points, when_full, largest)
    return FunctionalGradient(
        kernel, loss, bound=bound, step_size=step_size, decay=decay, budget=budget, seed=seed
    )


def projectron(
    kernel: Kernel,
    *,
    bound: float = SCORES,
    tolerance: float = 0.01,
    max_atoms: int = UNLIMITED,
    margins: bool = False,
) -> EmbeddedKONS:
    """The Projectron: a mistake within eta of the span of those before is projected on it, and not kept.

    eta^2 is ``tolerance * k(x,x)``; as many points are kept as are eta apart from each other's span,
    finitely many on a bounded domain. With k(x,x) <= 1 and ``|g| < 1/(2 eta)``, mistakes are at most
    ``(|g|^2 + 2 sum max(0, 1 - y g(x)))/(1 - 2 eta |g|)``. ``margins=True`` is Projectron++: right rows
    within the margin are learned as far as their projection helps. O(B^2) a row. Not on labels that change:
    what was learned stays.

    Orabona, Keshet, Caputo: Bounded kernel-based online learning, JMLR 10, 2009.

    >>> from kons import Gaussian
    >>> projectron(Gaussian(1.0), margins=True).updates
    'margins'
    """
    return EmbeddedKONS(
        kernel,
        Hinge(),
        bound=bound,
        step_size=1.0,
        second_order="none",
        updates="margins" if margins else "mistakes",
        policy=Dependence(tolerance),
        max_atoms=max_atoms,
    )


def second_order_perceptron(kernel: Kernel, *, bound: float = 1.0, regularization: float = 2.0) -> KONS:
    """The second-order perceptron: ridge regression on the mistakes, a = regularization/2.

    ::

        f = argmin  sum_{mistakes} (y - f(x))^2 + a |f|^2

    whose sign is that of ``v^T (a I + S S^T + x x^T)^-1 x``. Mistakes are at most ``inf (sum max(0, gamma -
    y g(x)) + sqrt((a |g|^2 + sum g(x)^2) log det(I + K/a)))/gamma``, sums and K over the mistakes. O(M^2) a
    row with M mistakes so far. Not where labels are noisy and rows many: use ``embedded``.

    Cesa-Bianchi, Conconi, Gentile: A second-order Perceptron algorithm, SIAM Journal on Computing 34, 2005.

    >>> from kons import Gaussian
    >>> learner = second_order_perceptron(Gaussian(1.0))
    >>> learner.advance([[0.0], [0.1], [3.0]], [1, 1, -1]).kept.tolist()
    [True, False, True]
    """
    return KONS(
        kernel,
        Squared(),
        bound=bound,
        regularization=regularization,
        second_order="hessian",
        updates="mistakes",
    )


def narow(kernel: Kernel, *, bound: float = 1.0, regularization: float = 1.0, step_size: float = 2.0) -> KONS:
    """NAROW: hinge slopes, and as much curvature as keeps phi^T A^-1 phi at most 1/b, b = step_size.

    ::

        predict  p = f(x)/max(1, b*q)                   q = phi^T A^-1 phi
        learn    if y*p < 1:  A <- A + w phi phi^T      w = max(0, b - 1/q)
                 f = argmin  sum_s -y_s f(x_s) + (w_s/2) f(x_s)^2 + (alpha/2) |f|^2

    Curvature where a point is new, and none where A knows it well; with b up to alpha/k(x,x) none at all.
    Mistakes are at most ``sum max(0, 1 - y g(x)) + (alpha |g|^2 + sum w g(x)^2 + sum q/(1 + w*q))/2`` for
    every function g, sums over the rows learned. O(M^2) a row with M rows below the margin so far. Not
    beyond some ten thousand of them.

    Orabona, Crammer: New adaptive algorithms for online classification, NIPS 2010 (there alpha = 1).

    >>> from kons import Gaussian
    >>> learner = narow(Gaussian(1.0))
    >>> learner.advance([[0.0], [0.0]], [1, 1]).weight.round(3).tolist()
    [1.0, 0.0]
    """
    return KONS(
        kernel,
        Hinge(),
        bound=bound,
        regularization=regularization,
        step_size=step_size,
        second_order="capped",
    )


def kaar(kernel: Kernel, *, bound: float = 1.0, regularization: float = 1.0) -> KONS:
    """The kernel aggregating algorithm for regression: ridge that counts the row it predicts, with target 0.

    With a = regularization/2 and targets within the bound Y, its loss exceeds that of every function g by at
    most ``a |g|^2 + Y^2 log det(I + K/a)``. O(t^2) a row and a prediction. Not beyond some ten thousand rows:
    ``pkawv`` is the same in a span.

    Gammerman, Kalnishkan, Vovk: On-line prediction with kernels and the complexity approximation principle,
    UAI 2004.

    >>> from kons import Gaussian
    >>> kaar(Gaussian(1.0)).forward
    True
    """
    return KONS(
        kernel,
        Squared(),
        bound=bound,
        regularization=regularization,
        second_order="hessian",
        forward=True,
    )


def krls(
    kernel: Kernel,
    *,
    bound: float = 1.0,
    regularization: float = 0.01,
    tolerance: float = 1e-3,
    max_atoms: int = 200,
    window: int | None = None,
    forgetting: float = 1.0,
) -> EmbeddedKONS | SlidingWindow:
    """Kernel recursive least squares: by linear dependence, in a window, or as a tracker that forgets.

    By default atoms are the points with more than ``tolerance * k(x,x)`` outside the span of those before,
    and every row is regressed on its projection (Engel's, with a ridge, and a cap on the atoms).
    ``window=N`` is ridge regression over the last N rows. ``forgetting`` below 1 discounts the past, and in
    a full dictionary the newest row takes the place of the atom that f misses least (a tracker; there a
    point's covariance goes back to the prior row by row, here A does, every 32 rows). O(B^2) or O(N^2) a
    row. Not for labels whose probabilities matter: ``embedded`` has the logistic loss.

    Engel, Mannor, Meir, IEEE Transactions on Signal Processing 52, 2004; Van Vaerenbergh, Via, Santamaria,
    ICASSP 2006; Van Vaerenbergh, Lazaro-Gredilla, Santamaria, IEEE Transactions on Neural Networks and
    Learning Systems 23, 2012.

    >>> from kons import Gaussian
    >>> type(krls(Gaussian(1.0), window=50)).__name__, krls(Gaussian(1.0), forgetting=0.99).policy.when_full
    ('SlidingWindow', 'replace')
    """
    if window is not None:
        if forgetting != 1.0:
            raise ConfigurationError(
                f"window is {window!r} and forgetting {forgetting!r}: a window forgets by itself; give one."
            )
        return SlidingWindow(kernel, window=window, bound=bound, regularization=regularization)
    return EmbeddedKONS(
        kernel,
        Squared(),
        bound=bound,
        regularization=regularization,
        second_order="hessian",
        policy=Dependence(tolerance, "freeze" if forgetting == 1.0 else "replace"),
        max_atoms=max_atoms,
        forgetting=forgetting,
    )
