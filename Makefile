# One place for the project's commands; `make` alone lists them.
# Each makes .venv on its first run, by PYTHON: make test PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
AXE := node_modules/axe-core/axe.min.js
OTHER := .venv-$(notdir $(PYTHON))
BASE ?= HEAD~1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo experiment test core test-all test-oldest test-python check docs bench gate size
.PHONY: wheel-with-kernels clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/stamp-base ## evolve a few trees and draw them into demo-output/
	$(BIN)/python -m docs.images.demo --out demo-output

experiment: $(VENV)/stamp-test ## run a small experiment and report it in experiment-output/
	$(BIN)/python -m evotree experiment run docs/experiments/small.toml --n-jobs 2 \
		--out experiment-output --reference EvoTree

test: $(VENV)/stamp-test ## run the tests that are quick
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m "not slow"

core: $(VENV)/stamp-test ## run the core's tests without the other rooms
	$(BIN)/python -m tests.alone

# The kernels run a second time with their indices checked: out of bounds they read anything.
test-all: test | $(AXE) ## run all tests, and those of the kernels with bounds checked
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.numba_cache/bounds $(BIN)/python -m pytest \
		--numprocesses 2 --dist loadfile -m "not slow" tests/fitness tests/operators
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m slow

test-oldest: $(OLDEST)/stamp ## run the quick tests with the oldest libraries that setup.cfg allows
	$(OLDEST)/bin/python -m pytest --numprocesses 2 --dist loadfile -m "not slow"

# With the newest libraries; .ci/run does so with each newer Python that the machine has.
test-python: $(OTHER)/stamp ## run the quick tests with another interpreter, PYTHON
	$(OTHER)/bin/python -m pytest --numprocesses 2 --dist loadfile -m "not slow"

check: $(VENV)/stamp-dev ## lint, formatting, types, floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p evotree -p experiments -p operators -p fitness
	$(BIN)/lint-imports

docs: $(VENV)/stamp-docs ## build the documentation into docs/_build/html, its examples executed
	$(BIN)/sphinx-build -b html -W --keep-going -q docs docs/_build/html

bench: $(VENV)/stamp-test ## time the loop, default fits and the first fit, and measure memory
	$(BIN)/python -m benchmarks

gate: $(VENV)/stamp-test ## measure the speed beside the commit BASE, and fail if it is slower
	$(BIN)/python -m benchmarks gate --base $(BASE)

size: $(VENV)/stamp-base ## count the statements of the code
	$(BIN)/python -m tests.size

# Without it users' machines compile for a quarter of a minute before a first fit.
wheel-with-kernels: $(VENV)/stamp-test ## build a wheel with compiled kernels for this system, Python and numba
	$(BIN)/python -m tests.wheels

clean: ## remove .venv, caches and built files
	rm -rf $(VENV) $(OLDEST) .venv-python* node_modules .numba_cache .pytest_cache .mypy_cache .ruff_cache
	rm -rf .import_linter_cache .hypothesis
	rm -rf docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst
	rm -rf build dist *.egg-info demo-output experiment-output htmlcov .coverage .coverage.*
	find evotree experiments tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The stamps say which requirements are installed; setup.cfg is what they depend on. The larger
# sets contain the smaller, so that one installation marks them all.
$(VENV)/stamp-base: setup.cfg | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $(VENV)/stamp-base

$(VENV)/stamp-test: setup.cfg | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $(VENV)/stamp-base $(VENV)/stamp-test

$(VENV)/stamp-dev: setup.cfg | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(VENV)/stamp-base $(VENV)/stamp-test $(VENV)/stamp-dev

$(VENV)/stamp-docs: setup.cfg | $(BIN)/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $(VENV)/stamp-base $(VENV)/stamp-docs

$(OLDEST)/stamp: setup.cfg tests/oldest.py | $(BIN)/pip
	$(BIN)/python -m venv --clear $(OLDEST)
	$(BIN)/python -m tests.oldest > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check \
		--constraint $(OLDEST)/constraints.txt -e '.[test]'
	@touch $(OLDEST)/stamp

# Checks the page's contrast, names and focus; where there is no npm its test is skipped.
$(AXE):
	-npm install --silent --no-save --no-package-lock axe-core

$(OTHER)/stamp: setup.cfg
	$(PYTHON) -m venv --clear $(OTHER)
	$(OTHER)/bin/pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $(OTHER)/stamp

# pip is the last thing that venv writes: without Debian's python3-venv package a folder with an
# interpreter but no pip is left behind, and the next run has to make it again.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"evotree needs Python 3.11 or newer; give one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
