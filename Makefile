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
.PHONY: help demo contest quick test kernels check format bench peers clean

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

test: $(VENV)/installed ## Run all tests
	@$(BIN)/python -m pytest -q -n auto --dist worksteal

kernels: $(VENV)/installed ## Repeat the golden tests under two other kernel types of OpenBLAS that this processor can run
	@$(BIN)/python tests/reference/processors.py

check: $(VENV)/installed ## Lint, format, types, import contract, all tests, other kernels: what CI runs
	@echo "ruff ..." && $(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .
	@echo "mypy --strict ..." && $(BIN)/mypy
	@echo "import contract ..." && $(BIN)/lint-imports --no-cache > .import-contract.log || (cat .import-contract.log; exit 1)
	@rm -f .import-contract.log
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory kernels

format: $(VENV)/installed ## Rewrite the code in its canonical form
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

$(BENCH)/installed: pyproject.toml benchmarks/requirements.txt
	@echo "Making the environment of the benchmarks, peers included, in $(BENCH) (once) ..."
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip install $(PIP_FLAGS) --editable '.[data,dask,parquet,postgres]' --requirement benchmarks/requirements.txt
	@touch $@

bench: $(BENCH)/installed ## Measure against peers, side by side in one run. Folders add worlds and logs: DATA= MovieLens, TABLES= tables, SHOP= the Open Bandit Dataset
	@status=0; \
	$(BENCH)/bin/python benchmarks/design.py --out benchmarks/design.md || status=1; \
	$(BENCH)/bin/python benchmarks/batched.py --out benchmarks/batched.md || status=1; \
	$(BENCH)/bin/python benchmarks/switching.py --out benchmarks/switching.md || status=1; \
	$(BENCH)/bin/python benchmarks/foresight.py --out benchmarks/foresight.md || status=1; \
	$(BENCH)/bin/python benchmarks/planning.py --out benchmarks/planning.md || status=1; \
	$(BENCH)/bin/python benchmarks/updates.py --out benchmarks/updates.md || status=1; \
	$(BENCH)/bin/python benchmarks/plans.py $(if $(DATA),--data '$(DATA)') $(if $(TABLES),--tables '$(TABLES)') --out benchmarks/plans.md || status=1; \
	$(BENCH)/bin/python benchmarks/many.py --out benchmarks/many.md || status=1; \
	$(BENCH)/bin/python benchmarks/wine.py --out benchmarks/wine.md || status=1; \
	$(BENCH)/bin/python benchmarks/clicks.py --out benchmarks/clicks.md || status=1; \
	$(BENCH)/bin/python benchmarks/click_cells.py --out benchmarks/click_cells.md || status=1; \
	$(BENCH)/bin/python benchmarks/settings.py $(if $(DATA),--data '$(DATA)') $(if $(TABLES),--tables '$(TABLES)') --out benchmarks/settings.md || status=1; \
	$(BENCH)/bin/python benchmarks/relatives.py --out benchmarks/relatives.md || status=1; \
	$(BENCH)/bin/python benchmarks/intervals.py --out benchmarks/intervals.md || status=1; \
	$(BENCH)/bin/python benchmarks/update.py --out benchmarks/update.md || status=1; \
	$(BENCH)/bin/python benchmarks/store.py --out benchmarks/store.md || status=1; \
	$(BENCH)/bin/python benchmarks/decide.py --out benchmarks/decide.md || status=1; \
	$(BENCH)/bin/python benchmarks/records.py --out benchmarks/records.md || status=1; \
	$(BENCH)/bin/python benchmarks/obp_equality.py $(if $(SHOP),--data '$(SHOP)') --out benchmarks/obp_equality.md || status=1; \
	$(if $(SHOP),$(BENCH)/bin/python benchmarks/open_bandit.py --data '$(SHOP)' --out benchmarks/open_bandit.md || status=1;) \
	$(BENCH)/bin/python benchmarks/schedules.py --out benchmarks/schedules.md || status=1; \
	$(BENCH)/bin/python benchmarks/value_coverage.py $(if $(DATA),--movielens '$(DATA)') $(if $(TABLES),--tables '$(TABLES)') --out benchmarks/value_coverage.md || status=1; \
	$(BENCH)/bin/python benchmarks/lift_coverage.py --out benchmarks/lift_coverage.md || status=1; \
	$(BENCH)/bin/python benchmarks/few_decisions.py --out benchmarks/few_decisions.md || status=1; \
	$(BENCH)/bin/python benchmarks/effects.py --out benchmarks/effects.md || status=1; \
	$(BENCH)/bin/python benchmarks/refusals.py --out benchmarks/refusals.md || status=1; \
	$(BENCH)/bin/python benchmarks/calibration.py --out benchmarks/calibration.md || status=1; \
	$(BENCH)/bin/python benchmarks/gate.py --out benchmarks/gate.md || status=1; \
	$(BENCH)/bin/python benchmarks/floor.py --out benchmarks/floor.md || status=1; \
	$(BENCH)/bin/python benchmarks/evaluate_speed.py --out benchmarks/evaluate_speed.md || status=1; \
	$(BENCH)/bin/python benchmarks/start.py --out benchmarks/start.md || status=1; \
	$(BENCH)/bin/python benchmarks/weeks.py --out benchmarks/weeks.md || status=1; \
	$(BENCH)/bin/python benchmarks/scales.py --out benchmarks/scales.md || status=1; \
	$(BENCH)/bin/python benchmarks/horizon.py $(if $(DATA),--data '$(DATA)') --out benchmarks/horizon.md || status=1; \
	$(BENCH)/bin/python benchmarks/trial.py --out benchmarks/trial.md || status=1; \
	$(BENCH)/bin/python benchmarks/limited_glm.py --out benchmarks/limited_glm.md || status=1; \
	$(BENCH)/bin/python benchmarks/changing.py --out benchmarks/changing.md || status=1; \
	$(BENCH)/bin/python benchmarks/cliffs.py --out benchmarks/cliffs.md || status=1; \
	$(BENCH)/bin/python benchmarks/kills.py --out benchmarks/kills.md || status=1; \
	$(BENCH)/bin/python benchmarks/experiment_kills.py --out benchmarks/experiment_kills.md || status=1; \
	$(BENCH)/bin/python benchmarks/hostile.py --out benchmarks/hostile.md || status=1; \
	$(BENCH)/bin/python benchmarks/processors.py --out benchmarks/processors.md || status=1; \
	exit $$status

$(PEERS)/installed: pyproject.toml benchmarks/peers-requirements.txt
	@echo "Making the environment of the peers' contest in $(PEERS) (once) ..."
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install $(PIP_FLAGS) --editable '.[parquet,data]' --requirement benchmarks/peers-requirements.txt
	@touch $@

peers: $(PEERS)/installed ## The contest against other libraries, all settings, into peers.md: an hour or two; a day with SEEDS=20 HORIZON=100000. DATA=folder adds MovieLens, RUNS=folder keeps runs, ENGINE=processes:4
	@$(PEERS)/bin/python benchmarks/contest_peers.py $(if $(DATA),--data '$(DATA)') $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(HORIZON),--horizon $(HORIZON)) $(if $(RUNS),--runs '$(RUNS)') $(if $(ENGINE),--engine '$(ENGINE)') --out peers.md

clean: ## Remove environments and caches
	@rm -rf $(VENV) $(DEMO) $(BENCH) $(PEERS) .venv-obp .pytest_cache .mypy_cache .ruff_cache .hypothesis demo.png
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
