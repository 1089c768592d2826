"""Losses: convex functions of a prediction in [-bound, bound], with the constants of the paper.

=====================  ====================  ===============  =============================
loss, targets          l(p)                  L                sigma
=====================  ====================  ===============  =============================
squared, abs(y) <= C   (p - y)^2             4C               1/(8C^2)
logistic, y = -1, +1   log(1 + exp(-y p))    1/(1 + exp(-C))  exp(-C)
sq. hinge, y = -1, +1  max(0, 1 - y p)^2     2(1 + C)         C <= 1: 1/(2(1 + C)^2)
..                     ..                    ..               C > 1: (3C - 1)/(8C^2(1 + C))
hinge, y = -1, +1      max(0, 1 - y p)       1                0
=====================  ====================  ===============  =============================

p is the prediction, y the target, C the bound, l' the slope, a derivative with respect to p. For
all predictions u and w in [-C, C] and every target::

    |l'(u)| <= L                                                              (Assumption 1)
    l(w) >= l(u) + l'(u) (w - u) + (sigma/2) (l'(u) (w - u))^2                (Assumption 2)

L is the smallest and sigma the largest constant for which they hold. A tight bound matters: sigma
falls as 1/C^2, for the logistic loss as exp(-C). Where it is 0, the step size is 1/(L C sqrt(t)).

*Convention.* With this sigma the preconditioner grows by sigma*g^2*phi phi^T; later work by the
same authors adds (sigma/2) g g^T.
"""

from kons.losses.base import Loss
from kons.losses.builtin import Hinge, Logistic, Squared, SquaredHinge
from kons.losses.custom import CustomLoss

__all__ = ["CustomLoss", "Hinge", "Logistic", "Loss", "Squared", "SquaredHinge"]
