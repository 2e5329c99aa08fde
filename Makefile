# `make up` and `make test` are the two commands; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STACK := dev

.PHONY: help
help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# The stamp holds the requirement files' sums: changed pins give a new environment, nothing else does.
$(VENV)/.stamp: requirements/dev.txt pyproject.toml
	@echo "setup: Python environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": set PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: setup
setup: $(VENV)/.stamp ## Make .venv with rbln-stack and rbln-agent in it

.PHONY: up
up: setup ## Embedded cluster with simulated NPUs, `pulumi up` of stack dev, table of nodes
	@$(BIN)/rbln-stack cluster up >/dev/null
	@variables="$$($(BIN)/rbln-stack cluster env)"; eval "$$variables"; \
	pulumi stack select --create $(STACK) >/dev/null; \
	pulumi up --stack $(STACK) --yes --skip-preview --suppress-permalink; \
	echo "up: waiting for the driver pods"; \
	rbln-stack status --wait 180

.PHONY: down
down: setup ## Remove the embedded cluster and all that it made
	@$(BIN)/rbln-stack cluster down

.PHONY: check
check: setup ## Format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python tests/coverage.py --check

.PHONY: test-fast
test-fast: setup ## Tests that need no engine and no cluster, under a minute
	@$(BIN)/python -m pytest -q -m "not engine and not cluster and not scale"

.PHONY: tools
tools: setup ## Find, download or build every tool and image
	@$(BIN)/rbln-stack tools

.PHONY: test
test: check tools ## All tests; cluster tests need root
	@$(BIN)/python -m pytest

.PHONY: bench
bench: setup ## Measure, with a floor from the same run
	@$(BIN)/python benchmarks/plan.py
	@$(BIN)/python benchmarks/start.py

.PHONY: coverage
coverage: setup ## Write docs/coverage.md from the marks in tests
	@$(BIN)/python tests/coverage.py

.PHONY: lock
lock: setup ## Pin what requirements/*.in ask for; UPGRADE=--upgrade takes newer versions
	@cd requirements && for name in agent stack dev go; do \
	  ../$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --generate-hashes --no-header \
	    --no-emit-index-url --no-emit-find-links --python-version 3.11 -o $$name.txt $$name.in; done

.PHONY: clean
clean: ## Remove the environment and the caches of tools in this folder (not the user's cache)
	@rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
