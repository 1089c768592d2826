"""The public face: sorted names, importable, each with an example that a newcomer can paste."""

import importlib
import inspect
import subprocess
import sys

import pytest

import effort
import kons
from kons import errors
from kons.kernels import Kernel
from kons.losses import Loss
from kons.step_sizes import StepSize

PUBLIC = [
    "kons",
    "kons.checks",
    "kons.errors",
    "kons.files",
    "kons.kernels",
    "kons.learners",
    "kons.losses",
    "kons.policies",
    "kons.river",
    "kons.scaling",
    "kons.sklearn",
    "kons.step_sizes",
]
EXCEPTIONS = [
    getattr(errors, name)
    for name in errors.__all__
    if isinstance(getattr(errors, name), type) and issubclass(getattr(errors, name), Exception)
]


def isort_style(name):
    """CONSTANTS, then Classes, then functions, as ruff sorts an __all__."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def public_classes():
    for path in PUBLIC:
        if path == "kons.errors":
            continue
        module = importlib.import_module(path)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type):
                yield value


@pytest.mark.parametrize("path", PUBLIC)
def test_names_are_sorted_unique_and_importable(path):
    module = importlib.import_module(path)
    assert list(module.__all__) == sorted(set(module.__all__), key=isort_style)
    for name in module.__all__:
        assert getattr(module, name) is not None
    namespace = {}
    exec(f"from {path} import *", namespace)
    assert set(module.__all__) <= namespace.keys()
    assert module.__doc__


def test_every_public_class_has_a_docstring_with_an_example():
    for cls in public_classes():
        assert cls.__doc__ is not None, cls
        assert ">>>" in cls.__doc__, cls
        assert len(inspect.cleandoc(cls.__doc__).splitlines()[0]) <= 105, cls


@pytest.mark.parametrize("path", PUBLIC)
def test_every_public_function_and_method_says_what_it_does(path):
    module = importlib.import_module(path)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            assert value.__doc__, f"{path}.{name}"
        if inspect.isclass(value):
            for verb, method in inspect.getmembers(value, inspect.isfunction):
                if not verb.startswith("_"):
                    assert inspect.getdoc(method), f"{path}.{name}.{verb}"


def test_the_front_names_come_from_the_public_paths():
    from kons import evaluation, files, forecasting, kernels, keyed, learners, losses, theory

    public = (evaluation, files, forecasting, kernels, keyed, learners, losses, theory)
    for name in kons.__all__:
        homes = [home for home in public if name in home.__all__]
        assert len(homes) == 1, name
        assert getattr(homes[0], name) is getattr(kons, name)


def test_the_issue_s_names_are_there():
    from kons.kernels import (  # noqa: F401
        FunctionKernel,
        Gaussian,
        Laplace,
        Linear,
        Matern,
        Normalized,
        Polynomial,
        RationalQuadratic,
    )
    from kons.losses import Logistic, Squared, SquaredHinge  # noqa: F401
    from kons.policies import Leverage  # noqa: F401

    parameters = inspect.signature(kons.KONS).parameters
    assert list(parameters)[:5] == ["kernel", "loss", "bound", "regularization", "step_size"]
    assert (parameters["bound"].default, parameters["regularization"].default) == (1.0, 1.0)
    assert parameters["step_size"].default is None
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(parameters)[2:])
    advance = inspect.signature(kons.KONS.advance).parameters
    assert list(advance) == ["self", "X", "y", "block_size", "sample_weight"]


def test_modules_are_there_without_an_import_of_their_own():
    names = [path.removeprefix("kons.") for path in PUBLIC[1:]]
    unimported = [] if effort.is_soak() else ["river", "sklearn"]  # their libraries take seconds
    script = (
        "import kons\n"
        f"for name in {names}:\n"
        "    vars(kons).pop(name, None)  # as if no other had imported it\n"
        "    assert name in dir(kons), name\n"
        f"    if name not in {unimported}:\n"
        "        print(getattr(kons, name).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"kons.{name}" for name in names if name not in unimported]


def test_the_version_is_a_version():
    assert all(part.isdigit() for part in kons.__version__.split(".")[:2])


@pytest.mark.parametrize("error", EXCEPTIONS)
def test_exceptions_derive_from_the_root(error):
    if issubclass(error, Warning):
        assert error is errors.KonsWarning
        assert issubclass(error, UserWarning)
    else:
        assert issubclass(error, errors.KonsError)
        assert error.__doc__
    assert error.__name__ in (errors.__doc__ or "")  # the tree in the docstring is whole


def test_abstract_parts_cannot_be_made():
    for abstract in (Kernel, Loss, StepSize):
        with pytest.raises(TypeError, match="abstract"):
            abstract()
