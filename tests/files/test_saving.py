"""kons.save and kons.load: what can be saved, how it is written, and what must be handed in again."""

import os
import pathlib
import stat

import numpy as np
import pytest

import kons
from contracts.learners import LEARNERS, assert_identical, overlap, stream
from kons import KONS, Gaussian, Logistic, Squared, files
from kons.errors import ConfigurationError, FileError, MissingExtraError
from kons.evaluation import KernelGradientDescent
from kons.kernels import (
    FunctionKernel,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    RationalQuadratic,
    ScikitLearn,
)
from kons.losses import CustomLoss, Hinge, SquaredHinge
from kons.policies import Budget, Dependence, Fixed, Leverage
from kons.step_sizes import Constant, FromFunction, InverseSqrt

X, Y = stream(50)


def through(thing, callables=None):
    return files.from_bytes(files.to_bytes(thing), callables)


def absolute(p, y):
    return abs(p - y)


def sign(p, y):
    return np.sign(p - y)


def length(x):
    return float(np.dot(x, x))


THINGS = [
    Gaussian(0.3),
    Laplace(2.0),
    Matern(1.5, smoothness=2.5),
    RationalQuadratic(1.0, mixture=3.0),
    Linear(),
    Polynomial(degree=3, offset=0.5),
    0.1 * Gaussian(1 / 3) + Linear() * Matern(),
    Normalized(Polynomial(4)),
    ScikitLearn("poly", degree=3, coef0=0.1),
    ScikitLearn("rbf", gamma=None),
    Squared(),
    Logistic(),
    SquaredHinge(),
    Hinge(),
    Budget(20, "project"),
    Dependence(1e-3, when_full="replace"),
    Leverage("theory", distortion=0.3, horizon=1000, failure=0.01),
    Constant(0.1),
    InverseSqrt(2.0, 1.0, dimension=5.0),
]


@pytest.mark.parametrize("thing", THINGS, ids=repr)
def test_parts_come_back_equal(thing):
    found = through(thing)
    assert type(found) is type(thing)
    assert found == thing
    assert repr(found) == repr(thing)


def test_a_kernel_of_scikit_learn_comes_back_with_its_parts():
    from sklearn.gaussian_process import kernels as theirs

    kernel = ScikitLearn(
        2.0 * theirs.RBF(length_scale=np.array([1.0, 0.3]), length_scale_bounds="fixed")
        + theirs.Exponentiation(theirs.RationalQuadratic(alpha=0.7), 2.0) * theirs.Matern(nu=2.5)
        + theirs.ExpSineSquared(periodicity=7.0)
        + theirs.DotProduct(0.1)
        + theirs.PairwiseKernel(gamma=0.5, metric="rbf")
    )
    found = through(kernel)
    assert repr(found) == repr(kernel)
    assert_identical(found.gram(X[:, :2]), kernel.gram(X[:, :2]))


def test_a_fixed_dictionary_comes_back():
    atoms = through(Fixed(X[:5])).atoms
    assert_identical(atoms, X[:5])
    assert through(Fixed(["a", b"b", 3])).atoms == ["a", b"b", 3]


def test_functions_are_handed_in_again():
    loss = CustomLoss(
        absolute, sign, lipschitz=1.0, curvature=lambda bound: 0.0, targets=(-1, 1), name="mine"
    )
    found = through(loss, {"absolute": absolute, "sign": sign, "function": lambda bound: 0.0})
    assert (found.value(0.5, 1.0), found.slope(0.5, 1.0), found.lipschitz(1.0)) == (0.5, -1.0, 1.0)
    assert (found.name, found.targets) == ("mine", (-1.0, 1.0))
    kernel = through(FunctionKernel(overlap, diagonal=length), {"overlap": overlap, "length": length})
    assert kernel == FunctionKernel(overlap, diagonal=length)
    assert through(FromFunction(np.sqrt), {"sqrt": np.sqrt})(4) == 2.0


def test_functions_that_are_missing_are_listed():
    learner = KONS(
        FunctionKernel(lambda x, z: 1.0, diagonal=lambda x: 1.0),
        CustomLoss(absolute, sign, lipschitz=1.0, curvature=0.1),
        step_size=lambda t: 1.0,
    )
    needed = "'function' (kernel.function), 'function_2' (kernel.diagonal), 'absolute' (loss.value), "
    with pytest.raises(FileError) as caught:
        through(learner)
    assert needed + "'sign' (loss.slope), 'function_3' (step_size.function)" in str(caught.value)
    assert "kons.load(path, callables={'function': ...})" in str(caught.value)
    with pytest.raises(FileError, match="'sign'") as caught:
        through(learner, dict.fromkeys(("function", "function_2", "function_3", "absolute"), absolute))
    assert "'absolute'" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=r"callables\['sign'\] is 3, expected a function"):
        through(CustomLoss(absolute, sign), {"absolute": absolute, "sign": 3})


def test_the_same_function_is_asked_for_once():
    kernel = FunctionKernel(overlap) + FunctionKernel(overlap)
    assert through(kernel, {"overlap": overlap}) == kernel


class Mine(Kernel):
    """A kernel class of somebody's own."""

    def evaluate(self, X, Z):
        return np.ones((len(X), len(Z)))

    def evaluate_diagonal(self, X):
        return np.ones(len(X))


def test_a_kernel_class_of_one_s_own_is_handed_in_again():
    learner = KONS(Mine(), Squared())
    learner.advance(X, Y)
    found = through(learner, {"Mine": Mine()})
    assert_identical(found.predict(X), learner.predict(X))
    with pytest.raises(FileError, match=r"'Mine' \(kernel\)"):
        through(learner)
    with pytest.raises(FileError, match="KONS is refused: kernel is"):
        through(learner, {"Mine": overlap})


def test_what_is_not_in_the_table_is_refused():
    class Derived(KONS):
        pass

    for thing in (Mine(), Derived(Gaussian(), Squared()), overlap, 3, {"a": 1}):
        with pytest.raises(FileError, match=r"cannot be saved: expected one of KONS, SketchedKONS"):
            files.to_bytes(thing)


# ---- points that are objects


@pytest.mark.parametrize(
    "points",
    [
        ["ab", "b", "aab"],
        [b"ab", b"", b"\xff"],
        [1, 2.5, 2**70],
        [np.float64(0.5), np.str_("a"), np.int32(3)],
        [("a", 1), ("b", 2), ("c", [None, True])],
        [{"a": 1.0}, {}, {"b": 2.0}],
    ],
    ids=["text", "bytes", "numbers", "numpy", "tuples", "dicts"],
)
def test_points_of_any_plain_kind(points):
    def alike(x, z):
        return float(x == z)

    learner = KONS(FunctionKernel(alike), Squared())
    learner.advance(points, [1.0, -1.0, 0.5])
    found = through(learner, {"alike": alike})
    assert_identical(found.state(), learner.state())
    assert_identical(found.predict(points), learner.predict(points))


def test_points_that_would_need_pickle_are_refused():
    class Graph:
        pass

    learner = KONS(FunctionKernel(lambda x, z: float(x is z)), Squared())
    learner.advance([Graph(), Graph()], [1.0, -1.0])
    with pytest.raises(
        FileError, match=r"function\.inside\[0\] is a .*Graph.*without pickle.*points must be"
    ):
        files.to_bytes(learner)


def test_the_first_order_learner_too():
    learner = KernelGradientDescent(Gaussian(), Squared(), step=0.5)
    learner.advance(X[:30], Y[:30])
    found = through(learner)
    assert_identical(found.advance(X[30:], Y[30:]).columns, learner.advance(X[30:], Y[30:]).columns)
    assert_identical(found.state(), learner.state())


# ---- the file itself


@pytest.fixture
def learner():
    learner = LEARNERS["EmbeddedKONS, leverage, carry, capped"]()
    learner.advance(X, Y)
    return learner


@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_a_file_comes_back(learner, tmp_path, kind):
    path = tmp_path / "model.kons"
    kons.save(learner, kind(path))
    assert_identical(kons.load(kind(path)).state(), learner.state())
    assert path.read_bytes() == files.to_bytes(learner)
    assert [p.name for p in tmp_path.iterdir()] == ["model.kons"]


def test_a_new_file_has_the_rights_of_any_new_file(learner, tmp_path):
    (tmp_path / "plain").write_text("")
    kons.save(learner, tmp_path / "model")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_link_keeps_pointing_at_what_is_written(learner, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "model")
    kons.save(learner, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert_identical(kons.load(tmp_path / "real" / "model").state(), learner.state())


def test_paths_that_cannot_be_written(learner, tmp_path):
    (tmp_path / "file").write_text("mine")
    for path, message in (
        (tmp_path, "it is a folder"),
        (tmp_path / "none" / "model", "there is no folder"),
        (tmp_path / "file" / "model", "there is no folder"),
        ("a\0b", "which no file can be named"),
        (b"bytes", "expected text or a pathlib.Path"),
        (3, "expected text or a pathlib.Path"),
        (None, "expected text or a pathlib.Path"),
        (tmp_path / ("x" * 400), "cannot be written: File name too long"),
        ("", "it is a folder"),
        (f"{tmp_path}/model/", "it is a folder"),
    ):
        with pytest.raises(FileError, match=message):
            kons.save(learner, path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_pipe_or_a_circle_of_links_is_not_replaced(learner, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    for name in ("pipe", "one"):
        with pytest.raises(FileError, match="no ordinary file"):
            kons.save(learner, tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "one").is_symlink()


def test_a_private_file_stays_private(learner, tmp_path):
    kons.save(learner, tmp_path / "model")
    (tmp_path / "model").chmod(0o600)
    kons.save(learner, tmp_path / "model")
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o600


@pytest.mark.parametrize("letter", ["x", "\u65e5", "\U0001f600"])
def test_names_as_long_as_the_system_takes(learner, tmp_path, letter):
    try:
        os.fsencode(letter)
    except UnicodeEncodeError:
        pytest.skip("names of files have no such letter here")
    path = tmp_path / (letter * (255 // len(letter.encode())))
    kons.save(learner, path)
    assert_identical(kons.load(path).state(), learner.state())


@pytest.mark.parametrize(
    "about",
    [{"x": float("nan")}, {"x": object()}, {"x": np.int64(1)}, {1: 2}, ["x"], "x", {"version": 3}],
    ids=["nan", "object", "numpy", "no name", "list", "text", "a name that is taken"],
)
def test_what_cannot_be_told_about_a_file_is_refused_before_it_is_touched(learner, tmp_path, about):
    kons.save(learner, tmp_path / "model", about={"from": "here"})
    with pytest.raises(FileError, match="about"):
        kons.save(learner, tmp_path / "model", about=about)
    assert files.about(tmp_path / "model")["from"] == "here"


def can_be_saved(thing):
    try:
        files.to_bytes(thing)
    except FileError:
        return False
    return True


def test_the_deepest_kernel_that_can_be_saved_can_be_loaded():
    kernel, levels = Gaussian(1.0), 0
    while can_be_saved(kernel + Linear()):
        kernel, levels = kernel + Linear(), levels + 1
        assert levels < 100
    assert levels > 40
    assert through(kernel) == kernel
    with pytest.raises(FileError, match="levels deep: it cannot be saved"):
        files.to_bytes(kernel + Linear())


def test_paths_that_cannot_be_read(tmp_path):
    for path, message in (
        (tmp_path, "it is a folder"),
        (tmp_path / "none", "there is no such file"),
        ("a\0b", "no file can be named so"),
        (3, "expected text"),
    ):
        with pytest.raises(FileError, match=f"cannot be loaded: .*{message}"):
            kons.load(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="no ordinary file"):
        kons.load(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="expected bytes"):
        files.from_bytes("text")


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(28, "No space left"), None]
)
def test_an_interrupted_save_leaves_the_old_file(learner, tmp_path, monkeypatch, step, error):
    path = tmp_path / "model"
    kons.save(Gaussian(7.0), path)

    def fails(*arguments, **more):
        raise KeyboardInterrupt if error is None else error

    monkeypatch.setattr(os, step, fails)
    if error is None:
        with pytest.raises(KeyboardInterrupt):
            kons.save(learner, path)
    else:
        with pytest.raises(FileError, match=f"cannot be written: {error.strerror}.*still there"):
            kons.save(learner, path)
    monkeypatch.undo()
    assert kons.load(path) == Gaussian(7.0)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_the_file_is_on_disk_before_it_takes_the_old_one_s_place(learner, tmp_path, monkeypatch):
    steps = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def noted(*arguments, name=name, real=real):
            steps.append(name)
            return real(*arguments)

        monkeypatch.setattr(os, name, noted)
    kons.save(learner, tmp_path / "model")
    assert steps == ["fsync", "replace", "fsync"]  # the file, its name, the folder


def test_an_adapter_s_missing_package_is_named(monkeypatch):
    import sys

    data = files.to_bytes(ScikitLearn("rbf"))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kons\[sklearn\]'"):
        files.from_bytes(data)


@pytest.mark.parametrize("ours", [True, False])
def test_so_is_that_of_an_adapter_or_of_another_library(monkeypatch, ours):
    import sys

    from sklearn.gaussian_process.kernels import RBF

    from kons.sklearn import KONSRegressor

    data = files.to_bytes(KONSRegressor() if ours else ScikitLearn(RBF()))
    gone = "kons.sklearn.estimators" if ours else "sklearn.gaussian_process.kernels"
    monkeypatch.setitem(sys.modules, gone, None)
    with pytest.raises(MissingExtraError, match=r"a saved .*sklearn\..*pip install 'kons\[sklearn\]'"):
        files.from_bytes(data)
