# `make up` and `make test` do all set-up themselves, in .venv, from the locks; nothing is installed elsewhere.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
RUN_STAMP := $(VENV)/.run-stamp
DEV_STAMP := $(VENV)/.dev-stamp
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UP_FLAGS ?=
# Files go to the workers whole, the most expensive first, in the order that tests/selection has made.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --progress -m "not soak" $(TEST_FLAGS)

.PHONY: help up down test test-all costs check bench oracles oracles-soak soak lowest pythons mutation format lock reference manifests clean

help:  ## What each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Hortus needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): locks/run.txt pyproject.toml | $(BIN)/python
	@echo "installing the locked dependencies into $(VENV)"
	@$(PIP) install --require-hashes --no-deps -r locks/run.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): locks/dev.txt $(RUN_STAMP)
	@echo "installing the locked development tools into $(VENV)"
	@$(PIP) install --require-hashes --no-deps -r locks/dev.txt
	@touch $@

up: $(RUN_STAMP)  ## Start the control plane and a simulated fleet (UP_FLAGS="--clusters 20")
	@exec $(BIN)/hortus up $(UP_FLAGS)

down: $(RUN_STAMP)  ## Stop it
	@$(BIN)/hortus down

test: $(DEV_STAMP)  ## Run the tests that add most for their cost (WORKERS=2; SINCE=main: those that the change can reach)
	@$(PYTEST) --selected $(if $(SINCE),--since $(SINCE)) tests

test-all: $(DEV_STAMP)  ## Run all tests but the long ones
	@$(PYTEST) tests

costs: $(DEV_STAMP)  ## Measure what each test costs and adds (tests/selection/measured.json); half an hour
	@$(BIN)/python tools/environments.py costs $(COSTS_OF)

check: $(DEV_STAMP)  ## Lint, types, import law, lock drift, prose, names, typed reads, logs, imports against lists
	@$(BIN)/ruff format --check --quiet src tests tools || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet src tests tools
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/lock.py --check
	@$(BIN)/python tools/prose.py
	@$(BIN)/python tools/names.py
	@$(BIN)/python tools/reads.py
	@$(BIN)/python tools/logs.py
	@$(BIN)/python tools/imports.py check
	@$(BIN)/python tools/manifests.py --check

bench: $(DEV_STAMP)  ## Run the benchmarks; table on the terminal, JSON in bench.json
	@$(BIN)/python -m tests.benchmarks $(BENCH_FLAGS)

oracles: $(DEV_STAMP)  ## Build the programs that tests compare with; those in Go where there is Go
	@$(BIN)/python -m tests.oracles

oracles-soak: $(DEV_STAMP)  ## Build further ones, that only the long tests compare with
	@$(BIN)/python -m tests.oracles --soak

soak: $(DEV_STAMP)  ## Run the long tests
	@$(BIN)/python -m pytest -m soak $(TEST_FLAGS) tests

lowest: $(DEV_STAMP)  ## Run a quick part of the tests with the oldest dependencies that are allowed
	@$(BIN)/python tools/environments.py lowest

pythons: $(DEV_STAMP)  ## Run a quick part of the tests with the other versions of Python that are here
	@$(BIN)/python tools/environments.py pythons

mutation: $(DEV_STAMP)  ## Judge the tests by a sample of mutants (MUTATION_FLAGS="store --sample 200 --seed 7")
	@$(BIN)/python tools/mutation.py $(MUTATION_FLAGS)

format: $(DEV_STAMP)  ## Format the sources
	@$(BIN)/ruff format --quiet src tests tools
	@-$(BIN)/ruff check --fix --quiet src tests tools

lock: $(DEV_STAMP)  ## Resolve pyproject.toml again into locks/
	@$(BIN)/python tools/lock.py

reference: $(DEV_STAMP)  ## Write the generated parts of docs/ again, and its picture from a run
	@$(BIN)/python tools/reference.py
	@$(BIN)/python tools/chart.py
	@$(BIN)/python tools/manifests.py
	@-$(BIN)/python tools/imports.py update
	@$(BIN)/python tools/picture.py

manifests: $(DEV_STAMP)  ## Write the operator of agents by itself: chart, manifests, OLM bundle
	@$(BIN)/python tools/manifests.py

clean:  ## Remove the local environment and caches
	@rm -rf $(VENV) .venv-* .costs .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutation bench.json
