# What a person needs: `make demo`, `make test`. Everything is set up in .venv first, with Python 3.10 to 3.13.
#   make test PYTHON=python3.12     another interpreter
#   make test ARGS="-k recall"      arguments for pytest, the demo or a benchmark

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
DATA ?= bench/data

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
READY := $(VENV)/.ready
WHEEL_VENV := .venv-wheel
BENCH_VENV := .venv-bench
VOICE_VENV := .venv-voice
BENCH_STORES := chromadb lancedb mem0ai
LOWEST := livekit-agents==1.6.10 supermemory==3.48.0
WHEEL_TESTS ?= tests/unit tests/session
WHEEL_TESTS_V5 := tests/service/test_store.py tests/clients/programs/plugin_v5.py
# Without the notice of a next generation of the tool, which is no warning about the pages.
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
CODE := src tests examples bench .ci

.DEFAULT_GOAL := help
.PHONY: help demo test check docs format build test-wheel bench-embedded bench-engine bench-mirror bench-reply bench-facts bench-redact bench-dashboard bench-retrieval soak e2e-voice clean

help: ## Show the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r target text; do printf '%-24s %s\n' "$$target" "$$text"; done

# Done again when the dependencies change.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "Python 3.10 to 3.13 is needed. Name one: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
		{ echo "Python's venv module is needed (Debian: apt install python3-venv)."; exit 1; }
	@echo "Setting up $(VENV), once"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --upgrade --constraint constraints.txt pip
	@$(PIP) install --quiet --constraint constraints.txt --editable ".[local]" --group dev
	@touch $@

demo: $(READY) ## A caller rings twice and is remembered, on this machine, with no key
	@$(BIN)/supermemory-livekit demo $(ARGS)

test: $(READY) ## All tests
	@$(BIN)/python -m pytest $(ARGS)

check: $(READY) ## Format, lint, strict types, and the documentation site
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/pyright
	$(SITE) --quiet

docs: $(READY) ## The documentation site in site/
	$(SITE)

format: $(READY) ## Format and mend what can be mended by itself
	$(BIN)/ruff check --fix --quiet $(CODE)
	$(BIN)/ruff format $(CODE)

build: $(READY) ## Wheel and source archive in dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist

# The wheel as a user gets it, on the oldest dependencies it allows, without the sources in reach; then on the other
# generation of the SDK.
test-wheel: build ## The built wheel on the lowest allowed dependencies, and on the SDK 5.x
	rm -rf $(WHEEL_VENV)
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(WHEEL_VENV)/bin/python -m pip install --quiet dist/*.whl $(LOWEST)
	$(WHEEL_VENV)/bin/python -W error -c "import supermemory_livekit"
	$(WHEEL_VENV)/bin/python -m pip install --quiet "$$(ls dist/*.whl)[local]" $(LOWEST) --group dev
	$(WHEEL_VENV)/bin/python -m pytest -o pythonpath=. --quiet $(WHEEL_TESTS)
	$(WHEEL_VENV)/bin/supermemory-livekit demo
	$(WHEEL_VENV)/bin/python -m pip install --quiet "supermemory>=5,<6"
	$(WHEEL_VENV)/bin/python -m pytest -o pythonpath=. --quiet $(WHEEL_TESTS_V5)
	$(WHEEL_VENV)/bin/supermemory-livekit demo

bench-embedded: $(READY) ## How long recall takes and when a call becomes recallable, on the embedded service
	@$(BIN)/python bench/embedded.py $(ARGS)

# The stores it compares with live in an environment of their own; one that cannot be installed is left out.
$(BENCH_VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(BENCH_VENV), once"
	@$(PYTHON) -m venv $(BENCH_VENV)
	@$(BENCH_VENV)/bin/python -m pip --disable-pip-version-check install --quiet --editable ".[local,postgres]"
	@for store in $(BENCH_STORES); do \
		$(BENCH_VENV)/bin/python -m pip --disable-pip-version-check install --quiet $$store || \
			echo "$$store cannot be installed here"; \
	done
	@touch $@

bench-engine: $(BENCH_VENV)/.ready ## The embedded service with 100,000 memories, beside Chroma, LanceDB and mem0
	@$(BENCH_VENV)/bin/python bench/engine.py $(ARGS)

bench-mirror: $(READY) ## How fast a caller's memory is here, and searched here
	@$(BIN)/python bench/mirror.py $(ARGS)

# In real time, for some six minutes: run it on a machine that does nothing else.
bench-reply: $(READY) ## What memory costs a reply, in calls in real time, beside other ways; ARGS=--quick
	@$(BIN)/python bench/reply.py $(ARGS)

bench-dashboard: $(READY) ## A picture of the Grafana dashboard, from calls in real time; needs prometheus; four minutes
	@$(BIN)/python bench/dashboard.py $(ARGS)

bench-facts: $(READY) ## How well facts are drawn from calls
	@$(BIN)/python bench/facts.py $(ARGS)

bench-redact: $(READY) ## What the ready-made redactor costs per turn
	@$(BIN)/python bench/redact.py $(ARGS)

bench-retrieval: $(READY) ## How well stored calls are found; DATA=folder of LoCoMo conversations
	@$(BIN)/python bench/retrieval.py $(DATA) $(ARGS)

# Some six minutes on two cores; every seed is another course of events.
soak: $(READY) ## Calls under faults and kills, then a count of every turn; ARGS="--seed 7 --no-spool"
	@$(BIN)/python -m bench.soak $(ARGS)

# The parts of a spoken call are in an environment of their own: nothing else needs them, and one is under the GPL.
VOICE_PARTS := examples/spoken_call/requirements.txt

$(VOICE_VENV)/.ready: pyproject.toml constraints.txt $(VOICE_PARTS)
	@echo "Setting up $(VOICE_VENV), once"
	@$(PYTHON) -m venv $(VOICE_VENV)
	@$(VOICE_VENV)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint constraints.txt --editable ".[local]" pytest pytest-asyncio pytest-timeout
	@$(VOICE_VENV)/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r $(VOICE_PARTS) || \
		echo "The parts of a spoken call cannot be installed here"
	@touch $@

# In real time, a minute or two. No part of `make test`.
e2e-voice: $(VOICE_VENV)/.ready ## Calls with real audio: voice detection, recognition, barge-in, hang-up, no cloud
	@$(VOICE_VENV)/bin/python -m tests.e2e_voice $(ARGS)

clean: ## Remove what the targets have made
	rm -rf $(VENV) $(WHEEL_VENV) $(BENCH_VENV) $(VOICE_VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov
