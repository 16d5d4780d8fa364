# make demo and make test need only Debian with make, Python >= 3.10, and root or sudo.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON  ?= python3
VENV    ?= .venv
OLDEST  ?= .venv-oldest
BIN     := $(VENV)/bin
SUDO    := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
TESTS   ?=
FAST    := not slow and not conformance and not oracle
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
test-rest: java $(VENV)/.installed ## Run the remaining tests: more cases, Spark Connect, S3, notebooks
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(FAST) and full" $(TESTS)

.PHONY: test-all
test-all: test test-rest ## Run all tests but the slow, corpus and oracle tests

.PHONY: conformance
conformance: java $(VENV)/.installed ## Run every case of delta-spec-testdata
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m conformance tests/conformance $(TESTS)

.PHONY: oracle
oracle: java $(VENV)/.installed ## Test SEEDS random table histories by delta-spark and delta-rs, and HDFS
	SPARKDELTA_ORACLE_SEEDS=$(or $(SEEDS),20) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow" -k "oracle or hdfs" tests/oracle tests/storage $(TESTS)

.PHONY: slow
slow: java $(VENV)/.installed ## Test crashes at every call, many writers, a cluster, little memory, all remaining cases
	$(BIN)/python -m pytest -m slow $(TESTS)

.PHONY: notebooks
notebooks: java $(VENV)/.installed ## Execute the notebooks
	$(BIN)/python -m pytest -m notebook tests/notebooks

OLDEST_WRITES := tests/commands/test_create_table.py tests/commands/test_write_options.py tests/table/test_log_compaction.py
.PHONY: test-oldest
test-oldest: java $(OLDEST)/.installed ## Run a small suite on the lowest supported pyspark
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "$(FAST) and not full and not notebook" -k "not distributed" tests/golden $(OLDEST_WRITES)

.PHONY: bench
bench: java $(VENV)/.installed ## Run the benchmarks; BENCH='--scale small' for a smoke test
	$(BIN)/python -m tests.benchmarks $(BENCH)

.PHONY: bench-plan
bench-plan: java $(VENV)/.installed ## Benchmark scan planning for up to 10M files; BENCH='--help' for options
	$(BIN)/python -m tests.benchmarks --only planning $(BENCH)

.PHONY: bench-checkpoint
bench-checkpoint: java $(VENV)/.installed ## Benchmark checkpoints of 1M files; BENCH='--most-files 10000000' for 10M
	$(BIN)/python -m tests.benchmarks --only checkpoints $(BENCH)

.PHONY: bench-write
bench-write: java $(VENV)/.installed ## Benchmark writes of 20M rows, one row, by 20 writers, and a commit of 1M actions
	$(BIN)/python -m tests.benchmarks --only writes $(BENCH)

.PHONY: bench-dml
bench-dml: java $(VENV)/.installed ## Benchmark DELETE, UPDATE and MERGE on 20M rows against delta-spark
	$(BIN)/python -m tests.benchmarks --only "row changes" $(BENCH)

.PHONY: bench-alter
bench-alter: java $(VENV)/.installed ## Benchmark ALTER TABLE on 20M rows and on 1M files against delta-spark
	$(BIN)/python -m tests.benchmarks --only alterations $(BENCH)

.PHONY: bench-maintenance
bench-maintenance: java $(VENV)/.installed ## Benchmark OPTIMIZE, VACUUM, RESTORE, clones and CONVERT against delta-spark
	$(BIN)/python -m tests.benchmarks --only maintenance $(BENCH)

.PHONY: bench-changes
bench-changes: java $(VENV)/.installed ## Benchmark changes and streams against delta-spark, exceptAll and Spark
	$(BIN)/python -m tests.benchmarks --only changes $(BENCH)

.PHONY: bench-growth
bench-growth: java $(VENV)/.installed ## Benchmark tables of 1M and 10M files; BENCH='--most-files 100000000' for 100M
	$(BIN)/python -m tests.benchmarks --only growth $(BENCH)

.PHONY: bench-calls
bench-calls: java $(VENV)/.installed ## Benchmark small calls, warm and first in a session, against Spark's own; minutes
	$(BIN)/python -m tests.benchmarks --only "fixed costs" $(BENCH)

.PHONY: bench-sql
bench-sql: java $(VENV)/.installed ## Benchmark reads by format("delta") and SQL against the calls that do the same; minutes
	$(BIN)/python -m tests.benchmarks --only sql $(BENCH)

##@ Checks
.PHONY: check
check: lint types imports ## Lint, check types and imports

.PHONY: lint
lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: $(VENV)/.installed
	$(BIN)/mypy

.PHONY: imports
imports: $(VENV)/.installed
	$(BIN)/lint-imports

##@ Housekeeping
.PHONY: clean
clean: ## Remove the virtual environments and caches
	rm -rf $(VENV) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*##/ {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- Dependencies of the targets above --------------------------------------------------------------

$(VENV)/.demo: pyproject.toml
	$(call make_venv,$(VENV))
	$(VENV)/bin/python -m pip install --quiet --editable ".[demo]"
	@touch $@

# make test needs neither linters nor notebooks.
$(VENV)/.tests: pyproject.toml
	$(call make_venv,$(VENV))
	$(VENV)/bin/python -m pip install --quiet --no-compile --editable ".[tests]"
	@touch $@

$(VENV)/.installed: pyproject.toml
	$(call make_venv,$(VENV))
	$(VENV)/bin/python -m pip install --quiet --editable ".[oracle]"
	@touch $@ $(VENV)/.tests

$(OLDEST)/.installed: pyproject.toml
	$(call make_venv,$(OLDEST))
	$(OLDEST)/bin/python -m pip install --quiet --editable ".[tests]" "pyspark[connect]==4.0.0"
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
	  echo "Installing a Java runtime"; \
	  $(SUDO) apt-get update -qq && \
	  { $(SUDO) apt-get install -y -qq openjdk-17-jre-headless >/dev/null 2>&1 || \
	    $(SUDO) apt-get install -y -qq default-jre-headless >/dev/null; }; }
