# `make demo` and `make test` work from a bare clone: they create .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# small matrices: more threads than one only get in each other's way
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: install demo test test-all mutants bench lint format clean

install: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Sottovoce needs Python 3.11 or newer; set PYTHON=... to one"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

demo: install
	$(BIN)/sottovoce demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: install lint
	$(BIN)/python -m pytest -n 2 --cov --cov-report=
	$(BIN)/coverage report --include='*/privacy/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

test-all: install lint
	$(BIN)/python -m pytest -n 2 -m 'slow or not slow'
	$(BIN)/python tests/mutants.py

mutants: install
	$(BIN)/python tests/mutants.py

bench: install
	$(BIN)/python benchmarks/ask.py

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
