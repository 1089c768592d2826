"""What all tests share: how much they do, and how much time of the processors that takes."""

import gc
import os

import hypothesis
import hypothesis.strategies
import numpy as np
import pytest

import effort
from kons import errors

#: Of `make test`, in minutes: CONTRIBUTING.md says why.
BUDGET = 5

# No doctests in these, and two modules of one name.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]


def pytest_addoption(parser):
    parser.addoption(
        "--soak",
        action="store_true",
        help="everything, not a sample of it: kills by the hundred, long streams, full sweeps",
    )


def pytest_configure(config):
    config.stash[SECONDS] = []
    effort.start(soak=config.getoption("soak"))


def pytest_collection_modifyitems(config, items):
    if effort.is_soak():
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


def pytest_collection_finish():
    # Modules and tests stay to the end: the collector need not look at them again and again. At its first
    # example Hypothesis asks it who refers to random generators: before they are hidden from it.
    hypothesis.given(hypothesis.strategies.none())(lambda nothing: None)()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_was_told():
    """A notice is told once a process: no test depends on whether one before it has met it."""
    errors.told.clear()


@pytest.fixture
def used_memory(monkeypatch):
    """``np.empty`` gives memory that held no numbers before, as it may."""
    empty = np.empty

    def used(*arguments, **named):
        array = empty(*arguments, **named)
        if array.dtype == float:
            array.fill(np.nan)
        return array

    monkeypatch.setattr(np, "empty", used)


# ---- how much time it took


SECONDS = pytest.StashKey[list[float]]()


def cpu_seconds(*, children=True):
    """Of this process, and of those that it has started and waited for."""
    spent = os.times()
    return spent.user + spent.system + (spent.children_user + spent.children_system if children else 0.0)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a process of pytest-xdist, which tells the first one
        session.config.workeroutput["cpu_seconds"] = cpu_seconds()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    node.config.stash[SECONDS].append(getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0))


def pytest_terminal_summary(terminalreporter, config):
    workers = config.stash[SECONDS]  # which tell their own: not counted as children once more
    minutes = (sum(workers) + cpu_seconds(children=not workers)) / 60
    limit = "" if effort.is_soak() else f" ({BUDGET} are the budget of `make test`)"
    terminalreporter.write_line(f"{minutes:.1f} CPU minutes{limit}")
