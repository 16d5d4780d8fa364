# make demo and make test need only Debian with make, Python >= 3.10, and root or sudo.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON  ?= python3
# A virtual environment for each list of requirements: none hides what another one lacks.
VENV    ?= .venv
DEV     ?= .venv-dev
PINNED  ?= .venv-pinned
BIN     := $(VENV)/bin
SUDO    := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
TESTS   ?=
FAST    := not slow and not conformance and not oracle and not more_connect
WORKERS ?= 2

##@ Start here
.PHONY: demo
demo: java $(VENV)/.demo ## Replay the logs of two real tables and explain each step
	@$(BIN)/python jobs/demo.py

.PHONY: test
test: java $(VENV)/.tests ## Run the tests of every layer, in a few minutes
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(FAST) and not full" $(TESTS)

##@ More tests
.PHONY: test-rest
test-rest: java $(DEV)/.installed ## Run the remaining tests: more cases, Spark Connect, S3, notebooks
	$(DEV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "$(FAST) and full" $(TESTS)

.PHONY: test-all
test-all: test test-rest ## Run all tests but the slow, corpus and oracle tests

.PHONY: conformance
conformance: java $(PINNED)/.installed ## Run every case of delta-spec-testdata
	$(PINNED)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m conformance tests/conformance $(TESTS)

.PHONY: oracle
oracle: java $(PINNED)/.installed ## Test SEEDS random table histories by delta-spark and delta-rs, and HDFS
	SPARKDELTA_ORACLE_SEEDS=$(or $(SEEDS),20) $(PINNED)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow" -k "oracle or hdfs" tests/oracle tests/base $(TESTS)

.PHONY: slow
slow: java $(DEV)/.installed $(PINNED)/.installed ## Test crashes at every call, many writers, a cluster, little memory, all remaining cases
	$(DEV)/bin/python -m pytest -o faulthandler_timeout=0 -m "slow and not oracle" $(TESTS)
	$(PINNED)/bin/python -m pytest -o faulthandler_timeout=0 -m "slow and oracle" $(TESTS)

.PHONY: notebooks
notebooks: java $(DEV)/.installed ## Execute the notebooks
	$(DEV)/bin/python -m pytest -m notebook tests/notebooks

.PHONY: test-versions
test-versions: java ## Test the core on each version of Spark; VERSIONS='4.0.0 4.3' for some
	$(PYTHON) tests/versions.py --workers $(WORKERS) $(VERSIONS)

.PHONY: connect
connect: java ## Run the tests on Spark Connect, on the oldest and newest Spark; VERSIONS='4.3' for one
	$(PYTHON) tests/versions.py --connect --workers $(WORKERS) $(VERSIONS)

.PHONY: clients
clients: java ## Run programs on Delta tables: dbt, SQLMesh, kedro and others; CLIENTS='dbt mack' for two, or fast, or --connect
	$(PYTHON) -m tests.clients $(CLIENTS)

.PHONY: bench
bench: java $(PINNED)/.installed ## Run the benchmarks; SUITE='writes' for one of them, BENCH='--scale small' for a smoke test
	$(if $(filter peers,$(SUITE)),$(PINNED)/bin/python -m pip install --quiet --editable ".[peers]")
	$(PINNED)/bin/python -m tests.benchmarks $(if $(SUITE),--only "$(SUITE)") $(BENCH)

##@ Checks
.PHONY: check
check: lint types imports ## Lint, check types and imports

.PHONY: lint
lint: $(DEV)/.installed
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .

.PHONY: types
types: $(DEV)/.installed
	$(DEV)/bin/mypy

.PHONY: imports
imports: $(DEV)/.installed
	$(DEV)/bin/lint-imports

##@ Documents
.PHONY: docs
docs: $(DEV)/.installed ## Build the API reference in build/api
	$(DEV)/bin/python -W error::UserWarning -c "import runpy; from sparkdelta import *; runpy.run_module('pdoc', run_name='__main__')" --docformat numpy --no-search --no-show-source --output-directory build/api sparkdelta '!sparkdelta[.]sql' sparkdelta.tables sparkdelta.exceptions

##@ Housekeeping
.PHONY: clean
clean: ## Remove the virtual environments, caches and API reference
	rm -rf $(VENV) $(DEV) $(PINNED) .venv-spark-* build/api .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*##/ {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- Dependencies of the targets above --------------------------------------------------------------

$(VENV)/.demo: pyproject.toml
	$(call make_venv,$(VENV))
	$(VENV)/bin/python -m pip install --quiet --no-compile --editable ".[demo]"
	@touch $@

# make test needs neither linters nor notebooks.
$(VENV)/.tests: pyproject.toml
	$(call make_venv,$(VENV))
	$(VENV)/bin/python -m pip install --quiet --no-compile --editable ".[tests]"
	@touch $@

$(DEV)/.installed: pyproject.toml
	$(call make_venv,$(DEV))
	$(DEV)/bin/python -m pip install --quiet --no-compile --editable ".[dev]"
	@touch $@

# The version of Spark that the JARs of delta-spark were built for.
$(PINNED)/.installed: pyproject.toml
	$(call make_venv,$(PINNED))
	$(PINNED)/bin/python -m pip install --quiet --no-compile --editable ".[oracle]"
	@touch $@

# Debian packages venv separately from Python.
define make_venv
	@test -x $(1)/bin/python -a -x $(1)/bin/pip || { rm -rf $(1); $(PYTHON) -m venv $(1) 2>/dev/null; } || { \
	  echo "Installing python3-venv"; \
	  command -v apt-get >/dev/null || { echo "Install Python's venv module, then run make again."; exit 1; }; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq python3-venv >/dev/null && \
	  rm -rf $(1) && $(PYTHON) -m venv $(1); }
endef

.PHONY: java
java:
	@java_version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	[ "$${java_version:-0}" -ge 17 ] || { \
	  command -v apt-get >/dev/null || { \
	    echo "Spark needs a Java runtime, 17 or newer: install one (Temurin, your system's openjdk), then run make again."; exit 1; }; \
	  if [ -z "$$CI" ] && [ "$$(id -u)" != 0 ]; then \
	    echo "Spark needs a Java runtime, 17 or newer. Install openjdk-17-jre-headless with sudo apt-get? [y/N]"; \
	    read -r answer; [[ "$$answer" =~ ^[yY] ]] || { echo "Install Java, then run make again."; exit 1; }; fi; \
	  echo "Installing a Java runtime with apt-get"; \
	  $(SUDO) apt-get update -qq && \
	  { $(SUDO) apt-get install -y -qq openjdk-17-jre-headless >/dev/null 2>&1 || \
	    $(SUDO) apt-get install -y -qq default-jre-headless >/dev/null; }; }
