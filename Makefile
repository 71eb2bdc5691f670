# Two commands do all their own set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Recorded when the environment is complete, so that an interrupted installation is done again.
READY := $(VENV)/.ready

.PHONY: demo test test-long test-targets lint types unit benchmark docs clean

demo: $(READY)
	$(BIN)/coupler demo --out demo

test: lint types unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright

unit: $(READY)
	$(BIN)/pytest -n auto

# The sweeps that `make test` takes only a part of.
test-long: $(READY)
	COUPLER_TEST_EFFORT=long $(BIN)/pytest -n auto -m 'long or sampled'

# What depends on rounding, on each level of x86-64 that this machine has.
test-targets: $(READY)
	$(BIN)/python tools/test_targets.py -n auto

# The pages of docs/ and the reference as a site, docs/_build/html; a warning is an error.
docs: $(VENV)/.docs-ready
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "built docs/_build/html/index.html"

$(VENV)/.docs-ready: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

# A benchmark that compares with a library that is not installed says so and skips it.
benchmark: $(READY)
	for file in benchmarks/*.py; do echo; echo "== $$file"; $(BIN)/python $$file || exit 1; done

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("coupler needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist docs/_build
