# Everything a newcomer needs. `make demo` and `make test` install what they need into .venv first.
PYTHON ?= python3
BIN := .venv/bin
COVERED := protocol core config assignors coordinator broker node server
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo serve test check cover format docs bench kafka-libs clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: .venv/client ## a consumer group of three real clients, living on groupcoord, explained as it happens
	@$(BIN)/groupcoord demo

serve: .venv/client ## a broker for development on 127.0.0.1:9092
	@$(BIN)/groupcoord serve --dev --topic orders:6

test: .venv/dev ## all tests, real clients included
	$(BIN)/pytest

check: .venv/dev ## format, lint, types, contracts, generated docs and the quick tests: before every commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.docs --check
	$(BIN)/pytest -m "not slow and not clients"

cover: .venv/dev ## every branch of everything but the command line is tested
	$(BIN)/pytest -m "not clients" --ignore=tests/cli --ignore=tests/conformance $(COVERED:%=--cov=groupcoord.%) \
	  --cov-report=term --cov-fail-under=100

format: .venv/dev ## let ruff format and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/dev ## write the generated parts of the docs anew
	$(BIN)/python -m tools.docs

bench: .venv/dev ## figures beside their peers, measured in one run
	$(BIN)/python -m bench

kafka-libs: docker/kafka/libs ## the jars of a real Kafka, for the tests that run its tools (needs Maven)

docker/kafka/libs: docker/kafka/pom.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$@
	@touch $@

clean: ## forget the environment and all caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

.venv/client: .venv/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[client,fast]"
	@touch $@

.venv/dev: .venv/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[client,fast]" --group dev
	@touch $@
