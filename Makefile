# Every target makes its own environment from a bare clone; python3 (3.11 or later) is all it needs.
PYTHON ?= python3
VENV := .venv
DEMO := .venv-demo
BENCH := .venv-bench
PEERS := .venv-peers
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check
OLD_PYTHON := import sys; sys.exit(0 if sys.version_info >= (3, 11) else "rareswitch needs Python 3.11 or later; $(PYTHON) is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.")

.DEFAULT_GOAL := help
.PHONY: help demo contest quick browser test kernels docs check format bench peers clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c '$(OLD_PYTHON)'
	@echo "Making the environment in $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(PIP_FLAGS) --editable '.[dev]'
	@touch $@

# What the demo runs in: the environment of the tests if it is there, otherwise a small one of its own.
DEMO_BIN = $(if $(wildcard $(VENV)/installed),$(BIN),$(DEMO)/bin)

$(DEMO)/installed: pyproject.toml
	@$(PYTHON) -c '$(OLD_PYTHON)'
	@echo "Making a small environment in $(DEMO) (once; half a minute or so, mostly downloads) ..."
	@$(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python -m pip install $(PIP_FLAGS) --editable '.[experiment,plot]'
	@touch $@

demo: $(if $(wildcard $(VENV)/installed),,$(DEMO)/installed) ## Eight weeks of an experiment in a minute, with a table and a picture
	@$(DEMO_BIN)/rareswitch demo --plot demo.png

# Which worlds the contest is held in: ten, field or changing.
SUITE ?= ten

contest: $(VENV)/installed ## Learners in a suite of worlds, for hours; resumable. SUITE=field or changing, HALF=reporting; folders add worlds: DATA= MovieLens, TABLES= tables
	@mkdir -p contest
	@$(BIN)/rareswitch contest --suite '$(SUITE)' $(if $(HALF),--half '$(HALF)') $(if $(DATA),--data '$(DATA)') $(if $(TABLES),--tables '$(TABLES)') \
		--out contest/runs --plots 'contest/$(SUITE)' --markdown 'contest/$(SUITE).md'

quick: $(VENV)/installed ## Run the tests that take little, under a minute: what one runs while working
	@$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow" tests/unit tests/property

browser: # the tests of the page need a Chromium; where there is none, and none can be installed, they are skipped
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then echo "Installing chromium ..." && apt-get -qq update \
		&& DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium >/dev/null; fi || true

test: $(VENV)/installed browser ## Run all tests
	@$(BIN)/python -m pytest -q -n auto --dist worksteal

kernels: $(VENV)/installed ## Repeat the golden tests under two other kernel types of OpenBLAS that this processor can run
	@$(BIN)/python tests/reference/processors.py

docs: $(VENV)/installed ## Build the documentation into site/; a warning or a broken link fails
	@$(BIN)/zensical build --strict --clean

check: $(VENV)/installed ## Lint, format, types, import contract, documentation, all tests, other kernels: what CI runs
	@echo "ruff ..." && $(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .
	@echo "mypy --strict ..." && $(BIN)/mypy
	@echo "import contract ..." && $(BIN)/lint-imports --no-cache > .import-contract.log || (cat .import-contract.log; exit 1)
	@rm -f .import-contract.log
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory kernels

format: $(VENV)/installed ## Rewrite the code in its canonical form
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

$(BENCH)/installed: pyproject.toml benchmarks/requirements.txt
	@echo "Making the environment of the benchmarks, peers included, in $(BENCH) (once) ..."
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip install $(PIP_FLAGS) --editable '.[data,dask,parquet,postgres,serve]' --requirement benchmarks/requirements.txt
	@touch $@

# Each family of benchmarks is a script; its page says the commit it was measured at. ARGS="--quick", "--case NAME …", …
FOLDERS = $(if $(DATA),--data '$(DATA)') $(if $(TABLES),--tables '$(TABLES)') $(if $(SHOP),--shop '$(SHOP)')

bench: $(BENCH)/installed ## Measure, in five families, into docs/evidence: a day. ARGS=--quick for a look; folders add worlds: DATA= MovieLens, TABLES= tables, SHOP= the Open Bandit Dataset
	@status=0; for family in regret inference speed faults peers; do \
		$(BENCH)/bin/python benchmarks/$$family.py --out benchmarks/$$family.jsonl $(FOLDERS) $(ARGS) || status=1; \
	done; exit $$status

$(PEERS)/installed: pyproject.toml benchmarks/peers-requirements.txt
	@echo "Making the environment of the peers' contest in $(PEERS) (once) ..."
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install $(PIP_FLAGS) --editable '.[parquet,data]' --requirement benchmarks/peers-requirements.txt
	@touch $@

peers: $(PEERS)/installed ## Other libraries, all settings, into docs/evidence/peers.md: an hour or two. DATA=folder adds MovieLens, ARGS="--keep FILE" resumes
	@RARESWITCH_OBP=make $(PEERS)/bin/python benchmarks/peers.py --out benchmarks/peers.jsonl $(FOLDERS) $(ARGS)

clean: ## Remove environments and caches
	@rm -rf $(VENV) $(DEMO) $(BENCH) $(PEERS) site .cache .venv-obp .pytest_cache .mypy_cache .ruff_cache .hypothesis demo.png
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
