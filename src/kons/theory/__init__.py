"""Theory you can check: leverage, effective dimension, the best function in hindsight, certificates."""

from kons.theory.certificate import RegretCertificate, certify
from kons.theory.hindsight import Hindsight, hindsight
from kons.theory.quantities import (
    Estimate,
    LeverageScores,
    effective_dimension,
    log_determinant,
    online_effective_dimension,
    ridge_leverage_scores,
)

__all__ = [
    "Estimate",
    "Hindsight",
    "LeverageScores",
    "RegretCertificate",
    "certify",
    "effective_dimension",
    "hindsight",
    "log_determinant",
    "online_effective_dimension",
    "ridge_leverage_scores",
]
