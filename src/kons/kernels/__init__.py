"""Kernels: similarity of two points, as an inner product of features that are never written out.

=====================  ======================================  =====================================
kernel                 k(x, z)                                 when
=====================  ======================================  =====================================
Gaussian               exp(-|x - z|² / 2b²)                    the default: smooth targets
Laplace                exp(-|x - z|₁ / b)                      rough targets, outlying features
Matern                 a polynomial times exp(-c |x - z| / b)  once or twice differentiable targets
RationalQuadratic      (1 + |x - z|² / 2ab²)^-a                several length scales at once
Linear                 x·z                                     a linear model, online
Polynomial             (x·z + offset)^degree                   interactions of few features
Normalized             k(x, z) / √(k(x, x) k(z, z))            to restore k(x, x) = 1
Sum, Product           ``k1 + k2``, ``k1 * k2``                parts that act side by side, together
Multiple               ``2.0 * k``                             the weight of a part in a sum
FunctionKernel         f(x, z)                                 strings, graphs, any Python objects
ScikitLearn            whatever scikit-learn's computes        a kernel you already have
=====================  ======================================  =====================================
"""

from kons.kernels.base import Kernel
from kons.kernels.composition import Multiple, Normalized, Product, Sum
from kons.kernels.function import FunctionKernel
from kons.kernels.products import Linear, Polynomial
from kons.kernels.scikit_learn import ScikitLearn
from kons.kernels.stationary import Gaussian, Laplace, Matern, RationalQuadratic

__all__ = [
    "FunctionKernel",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Multiple",
    "Normalized",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "ScikitLearn",
    "Sum",
]
