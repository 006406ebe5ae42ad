# `make demo` and `make test` work from a fresh clone with Python 3.11+, pip and make; both make .venv once.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-libraries setup setup-test check benchmarks clean

demo: setup
	@$(BIN)/shiftproof demo

# files side by side, and each in one process: its tests share what is slow to make
test: setup-test
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(PYTEST_ARGS)

setup: .venv/.demo

setup-test: .venv/.test

# torch is for the tests alone, so the demo never waits for it
.venv/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[demo]'
	@touch $@

.venv/.test: .venv/.demo
	$(PIP) torch
	$(PIP) -e '.[dev]'
	$(PIP) --no-deps imagecorruptions==1.1.2  # a second opinion in tests; what it asks for is long gone
	@touch $@

# timm, torchvision and transformers beside torch: large, so only where their models are to be tested
test-libraries: setup-test
	$(PIP) torchvision==0.28.0 timm transformers
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest tests/models/test_library_names.py tests/models/test_model_contract.py $(PYTEST_ARGS)

check: setup-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

benchmarks: setup-test
	for file in benchmarks/[a-z]*_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv shiftproof-demo
