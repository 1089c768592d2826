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
from kons.recipes.row import Choices, row

__all__ = ["bogd", "forgetron", "kaar", "krls", "narow", "norma", "perceptron", "projectron"]
__all__ += ["projectron_plus", "rbp", "second_order_perceptron"]

# Scores of perceptrons grow with the number of mistakes: of several classes the highest must not be clipped.
SCORES = 1e6
# Perceptrons: f moves by y k(x, .) on mistakes.
PERCEPTRON: Choices = {"loss": Hinge(), "step_size": 1.0, "updates": "mistakes"}
LABELS = ("classification",)


@row(KONS, growth=1, tasks=LABELS)
def perceptron(kernel: Kernel, *, bound: float = SCORES) -> Choices:
    """The kernel perceptron; labels.

    ::

        f <- f + y k(x, .)        on mistakes, y*f(x) <= 0

    With k(x,x) <= 1 it makes at most ``|g|^2 + 2 sum max(0, 1 - y g(x))`` mistakes, for every function g, the
    sum being over them.

    :cost: O(M), M mistakes
    :not for: noisy labels: it never stops growing; forgetron does
    :reference: Rosenblatt 1958; Freund, Schapire, Machine Learning 1999

    >>> from kons import Gaussian
    >>> learner = perceptron(Gaussian(1.0))
    >>> learner.advance([[0.0], [0.1], [3.0]], [1, 1, -1]).kept.tolist()
    [True, False, True]
    """
    return PERCEPTRON | {"second_order": "none"}


@row(FunctionalGradient, growth=1, of_labels=Hinge())
def norma(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    step_size: Any = None,
    decay: float = 0.01,
    max_points: int | None = None,
) -> Choices:
    """Gradient descent in function space with weight decay; memory grows as t.

    ::

        f <- (1 - eta*lambda) f - eta*loss'(f(x)) k(x, .)        eta ~ 1/sqrt(t)

    NORMA: regret O(sqrt(T)) on ``loss + (lambda/2) |f|^2``. With ``max_points`` the oldest go, whose
    coefficients have decayed most.

    :cost: O(t)
    :not for: curved losses, for which second order has log T
    :reference: Kivinen, Smola, Williamson, IEEE TSP 2004

    >>> from kons import Gaussian, Hinge
    >>> norma(Gaussian(1.0), Hinge(), max_points=50).budget
    Budget(max_points=50, when_full='oldest', largest=inf)
    """
    return {"budget": None if max_points is None else Budget(max_points)}


@row(FunctionalGradient, tasks=LABELS)
def rbp(kernel: Kernel, *, bound: float = SCORES, max_points: int = 100, seed: int = 0) -> Choices:
    """A perceptron on a budget, a point at random goes; labels.

    The randomized budget perceptron: with B points, a mistake takes the place of one of them. With k(x,x) <=
    1, expected mistakes are at most ``(E sum max(0, 1 - y g(x)) + |g| (B + sqrt(B)/4))/(1 - |g|/sqrt(B))``
    for every g with ``|g| < sqrt(B)``, the sum being over them.

    :cost: O(B)
    :not for: accuracy: projectron loses nothing, at O(B^2)
    :reference: Cavallanti, Cesa-Bianchi, Gentile, Machine Learning 2007

    >>> from kons import Gaussian
    >>> rbp(Gaussian(1.0), max_points=50).budget.when_full
    'random'
    """
    return PERCEPTRON | {"budget": Budget(max_points, "random")}


@row(FunctionalGradient, tasks=LABELS)
def forgetron(kernel: Kernel, *, bound: float = SCORES, max_points: int = 100) -> Choices:
    """A perceptron on a budget that shrinks and forgets its oldest point; labels.

    The self-tuned Forgetron: f shrinks by the largest factor for which what removals have cost stays within
    15/32 of the mistakes; where B >= 84 and k(x,x) <= 1, mistakes are at most
    ``2 |g|^2 + 4 sum max(0, 1 - y g(x))`` for every g with ``|g| <= sqrt((B + 1)/log(B + 1))/4``.

    :cost: O(B)
    :not for: streams in which what was learned long ago stays true
    :reference: Dekel, Shalev-Shwartz, Singer, SIAM J. Computing 2008

    >>> from kons import Gaussian
    >>> forgetron(Gaussian(1.0), max_points=84).budget.when_full
    'shrink'
    """
    return PERCEPTRON | {"budget": Budget(max_points, "shrink")}


@row(FunctionalGradient, of_labels=Hinge())
def bogd(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    step_size: Any = 0.2,
    decay: float = 0.01,
    max_points: int = 100,
    when_full: Literal["unbiased", "smallest", "project"] | None = None,
    largest: float = 1.0,
    seed: int = 0,
) -> Choices:
    """Gradient descent on a budget, by removal or projection.

    ``"unbiased"`` removes a point at random and scales the others by B/(B - 1), clipped to ``largest``, so
    that f stays what it is on average (BOGD); ``"smallest"`` removes the one with the least norm,
    ``"project"`` gives what it had to the others (budgeted stochastic gradient descent). None is
    ``"project"`` for the squared loss and ``"unbiased"`` for others, of which BOGD is: under the squared
    loss every row has a slope, so that a point goes in every row, and what is right on average errs more
    than a constant does.

    :cost: O(B); O(B^3) a projection
    :not for: accuracy: embedded predicts better, at O(B^2)
    :reference: Zhao, Wang, Wu, Jin, Hoi, ICML 2012; Wang, Crammer, Vucetic, JMLR 2012

    >>> from kons import Gaussian, Hinge
    >>> bogd(Gaussian(1.0), Hinge(), max_points=50, when_full="project").budget
    Budget(max_points=50, when_full='project', largest=1.0)
    """
    usual: Any = "project" if isinstance(loss, Squared) else "unbiased"
    return {"budget": Budget(max_points, usual if when_full is None else when_full, largest)}


@row(EmbeddedKONS, tasks=LABELS)
def projectron(
    kernel: Kernel,
    *,
    bound: float = SCORES,
    tolerance: float = 0.01,
    max_atoms: int = UNLIMITED,
    margins: bool = False,
) -> Choices:
    """A perceptron that projects mistakes near its span; labels.

    The Projectron: a mistake within eta of the span of those before is projected on it, and not kept. eta^2
    is ``tolerance * k(x,x)``; as many points are kept as are eta apart from each other's span, finitely
    many on a bounded domain. With k(x,x) <= 1 and ``|g| < 1/(2 eta)``, mistakes are at most ``(|g|^2 + 2
    sum max(0, 1 - y g(x)))/(1 - 2 eta |g|)``. ``margins=True`` is Projectron++: right rows within the
    margin are learned as far as their projection helps.

    :cost: O(B^2)
    :not for: labels that change their meaning: what was learned stays
    :reference: Orabona, Keshet, Caputo, JMLR 2009

    >>> from kons import Gaussian
    >>> projectron(Gaussian(1.0), margins=True).updates
    'margins'
    """
    updates = {"updates": "margins"} if margins else {}
    return PERCEPTRON | {"second_order": "none", "policy": Dependence(tolerance)} | updates


@row(EmbeddedKONS, tasks=LABELS, takes=projectron)
def projectron_plus(kernel: Kernel, **parameters: Any) -> Choices:
    """A projectron that learns within the margin, too; labels.

    Projectron++. Parameters are those of :func:`projectron`.

    :cost: O(B^2)
    :not for: labels that change their meaning
    :reference: Orabona, Keshet, Caputo, JMLR 2009

    >>> from kons import Gaussian
    >>> projectron_plus(Gaussian(1.0)).updates
    'margins'
    """
    return projectron(kernel, **{"margins": True} | parameters).parameters()


@row(KONS, growth=2, tasks=LABELS)
def second_order_perceptron(kernel: Kernel, *, bound: float = 1.0, regularization: float = 2.0) -> Choices:
    """Kernel ridge on the mistakes; labels.

    ::

        f = argmin  sum_{mistakes} (y - f(x))^2 + a |f|^2        a = regularization/2

    whose sign is that of ``v^T (a I + S S^T + x x^T)^-1 x``. Mistakes are at most ``inf (sum max(0, gamma -
    y g(x)) + sqrt((a |g|^2 + sum g(x)^2) log det(I + K/a)))/gamma``, sums and K over the mistakes.

    :cost: O(M^2), M mistakes
    :not for: noisy labels and many rows: embedded
    :reference: Cesa-Bianchi, Conconi, Gentile, SIAM J. Computing 2005

    >>> from kons import Gaussian
    >>> learner = second_order_perceptron(Gaussian(1.0))
    >>> learner.advance([[0.0], [0.1], [3.0]], [1, 1, -1]).kept.tolist()
    [True, False, True]
    """
    return {"loss": Squared(), "second_order": "hessian", "updates": "mistakes"}


@row(KONS, exact=True, growth=2, tasks=LABELS)
def narow(
    kernel: Kernel, *, bound: float = 1.0, regularization: float = 1.0, step_size: float = 2.0
) -> Choices:
    """Hinge slopes, curvature only where points are new; labels, memory grows as t^2.

    NAROW: as much curvature as keeps phi^T A^-1 phi at most 1/b, b = step_size. ::

        predict  p = f(x)/max(1, b*q)                   q = phi^T A^-1 phi
        learn    if y*p < 1:  A <- A + w phi phi^T      w = max(0, b - 1/q)
                 f = argmin  sum_s -y_s f(x_s) + (w_s/2) f(x_s)^2 + (alpha/2) |f|^2

    Curvature where a point is new, and none where A knows it well; with b up to alpha/k(x,x) none at all.
    Mistakes are at most ``sum max(0, 1 - y g(x)) + (alpha |g|^2 + sum w g(x)^2 + sum q/(1 + w*q))/2`` for
    every function g, sums over the rows learned. In the paper alpha = 1.

    :cost: O(t^2)
    :not for: more than some ten thousand rows below the margin
    :reference: Orabona, Crammer, NIPS 2010

    >>> from kons import Gaussian
    >>> learner = narow(Gaussian(1.0))
    >>> learner.advance([[0.0], [0.0]], [1, 1]).weight.round(3).tolist()
    [1.0, 0.0]
    """
    return {"loss": Hinge(), "second_order": "capped"}


@row(KONS, hessian=True, exact=True, growth=2)
def kaar(kernel: Kernel, *, bound: float = 1.0, regularization: float = 1.0) -> Choices:
    """Exact kernel ridge with forward prediction; squared loss, memory grows as t^2.

    The kernel aggregating algorithm for regression: ridge that counts the row it predicts, with target 0.
    With a = regularization/2 and targets within the bound Y, its loss exceeds that of every function g by at
    most ``a |g|^2 + Y^2 log det(I + K/a)``. ``pkawv`` is the same in a span.

    :cost: O(t^2)
    :not for: more than some ten thousand rows
    :reference: Gammerman, Kalnishkan, Vovk, UAI 2004

    >>> from kons import Gaussian
    >>> kaar(Gaussian(1.0)).forward
    True
    """
    return {"loss": Squared(), "second_order": "hessian", "forward": True}


@row(EmbeddedKONS, hessian=True)
def krls(
    kernel: Kernel,
    *,
    bound: float = 1.0,
    regularization: float = 0.01,
    tolerance: float = 1e-3,
    max_atoms: int = 200,
    window: int | None = None,
    forgetting: float = 1.0,
) -> Choices | Any:
    """Recursive least squares: by linear dependence, in a window, or forgetting; squared loss.

    By default atoms are the points with more than ``tolerance * k(x,x)`` outside the span of those before,
    and every row is regressed on its projection (Engel's, with a ridge, and a cap on the atoms).
    ``window=N`` is ridge regression over the last N rows. ``forgetting`` below 1 discounts the past, and in
    a full dictionary the newest row takes the place of the atom that f misses least (a tracker; there a
    point's covariance goes back to the prior row by row, here A does, every 32 rows).

    :cost: O(B^2)
    :not for: probabilities of labels: embedded has the logistic loss
    :reference: Engel, Mannor, Meir, IEEE TSP 2004; Van Vaerenbergh et al., ICASSP 2006, TNNLS 2012

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
    policy = Dependence(tolerance, "freeze" if forgetting == 1.0 else "replace")
    return {"loss": Squared(), "second_order": "hessian", "policy": policy}
