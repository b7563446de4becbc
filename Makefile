# Everything a newcomer needs. `make demo` and `make test` install what they need into .venv first.
PYTHON ?= python3
BIN := .venv/bin
COVERED := protocol dissect core config assignors partitioners coordinator broker cluster server storage client offsets_log testing proxy control page playground
export KAFKA_VERSION ?= 4.3.1
# What runs without the tracer of coverage: it starts processes, or computes for long on lines that other tests reach, or is about
# what is not measured. Single tests are marked with untraced.
WITHOUT_COVERAGE := tests/cli tests/conformance tests/pipeline tests/real_kafka tests/reliability tests/scenarios \
  $(addprefix tests/,test_readme.py assignors/test_digests.py client/test_docs.py control/test_docs.py \
  testing/test_transactions_disturbed.py)
# Only these have tests with clients; to import all the others would take each worker 7 s.
CLIENT_TESTS = tests/clients $(shell grep -rl --include='test_*.py' 'mark\.clients' tests)
# `make kafka-versions` is about another one: the newest of Kafka 3, unless told.
OTHER_KAFKA := $(if $(filter 4.3.1,$(KAFKA_VERSION)),3.9.2,$(KAFKA_VERSION))
# Workers get files whole, in the order of the tests: those marked with `minutes` first.
BY_FILE := --dist loadfile --no-loadscope-reorder
# A Docker daemon, if there is one or START_DOCKERD=1 allows to start one, and in it an image of Kafka.
WITH_KAFKA := docker/with-docker.sh docker/kafka/with-image.sh
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# uv installs what pip would, in a tenth of the time.
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
# Hundreds of processes start; each would compile all of its modules anew, and each pytest rewrite all assertions.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo serve test lint check cover sim pipeline-demo pipeline-test format docs site bench conformance faults break record \
  kafka-versions kafka-image kafka-libs image image-test dist workflows assignor-vectors page page-test playground playground-test clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

demo: .venv/client ## run a consumer group of three real clients on groupcoord, and explain it
	@$(BIN)/groupcoord demo

serve: .venv/client ## run a broker for development on 127.0.0.1:9092
	@$(BIN)/groupcoord serve --dev --topic orders:6

test: cover ## run all tests, including those with real clients, with branch coverage
# Clients and processes wait more than they compute, so that there are more workers than cores.
	$(BIN)/pytest -n 5 $(BY_FILE) -m "not spark" $(WITHOUT_COVERAGE) $(CLIENT_TESTS)

lint: .venv/dev ## check format, lint, types, import contracts and generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.docs --check

check: lint ## make lint, and the quick tests; run it before every commit
	$(BIN)/pytest -n auto -m "not slow and not clients and not spark"

COVER = $(BIN)/pytest -n auto --hypothesis-profile=same -m "not clients and not spark" --cov-report=term --cov-fail-under=100
cover: .venv/dev ## run tests with branch coverage, which must be complete except for the command line and the pipeline
	$(COVER) $(WITHOUT_COVERAGE:%=--ignore=%) --ignore=tests/clients --ignore=tests/simulation $(COVERED:%=--cov=groupcoord.%)
# Simulated lives run the same code for long, so that of them only what is simulation is measured.
	$(COVER) tests/simulation --cov=groupcoord.simulation

SEEDS ?= 1000
sim: .venv/dev ## simulate random groups under faults with SEEDS seeds, and check invariants after every step
	$(BIN)/python -m groupcoord.simulation --seeds $(SEEDS)

pipeline-demo: .venv/pipeline page ## run the demo, then the pipeline on its log; writes a report to build/pipeline-demo
	@$(BIN)/groupcoord pipeline demo --out build/pipeline-demo

PIPELINE_TESTS ?= spark or not spark
PIPELINE_WORKERS ?= 2
pipeline-test: .venv/pipeline .venv/dev ## run the tests of the pipeline; installs PySpark (450 MB) and a Java
	$(BIN)/pytest -n $(PIPELINE_WORKERS) --dist loadfile -m "$(PIPELINE_TESTS)" tests/pipeline

page: groupcoord/page/static/report.html ## build the web pages of `groupcoord page` and `groupcoord pipeline` from web/ (needs Node 20 and npm)
groupcoord/page/static/report.html: web/node_modules/.installed $(shell find web -maxdepth 1 -type f) $(shell find web/src -type f)
	cd web && npm run --silent build

page-test: page .venv/dev .venv/pipeline ## test these pages: types, unit tests, and tests in a browser (Chromium)
	cd web && npm run --silent check && npm run --silent test && npm run --silent test:browser
	$(BIN)/pytest tests/page

playground: page .venv/dev ## build build/playground/index.html, a page that runs a coordinator in the browser: lessons and free play
	$(BIN)/python -m tools.build_playground

playground-test: playground ## test the playground in a browser (Chromium), offline
	cd web && npm run --silent test:playground

format: .venv/dev ## format the code, and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/dev ## regenerate the generated parts of the docs
	$(BIN)/python -m tools.docs

site: .venv/site build/npm ## build the docs as a website with search: build/site/index.html (needs npm)
	$(BIN)/python -m tools.site

bench: .venv/dev ## benchmark groupcoord and comparable programs in one run
	$(BIN)/python -m bench

CONFORMANCE ?= real_kafka
conformance: .venv/dev ## compare groupcoord with a real Kafka in a container, step by step (START_DOCKERD=1 starts a Docker daemon)
	$(WITH_KAFKA) $(BIN)/pytest -n 3 $(BY_FILE) -m "$(CONFORMANCE)"

faults: .venv/dev ## test that the recordings notice deliberate faults in the coordinator, one at a time
	$(BIN)/python -m tests.conformance.faults

SCALE ?= 1
break: .venv/dev ## attack a server and its data directory, with SCALE times the numbers in docs/reliability.md
	$(BIN)/python -m tests.reliability --scale $(SCALE)

record: .venv/dev ## record the responses of the real Kafka again
	$(WITH_KAFKA) $(BIN)/python -m tests.conformance.record --fresh

kafka-versions: .venv/dev ## write the differences of Kafka KAFKA_VERSION from the recorded version to docs/kafka-versions.md
	KAFKA_VERSION=$(OTHER_KAFKA) $(WITH_KAFKA) $(BIN)/python -m tests.conformance.versions

image: page ## build the container image of this checkout (START_DOCKERD=1 starts a Docker daemon, and ends it with its images)
	docker/with-docker.sh docker/groupcoord/build.sh

IMAGE_TESTS ?= docker
image-test: .venv/dev page ## build that image and test it: in Docker Compose, and from Python, Java and Go
	docker/with-docker.sh bash -c 'docker/groupcoord/build.sh && $(BIN)/pytest -m "$(IMAGE_TESTS)" tests/image'

dist: .venv/dev page ## build and check the sdist and the wheel in dist/; TAG=v1.2.3 also checks them for that release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tools.dist $(TAG:%=--tag %)

workflows: ## run actionlint for .github, and shellcheck for all scripts (needs Go and shellcheck)
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.9
	git ls-files '*.sh' .ci/run | xargs shellcheck --severity warning

kafka-image: ## build an image like apache/kafka from Debian's packages and Maven Central, without an image registry
	docker/with-docker.sh docker/kafka/build.sh

kafka-libs: ## download and verify the jars of Kafka, Kafka Streams and Spark's connector, for the tests that run them (needs Maven)
	@docker/kafka/jars.sh
	@docker/kafka/jars.sh 4.3.1-streams
	@docker/kafka/jars.sh spark-connector

assignor-vectors: .venv/dev kafka-libs ## compute the results of Kafka's server-side assignors again, for the tests (needs Java)
	$(BIN)/python -m tests.assignors.server_side_groups

clean: ## delete the virtual environment, all caches and everything that was built
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist web/node_modules groupcoord/page/static
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/uv:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "uv>=0.6,<1"
	@touch $@

.venv/client: .venv/uv pyproject.toml
	$(INSTALL) --editable ".[client,fast]"
	@touch $@

.venv/pipeline: .venv/uv pyproject.toml
	$(INSTALL) --editable ".[client,connect,fast,pipeline]"
	@touch $@

.venv/dev: .venv/uv pyproject.toml
	$(INSTALL) --editable ".[client,fast]" --group dev
	@touch $@

.venv/site: .venv/uv pyproject.toml
	$(INSTALL) --editable ".[testing]" --group site
	@touch $@

# What draws the diagrams of the site and searches it without a server, so that no other host is asked for it.
build/npm:
	npm install --silent --ignore-scripts --no-audit --no-fund --no-save --prefix $@ "@mermaid-js/tiny@^12" "iframe-worker@^1"
	@touch $@

web/node_modules/.installed: web/package-lock.json
	cd web && npm ci --silent --no-audit --no-fund
	@touch $@
