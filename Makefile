# Two commands do all their own set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Recorded when the environment is complete, so that an interrupted installation is done again.
READY := $(VENV)/.ready

.PHONY: demo test lint types unit benchmark clean

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

benchmark: $(READY)
	$(BIN)/python benchmarks/compiler.py
	$(BIN)/python benchmarks/robot.py

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("coupler needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist
