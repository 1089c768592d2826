"""The exception tree and the notices."""

import logging
import pickle
import warnings

import pytest

from kons import errors
from kons.errors import (
    ConfigurationError,
    InputError,
    KonsError,
    KonsWarning,
    MissingExtraError,
    NumericalError,
    TargetError,
    announce,
    notice,
)


@pytest.fixture
def nothing_told(monkeypatch):
    monkeypatch.setattr(errors, "told", set())


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (InputError, (KonsError, ValueError)),
        (TargetError, (KonsError, InputError, ValueError)),
        (ConfigurationError, (KonsError, ValueError)),
        (NumericalError, (KonsError, ArithmeticError)),
        (MissingExtraError, (KonsError, ImportError)),
        (KonsWarning, (UserWarning,)),
    ],
)
def test_the_tree(error, parents):
    for parent in parents:
        assert issubclass(error, parent)
    assert not issubclass(KonsWarning, KonsError)


def test_a_missing_extra_says_the_line_that_installs_it():
    error = MissingExtraError("The command line", "cli")
    assert str(error).endswith("pip install 'kons[cli]'")
    assert str(error).startswith("The command line needs")
    assert error.extra == "cli"


def test_a_notice_warns_once_per_kind_and_logs_every_time(nothing_told, caplog):
    with caplog.at_level(logging.INFO, logger="kons"):
        with pytest.warns(KonsWarning, match="first"):
            notice("one kind", "first")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            notice("one kind", "again")
        with pytest.warns(KonsWarning, match="other"):
            notice("another kind", "other")
    assert [record.getMessage() for record in caplog.records] == ["first", "again", "other"]
    assert {record.name for record in caplog.records} == {"kons"}
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_a_notice_points_at_the_caller_of_the_library(nothing_told):
    def in_the_library():
        notice("where", "here")

    with pytest.warns(KonsWarning) as caught:
        in_the_library()
    assert caught[0].filename == __file__


def test_an_announcement_goes_to_the_logger_named_kons(caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        announce("one moment")
    assert [(r.name, r.levelno, r.getMessage()) for r in caplog.records] == [
        ("kons", logging.WARNING, "one moment")
    ]


@pytest.mark.parametrize(
    "error", [InputError("a"), TargetError("b"), ConfigurationError("c"), NumericalError("d")]
)
def test_errors_travel_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_a_missing_extra_travels_between_processes():
    error = MissingExtraError("The command line", "cli")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.extra) == (str(error), error.extra)
