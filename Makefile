# `make demo` and `make test` work on a fresh machine with Python 3.11 and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SERVERS := $(VENV)/.servers

.PHONY: setup test hunt check format demo demo-traffic docs package bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ensue needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/ensue warm
	@touch $(STAMP)

# Checks, then every test; with TIMES=1 it ends with the slowest fifty.
test: setup check $(SERVERS)
	$(BIN)/python -m tests.lanes $(if $(TIMES),--times)

# Looks for unknown faults: make hunt [HUNTS="engines gateways"] [MINUTES=30] [SEED=7] [FAULTS=stall]
hunt: setup $(SERVERS)
	$(BIN)/python -m tests.hunts $(HUNTS) $(addprefix --minutes ,$(MINUTES)) $(addprefix --seed ,$(SEED)) $(addprefix --faults ,$(FAULTS))

# Databases that tests start; where they cannot be installed, this says so and those tests skip. And
# what lets each Java of a test start sooner.
$(SERVERS): tests/servers/install.sh | $(STAMP)
	@sh tests/servers/install.sh
	@command -v java >/dev/null && $(BIN)/python -m tests.spark.class_archive || true
	@touch $(SERVERS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: setup
	@$(BIN)/ensue demo --spark

# A car on MQTT, monitors beside the road by proximity over NATS, an office on Redis: real brokers.
demo-traffic: setup $(SERVERS)
	@$(BIN)/python examples/traffic/demo.py

docs: setup
	$(BIN)/mkdocs build --strict

# The sdist, the wheel made from it, and that wheel serving from a fresh environment.
package:
	$(PYTHON) deploy/check.py

# The extension for Visual Studio Code; needs Node.js.
extension:
	cd editors/vscode && npm ci && npm run compile && npm test && npm run package

# Takes minutes, and wants the machine for itself; `benchmarks/compare.py` holds it against the record.
bench: setup
	@mkdir -p build/bench
	$(BIN)/ensue bench machine --json build/bench/machine.json
	$(BIN)/ensue bench batch --json build/bench/batch.json

clean:
	rm -rf $(VENV) site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
