"""A pytest plugin: what each test ran, how long it took, which failed. Started by :mod:`tools.trees`.

It is told by the environment where to write (``FAULTS_RECORD``), which tests to keep and in which order
(``FAULTS_TESTS``; a mutant may change the names of tests, so these are no arguments of pytest) and, for
a survey, whose lines to watch (``FAULTS_COVER``).

A line run while a fixture of a class, module or session is made counts for every test that asks for
this fixture, not only for the first.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest


class Recorder:
    """Durations without compilation, failures, and (in a survey) coverage with a context a test."""

    def __init__(self, target: Path, source: str | None) -> None:
        self.target = target
        self.durations: dict[str, float] = {}
        self.compiling: dict[str, float] = {}
        self.fixtures: dict[str, list[str]] = {}
        self.failed: list[str] = []
        self.context = self.test = ""
        self.watches = False
        self.coverage: coverage.Coverage | None = None
        if source:
            data = str(target.with_suffix(".coverage"))
            self.coverage = coverage.Coverage(data_file=data, source=[source], config_file=False)
            self.coverage.set_option("run:disable_warnings", ["no-data-collected", "module-not-imported"])
            self.coverage.start()

    def _watch_numba(self) -> None:
        """Compilation is paid by the first test that needs a loop: keep it out of that test's time."""
        from numba.core import event

        self.watches = True
        depth, begun = 0, 0.0
        recorder = self

        class Watch(event.Listener):
            def on_start(self, event: Any) -> None:
                nonlocal depth, begun
                if depth == 0:
                    begun = time.perf_counter()
                depth += 1

            def on_end(self, event: Any) -> None:
                nonlocal depth
                depth -= 1
                if depth == 0:
                    before = recorder.compiling.get(recorder.test, 0.0)
                    recorder.compiling[recorder.test] = before + time.perf_counter() - begun

        event.register("numba:compile", Watch())  # type: ignore[no-untyped-call]

    def _switch(self, context: str) -> str:
        before, self.context = self.context, context
        if self.coverage:
            self.coverage.switch_context(context)
        return before

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if listed := os.environ.get("FAULTS_TESTS"):
            tests = json.loads(Path(listed).read_text(encoding="utf-8"))
            place = {_without_addresses(test): n for n, test in enumerate(tests)}
            kept = [item for item in items if _without_addresses(item.nodeid) in place]
            items[:] = sorted(kept, key=lambda item: place[_without_addresses(item.nodeid)])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        self.fixtures[item.nodeid] = [
            _name(found) for several in known.values() for found in several if found.scope != "function"
        ]
        self.test = item.nodeid
        if self.coverage and not self.watches and "numba" in sys.modules:
            self._watch_numba()
        before = self._switch(item.nodeid)
        try:
            return (yield)
        finally:
            self._switch(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        before = self._switch(self.context if fixturedef.scope == "function" else _name(fixturedef))
        try:
            return (yield)
        finally:
            self._switch(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0.0) + report.duration
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_unconfigure(self) -> None:
        if self.coverage:
            self.coverage.stop()
            self.coverage.save()
        found = {
            "durations": {
                test: max(0.0, spent - self.compiling.get(test, 0.0))
                for test, spent in self.durations.items()
            },
            "compiling": sum(self.compiling.values()),
            "fixtures": {name: used for name, used in self.fixtures.items() if used},
            "failed": self.failed,
        }
        self.target.write_text(json.dumps(found), encoding="utf-8")


def _without_addresses(test: str) -> str:
    return re.sub(r"\b0x[0-9a-f]+", "0x", test)


def _name(fixture: Any) -> str:
    return f"fixture:{fixture.baseid}:{fixture.argname}"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RECORDER, "faults-recorder")


# Made when pytest loads its plugins, before any conftest.py imports what is to be watched.
RECORDER = Recorder(Path(os.environ["FAULTS_RECORD"]), os.environ.get("FAULTS_COVER"))
