.DEFAULT_GOAL := help
.PHONY: run stop console console-check opensearch opensearch-stop e2e-model build requirements test check audit openapi bench bench-search help

PYTHON ?= python3
BIN := .venv/bin
# uv of this machine, or our own below .local: nothing is installed outside the clone.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .local/tools/bin/uv)

run: .venv/.synced ## Start the whole service on this machine; TIDEMARK_PORT, TIDEMARK_STATE_DIR, TIDEMARK_TOUR=0
	@exec $(BIN)/python -m infra.local

stop: .venv/.synced ## Stop the service of TIDEMARK_STATE_DIR from another terminal
	@$(BIN)/python -m infra.local stop

opensearch: .venv/.synced ## Start a real OpenSearch in the background (Java 17+ and Maven, no Docker); TIDEMARK_OPENSEARCH_PORT
	@$(BIN)/python -m infra.local.opensearch start

opensearch-stop: .venv/.synced ## Stop it; its data stays
	@$(BIN)/python -m infra.local.opensearch stop

test: .venv/.synced ## All tests, in two workers
	$(BIN)/pytest -n 2

check: .venv/.synced ## Format, lint and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

audit: .venv/.synced ## Known vulnerabilities of what is deployed, and secrets in tracked files
	$(BIN)/python -m infra.audit dependencies
	$(BIN)/python -m infra.audit secrets

e2e-model: .venv/.synced ## A conversation with a real small language model; fetches 100 MB, takes minutes
	$(BIN)/pytest tests/e2e/real_model.py -q -s

build: export SAM_CLI_TELEMETRY := 0
build: export AWS_DEFAULT_REGION ?= us-east-1
build: requirements ## Validate template.yaml and build what `sam deploy` uploads; needs Python 3.13
	$(BIN)/sam validate --lint
	# SAM builds with the Python of the runtime; a pyenv shim answers only for a version that is switched on.
	PYENV_VERSION="$$(pyenv latest 3.13 2>/dev/null)" $(BIN)/sam build

requirements: .venv/.synced ## Export the dependencies layer from uv.lock
	$(UV) export --quiet --frozen --no-dev --no-emit-project --extra opensearch --no-header --no-annotate -o layers/dependencies/requirements.txt

openapi: .venv/.synced ## Write the OpenAPI file from the handlers
	$(BIN)/python -m infra.openapi

console: ## Check the web console's sources and build what the service serves of them (Node 20.19+ and npm)
	npm --prefix console ci --silent
	npm --prefix console run --silent check
	npm --prefix console run --silent build

console-check: ## The same, and whether the built files in the repository are what the sources give
	npm --prefix console ci --silent
	npm --prefix console run --silent check
	npm --prefix console run --silent build -- --outDir ../.build/console
	diff -r .build/console layers/core/tidemark/console/static || { echo "run \`make console\` and commit what it built"; exit 1; }

bench: .venv/.synced ## Benchmarks
	$(BIN)/python -m tests.bench

bench-search: .venv/.synced ## Search on OpenSearch, quality and time; DATA=folder, ARGUMENTS="--rows 100000 --scopes 1000"
	$(BIN)/python -m tests.bench search $(DATA) $(ARGUMENTS)

help: ## This list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

.venv/.synced: pyproject.toml uv.lock | $(if $(filter uv,$(UV)),,$(UV))
	@echo "Installing the project's packages into .venv"
	@$(UV) sync --quiet --frozen --all-extras --python $(PYTHON)
	@touch $@

.local/tools/bin/uv:
	@echo "Installing uv into .local/tools"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .local/tools uv
