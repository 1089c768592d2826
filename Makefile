# Two commands for a newcomer: `make demo` and `make test`. Each target sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOWEST := .venv-lowest
# PySpark has an environment of its own: `make test` never installs it.
SPARK  := .venv-spark
# So has the type checker: stubs of scikit-learn would change what mypy says in $(VENV).
TYPES  := .venv-types
DATA   ?=
CACHE  ?=
# A Python of its own that has CapyMOA.
CAPYMOA ?=
ONLY   ?=
PART   ?=
# Processes that run the tests.
WORKERS ?= 2
# LOCKED=1: the versions of requirements-dev.lock, and not the newest ones.
LOCKED ?=
LOCK   := requirements-dev.lock
# How the tests are run, by `make test` and under every circumstance of `make portability`.
PYTEST := -m pytest -n $(WORKERS) --dist loadfile --durations=10 --durations-min=1
# A process is one of several then: a BLAS with threads of its own would only get in their way.
export OPENBLAS_NUM_THREADS ?= 1
# Many processes are started: with bytecode on disk (`make clean` removes it) none compiles the sources anew.
export PYTHONDONTWRITEBYTECODE :=
# Numba's cache looks at the file of a function, not at what that function calls from other files:
# a folder per state of the sources keeps a developer from running yesterday's machine code.
LOOPS := $(VENV)/numba/$(shell find src -name '*.py' | sort | xargs cat | cksum | cut -d' ' -f1)
export NUMBA_CACHE_DIR := $(CURDIR)/$(LOOPS)

.PHONY: help services setup demo test test-spark soak portability faults lowest bench bench-spark lint types lock coverage docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    kons run on an untidy table, with a report (sets up $(VENV) first)"
	@echo "make test    run the tests and the doctests: a few minutes, on WORKERS=2 processes"
	@echo "make test-spark  kons.spark on a master and two workers of this machine, in $(SPARK); needs Java 17"
	@echo "make soak    the same with every case there is: kills by the hundred, long streams; an hour or more"
	@echo "make portability   the tests under other processors, users, signals and folders; ONLY=name for one"
	@echo "make faults  put 200 faults into the sources; the tests are to notice 9 in 10 (an hour)"
	@echo "make lowest  run the tests with the lowest versions that pyproject.toml declares, on Python 3.11"
	@echo "make lint    ruff, mypy, the import contract, and who factorizes matrices"
	@echo "make types   whether every public type is known (basedpyright --verifytypes), in $(TYPES)"
	@echo "make coverage  which lines the tests run; PART=tests/streams for some of them"
	@echo "make docs    build the site into build/docs, without a network"
	@echo "make bench   time and memory as ratios; DATA=folder adds real sets, CACHE=file keeps rivals' results,"
	@echo "             CAPYMOA=python is one that has CapyMOA (and Java 17)"
	@echo "make bench-spark   kons.spark beside plain processes, in $(SPARK); needs Java 17"
	@echo "make services  which servers the tests of brokers and of the live page need, and how to get them"
	@echo "make setup   create $(VENV) and install the package with its development extras; LOCKED=1 in the versions"
	@echo "             of $(LOCK), which make lock writes anew"
	@echo "make clean   remove $(VENV), $(LOWEST), $(SPARK), $(TYPES) and caches"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else "kons needs Python 3.11 or newer; %s is %d.%d. Try: make PYTHON=python3.12 ..." % (sys.executable, *v))'
	@echo "==> creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# The demo needs only the command line; tests and benchmarks need everything.
$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	@echo "==> installing kons with its command line and report (a minute on a good connection)"
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet -e '.[cli,report]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "==> installing kons with its development extras (a minute or two the first time)"
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet $(if $(LOCKED),-c $(LOCK)) -e '.[dev]'
	@touch $@ $(VENV)/.demo

services:
	@for one in mosquitto nats-server chromium; do command -v $$one /usr/sbin/$$one >/dev/null && echo "==> $$one is here" || \
	echo "==> $$one is not here, and its tests are left out: apt-get install --no-install-recommends $$one"; done

setup: $(VENV)/.dev
	@echo "==> ready: $(BIN)/python, $(BIN)/kons"

demo: $(VENV)/.demo
	@$(BIN)/kons demo

# Once for all processes.
$(LOOPS)/.compiled: | $(VENV)/.dev
	@echo "==> compiling the numerical loops, once for this state of the sources (half a minute)"
	@$(BIN)/python tests/compile_loops.py
	@mkdir -p $(@D) && touch $@

test: $(VENV)/.dev $(LOOPS)/.compiled
	@echo "==> running the tests and doctests on $(WORKERS) processes (a few minutes)"
	@$(BIN)/python $(PYTEST)

$(SPARK)/.dev: pyproject.toml
	@echo "==> creating $(SPARK), with PySpark (a few minutes the first time)"
	@$(PYTHON) -m venv $(SPARK)
	@$(SPARK)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[test,spark]'
	@touch $@

test-spark: export NUMBA_CACHE_DIR := $(CURDIR)/$(SPARK)/numba/$(notdir $(LOOPS))
test-spark:
	@if ! java -version >/dev/null 2>&1; then \
	  echo "==> kons.spark was NOT tested: no Java was found (java -version); install Java 17"; \
	else $(MAKE) --no-print-directory $(SPARK)/.dev && \
	  echo "==> running tests/spark on a master and two workers of this machine" && \
	  $(SPARK)/bin/python tests/compile_loops.py && \
	  KONS_SPARK=all $(SPARK)/bin/python -m pytest -n 0 --durations=5 $(SOAK) tests/spark; fi

soak: $(VENV)/.dev $(LOOPS)/.compiled
	@echo "==> running everything that the tests take samples of, on $(WORKERS) processes (an hour or more)"
	@$(BIN)/python $(PYTEST) --soak
	@$(MAKE) --no-print-directory test-spark SOAK=--soak

portability: $(VENV)/.dev
	@$(BIN)/python -m tools.portability $(ONLY:%=--only %) -- $(PYTEST)

faults: $(VENV)/.dev
	@echo "==> mutation testing; stopped and started again, it goes on where it was (build/faults)"
	@$(BIN)/python -m tools.faults

# Twice: River asks for newer versions of NumPy, SciPy and narwhals than everything else does.
lowest: PYTHON = python3.11
lowest: export NUMBA_CACHE_DIR := $(CURDIR)/$(LOWEST)/numba
lowest:
	@echo "==> creating $(LOWEST) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --disable-pip-version-check --quiet uv
	@echo "==> the lowest versions, without River"
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct -e '.[test]'
	@$(LOWEST)/bin/python $(PYTEST) -k 'not river and not comparing' --ignore=src/kons/river \
	  --ignore-glob='tests/adapters/test_river*' --ignore=tests/contracts/test_front_door.py
	@echo "==> the lowest versions, with River"
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct -e '.[dev]'
	@$(LOWEST)/bin/python $(PYTEST)

lint: $(VENV)/.dev
	@echo "==> ruff" && $(BIN)/ruff check . && $(BIN)/ruff format --check .
	@echo "==> mypy" && $(BIN)/mypy
	@echo "==> import contract" && $(BIN)/lint-imports
	@echo "==> algebra" && $(BIN)/python -m tools.algebra

$(TYPES)/.dev: pyproject.toml
	@echo "==> creating $(TYPES) (a few minutes the first time)"
	@$(PYTHON) -m venv $(TYPES)
	@$(TYPES)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[types]'
	@touch $@

# It reads the environment that is first in PATH.
types: $(TYPES)/.dev
	@echo "==> public types" && PATH="$(CURDIR)/$(TYPES)/bin:$$PATH" basedpyright --verifytypes kons --ignoreexternal

# Names and versions only: where packages come from is the business of those who install them.
lock: $(VENV)/.dev
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet uv
	@sed '/^[^#]/d' $(LOCK) > $(LOCK).new && $(BIN)/uv pip compile pyproject.toml --extra dev --universal \
	  --python-version 3.11 --no-header --no-annotate --quiet >> $(LOCK).new && mv $(LOCK).new $(LOCK)
	@echo "==> $(LOCK), to be tried by: make clean test LOCKED=1"

# Warnings of coverage are about loops and killed programs. Twice as slow as make test.
coverage: $(VENV)/.dev $(LOOPS)/.compiled
	@rm -rf build/coverage && mkdir -p build/coverage
	@echo "==> running the tests and counting what they run (a quarter of an hour); PART=tests/streams counts a part"
	@$(BIN)/python -m coverage run $(PYTEST) -p no:cacheprovider $(PART)
	@$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage report

bench-spark: export NUMBA_CACHE_DIR := $(CURDIR)/$(SPARK)/numba/$(notdir $(LOOPS))
bench-spark: $(SPARK)/.dev
	@$(SPARK)/bin/python -m benchmarks.spark

docs: $(VENV)/.dev
	@$(BIN)/python -m sphinx -b html -q -W --keep-going docs build/docs
	@echo "==> build/docs/index.html"

bench: $(VENV)/.dev
	@$(BIN)/python -m benchmarks $(if $(DATA),--data "$(DATA)") $(if $(CACHE),--cache "$(CACHE)") $(if $(CAPYMOA),--capymoa "$(CAPYMOA)")

clean:
	rm -rf $(VENV) $(LOWEST) $(SPARK) $(TYPES) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
