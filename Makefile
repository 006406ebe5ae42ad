# `make demo` and `make test` work from a fresh clone with Python 3.11+, pip and make; both make .venv once.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# or every process compiles every module again, and tests start hundreds of them
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs pictures test coverage test-libraries test-storage test-engines test-trackers test-lowest fuzz audit setup setup-test check benchmarks clean

demo: setup
	@$(BIN)/shiftproof demo

# files side by side, and each in one process: its tests share what is slow to make; the processes fill the cores, so that
# libraries of linear algebra with threads of their own would only wait for one another, and that is spinning
SIDE_BY_SIDE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
test: setup-test
	$(SIDE_BY_SIDE) $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(PYTEST_ARGS)

# which lines and branches no test runs; takes half as long again
coverage: setup-test
	$(MAKE) test PYTEST_ARGS="--cov --cov-report=term:skip-covered $(PYTEST_ARGS)"

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

# timm, torchvision, transformers and open_clip beside torch: large, so only where their models are to be tested
test-libraries: setup-test
	$(PIP) torchvision==0.28.0 timm transformers open_clip_torch
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest tests/models/test_library_names.py tests/models/test_zero_shot.py tests/models/test_model_contract.py tests/training $(PYTEST_ARGS)

# data, store and report in a bucket of an S3 server on this machine: its libraries are 150 MB, which no other test needs
test-storage: setup-test
	$(PIP) -e '.[http,s3]'
	$(PIP) 'moto[s3,server]>=5.1'  # by itself: pip finds no way through both
	$(BIN)/python -m pytest tests/storage $(PYTEST_ARGS)

# a Ray cluster of two nodes on the loopback address, and submitit's local jobs
test-engines: setup-test
	$(PIP) -e '.[dev,ray,slurm]'
	RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 RAY_USAGE_STATS_ENABLED=0 $(BIN)/python -m pytest tests/engines $(PYTEST_ARGS)

# MLflow, Weights & Biases and the Hub's library read what `shiftproof publish` writes, on disk alone
test-trackers: setup-test
	$(PIP) -e '.[dev,mlflow,wandb]'
	$(PIP) huggingface_hub
	WANDB_MODE=offline $(BIN)/python -m pytest tests/publishing $(PYTEST_ARGS)

# the oldest versions that pyproject.toml allows, but for torch; the rest of what they need is as new as ever
LOWEST := .venv-lowest
test-lowest: $(LOWEST)/.made
	$(SIDE_BY_SIDE) $(LOWEST)/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(PYTEST_ARGS)

$(LOWEST)/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip compile --quiet --resolution lowest-direct --extra dev -c constraints.txt -o $(LOWEST)/versions.txt pyproject.toml
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -c $(LOWEST)/versions.txt -e '.[dev]'
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps imagecorruptions==1.1.2
	@touch $@

# damaged files through every reader, on all cores: CASES=200000 SEED=1 READERS="coco voc"; files that fail are kept in fuzz-found/
fuzz: setup-test
	PYTHONPATH=tests $(BIN)/python -m fuzz $(if $(CASES),--cases $(CASES)) $(if $(SEED),--seed $(SEED)) $(if $(READERS),--readers $(READERS)) $(FUZZ_ARGS)

# the site of docs/, in site/; a warning, such as a link that leads nowhere, is an error
docs: .venv/.docs
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs site
	@echo site/index.html

# what is there for the tests has it
.venv/.docs: .venv/.demo
	[ .venv/.test -nt .venv/.demo ] || $(PIP) -e '.[docs]'
	@touch $@

# the pictures of README and docs, from the demo, taken in Chromium
pictures: setup-test
	$(BIN)/python tools/make_pictures.py

# known holes of the newest and of the lowest versions; --strict, or what could not be looked up would pass
audit: $(LOWEST)/.made
	$(LOWEST)/bin/uv pip compile --quiet --extra dev -c constraints.txt -o $(LOWEST)/newest.txt pyproject.toml
	for list in newest versions; do \
	  $(LOWEST)/bin/uv tool run pip-audit --strict --progress-spinner off --no-deps --disable-pip -r $(LOWEST)/$$list.txt || exit 1; done

check: setup-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# docs/speed.md, beside the peers, in about an hour: BENCHMARKS="predict_speed study_speed" for these rows alone
benchmarks: setup-test
	$(PIP) albumentations torchvision==0.28.0
	$(PIP) --no-deps pytorch-ood
	$(BIN)/python benchmarks/page.py $(BENCHMARKS)

clean:
	rm -rf .venv $(LOWEST) shiftproof-demo fuzz-found site
