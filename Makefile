# `make demo` and `make test` work from a bare clone: they create .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# small matrices: more threads than one only get in each other's way
export OPENBLAS_NUM_THREADS ?= 1

# what is compiled is kept: else each of the tests' many processes compiles all it imports anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test covered test-all chromium mutants bench lint format docs pictures \
	architecture reference clean

install: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Sottovoce needs Python 3.11 or newer; set PYTHON=... to one"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@# PyTorch is large: it is taken if pip has it at hand, else what needs it is not tested
	@$(BIN)/python -m pip install --quiet --no-index --no-deps torch >/dev/null 2>&1 \
		&& $(BIN)/python -m pip install --quiet --disable-pip-version-check torch \
		|| echo "no PyTorch at hand: tests that need it are skipped (pip install torch adds it)"
	@touch $(READY)

demo: install
	$(BIN)/sottovoce demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# side by side: tests often wait, for a process or the disk
test: install
	$(MAKE) --no-print-directory -j 2 lint covered

covered: install
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=
	$(BIN)/coverage report --include='*/privacy/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

test-all: install lint chromium
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow or not slow'
	$(BIN)/python tests/mutants.py

# the report is looked at in a real browser
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
		|| { apt-get update -qq && apt-get install -y -qq chromium; } \
		|| echo "no Chromium: the tests of the report in a browser will be skipped"

mutants: install
	$(BIN)/python tests/mutants.py

bench: install
	$(BIN)/python benchmarks/ask.py
	$(BIN)/python benchmarks/simulate.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/optuna_sampler.py
	$(BIN)/python benchmarks/federation.py
	$(BIN)/python benchmarks/secure_sum.py

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# the site, in site/: links and anchors are checked, nothing comes from the network
docs: install
	@$(BIN)/python -c 'import material, mkdocstrings_handlers.python' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean

pictures: install
	$(BIN)/python tools/pictures.py

architecture: install
	$(BIN)/python tools/architecture.py

reference: install
	$(BIN)/python tools/reference.py

clean:
	rm -rf $(VENV) site .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
