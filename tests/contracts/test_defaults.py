"""The numbers that a caller gets who names none: a change of one changes what programs do, and this table."""

import importlib
import inspect

import pytest

DEFAULTS = {
    "kons": """
        AutoKONS: delay=0, seed=0
        EmbeddedKONS: bound=1.0, regularization=1.0, max_atoms=200, forward=False, forgetting=1.0, seed=0
        FeatureLearner: bound=1.0, dimension=400, max_atoms=100, tolerance=0.0001, columns=50, \
regularization=1.0, power=0.5, discount=1.0, momentum=0.0, directions=10, forward=False, seed=0
        Forecaster: level=0.9, seed=0
        FunctionalGradient: bound=1.0, decay=0.0, dimension=400, seed=0
        Gaussian: bandwidth=1.0
        KONS: bound=1.0, regularization=1.0, forward=False
        KORS: regularization=1.0, seed=0
        Keyed: live=256, largest=16777216
        Laplace: bandwidth=1.0
        Matern: bandwidth=1.0, smoothness=1.5
        Polynomial: degree=2, offset=1.0
        RationalQuadratic: bandwidth=1.0, mixture=1.0
        Scaled: warmup=500, scale_features=True, ignore_clocks=False, wider=1.5
        SketchedKONS: bound=1.0, regularization=1.0, shared_coins=True, weighted=False, seed=0
        SlidingWindow: window=200, bound=1.0, regularization=1.0
        Trace: rounding_clips=0
        certify: exact_up_to=4000
        evaluate: delay=0, window=1000, baselines=True, intervals=0.9, pauses=False, trace=False
    """,
    "kons.policies": """
        Budget: max_points=100, largest=inf
        Dependence: tolerance=0.0001
        Leverage: oversampling=1.0, distortion=0.5, floor=0.0, failure=0.1
    """,
    "kons.step_sizes": """
        InverseSqrt: dimension=1.0
    """,
    "kons.recipes": """
        Recipe: in_raw_units=False, hessian=False, exact=False, growth=0
        adagrad: bound=1.0, regularization=1e-08
        adam: bound=1.0, step_size=0.001, momentum=0.9, discount=0.999, regularization=1e-08
        aogd_ald: bound=1.0, tolerance=0.001, max_atoms=10**9, regularization=1.0
        b_kons: max_atoms=100
        bogd: bound=1.0, step_size=0.2, decay=0.01, max_points=100, largest=1.0, seed=0
        dual_sgd: bound=1.0, decay=0.0, max_points=100, dimension=400, seed=0
        fogd: bound=1.0, dimension=400, seed=0
        for_task: seed=0
        forgetron: bound=1000000.0, max_points=100
        kaar: bound=1.0, regularization=1.0
        krls: bound=1.0, regularization=0.01, tolerance=0.001, max_atoms=200, forgetting=1.0
        narow: bound=1.0, regularization=1.0, step_size=2.0
        nogd: bound=1.0, max_atoms=100
        nons_ald: bound=1.0, regularization=1.0, tolerance=0.001, max_atoms=10**9
        norma: bound=1.0, decay=0.01
        ogd: bound=1.0
        ons: bound=1.0, regularization=1.0
        perceptron: bound=1000000.0
        pkawv: bound=1.0, regularization=1.0, tolerance=0.0001, max_atoms=200
        projectron: bound=1000000.0, tolerance=0.01, max_atoms=10**9, margins=False
        pros_n_kons: bound=1.0, regularization=1.0, oversampling=1.0, distortion=0.5, max_atoms=10**9, seed=0
        rbp: bound=1000000.0, max_points=100, seed=0
        second_order_perceptron: bound=1.0, regularization=2.0
        skegd: bound=1.0, max_atoms=100, columns=50, dimension=80, tolerance=0.0001, seed=0
        sketched_ons: bound=1.0, regularization=1.0, directions=10
        vaw: bound=1.0, regularization=1.0
    """,
    "kons.theory": """
        Estimate: error=0.0
        certify: exact_up_to=4000
        effective_dimension: regularization=1.0, weights=1.0, exact_up_to=4000
        hindsight: bound=1.0, regularization=1.0, sample_weight=1.0, exact_up_to=4000
        log_determinant: regularization=1.0, weights=1.0, exact_up_to=4000
        online_effective_dimension: regularization=1.0, weights=1.0, exact_up_to=4000, seed=0
        ridge_leverage_scores: regularization=1.0, weights=1.0, exact_up_to=4000
    """,
    "kons.evaluation": """
        Evaluation: atoms=0, delay=0, window=1000, seconds=0.0, learner_seconds=0.0, away_rows=0
        KernelGradientDescent: bound=1.0
        OnlineLinear: regularization=0.1, standardize=False
        OnlineLogistic: regularization=0.1, standardize=True
        Prequential: delay=0, window=1000, baselines=True, intervals=0.9, pauses=False
        ResidualIntervals: level=0.9
        Several: delay=0
        evaluate: delay=0, window=1000, baselines=True, intervals=0.9, pauses=False, trace=False
        fit_batch: threshold=0.01, patience=100, max_passes=10, seed=0
        make_rival: seed=0
    """,
    "kons.streams": """
        Plan: horizon=0
        Stream: with_target=True
        alternating_labels: bound=1.0
        drifting: dimension=2, period=5000.0, seed=0
        friedman: dimension=10, noise=0.0, seed=0
        logistic_map: lags=1, horizon=1, seed=0
        mackey_glass: lags=8, horizon=1, interval=6, delay=17, seed=0
        open_stream: horizon=0, block_size=512, quiet=False
        switching: dimension=2, every=2000, noise=0.0, seed=0
    """,
    "kons.runs": """
        Run: force=False
        Settings: seed=0, delay=0, window=1000, shuffle=False, no_target=False
        compare: quiet=False
    """,
    "kons.sklearn": """
        KORSFeatures: regularization=0.1, oversampling=1.0
        NoveltyDetector: contamination=0.05, max_atoms=200, forgetting=1.0
    """,
    "kons.river": """
        KONSClassifier: seed=0
        KONSMultiTargetRegressor: seed=0
        KONSRegressor: seed=0
        NoveltyDetector: max_atoms=200, forgetting=1.0, warmup=100
    """,
}


def numbers_of(thing):
    """The numbers among the defaults of a function or class; none of what has no signature to look at."""
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    told = (f"{one.name}={one.default!r}" for one in found if isinstance(one.default, (int, float)))
    return ", ".join(told).replace("1000000000", "10**9")


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name):
    if name == "kons.river":
        pytest.importorskip("river")
    module, lines = importlib.import_module(name), DEFAULTS[name].strip().splitlines()
    found = {public: numbers_of(getattr(module, public)) for public in module.__all__}
    expected = dict(line.strip().split(": ") for line in lines)
    assert {public: numbers for public, numbers in found.items() if numbers} == expected
