# The verbs of this project; `make` alone lists them. Works with GNU make 3.81 and later.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
CUPY   := $(VENV)/.cupy
JOBS   ?= auto
# LOCK= (empty) takes the newest releases instead, as the weekly test does
LOCK   ?= requirements.lock
PIP    := $(BIN)/python -m pip install --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help lab test check test-gpu browser-test parity build demo demo-cluster bundle size bench bench-operations bench-gpu bench-grading grade-many format lock clean

help:  ## list these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: $(READY)  ## open the course in JupyterLab (PORT=8899, BROWSER=none)
	@$(BIN)/course lab $(if $(PORT),--port $(PORT)) $(if $(BROWSER),--browser "$(BROWSER)")

test: check  ## lint, types, unit tests, doctests, every notebook; what was skipped and why
	$(BIN)/pytest -n $(JOBS) --dist loadscope --nbval -m "not browser"
	@echo "Not run here: the browser test, which needs Chromium (make browser-test)."

check: $(READY)  ## lint and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

test-gpu: $(CUPY)  ## the tests of devices on a GPU, beside PyTorch where it can use that
	@$(BIN)/python -c 'import sys; from tensorkit import gpu; sys.exit(gpu.missing() and \
	    f"No GPU to test on: {gpu.missing()} make test uses the simulated device.")'
	$(BIN)/pytest $(addprefix tests/tensorkit/test_,on_devices.py training_on_devices.py cuda.py \
	    against_cupy.py against_pytorch_cuda.py)

browser-test: $(READY)  ## drive JupyterLab in Chromium
	$(BIN)/pytest -m browser tests/browser

parity: $(READY)  ## compare what the chapters print with PyTorch, where that is installed
	$(BIN)/python tests/course/parity.py $(CHAPTER)

build: $(READY)  ## build the notebooks from their texts (CHAPTER=01_tensors)
	$(BIN)/course build $(CHAPTER)

demo: $(READY)  ## rehearse a class with nbgrader, from release to feedback
	$(BIN)/course demo

demo-cluster: $(READY)  ## grade 200 made-up learners on a scheduler and two workers, into PostgreSQL
	@command -v pg_virtualenv > /dev/null || { \
	    echo "This needs PostgreSQL; on Debian and Ubuntu: apt install postgresql"; exit 1; }
	pg_virtualenv $(BIN)/python tests/benchmarks/demo_cluster.py

bundle: $(READY)  ## make the folder that learners get
	$(BIN)/course bundle

size: $(READY)  ## count the code lines of tensorkit, by room
	@$(BIN)/python tests/size.py

bench: $(READY)  ## measure against PyTorch and NumPy, write docs/benchmark.md (ROWS="a: b:")
	$(BIN)/python tests/benchmarks/bench.py $(if $(ROWS),--rows $(ROWS),--write)

bench-operations: $(READY)  ## time every operation beside PyTorch's: where it takes 2x (ABOVE=, ROWS=, LARGE=1)
	$(BIN)/python tests/benchmarks/operations.py $(if $(ROWS),--rows $(ROWS)) \
	    $(if $(ABOVE),--above $(ABOVE)) $(if $(LARGE),--large)

bench-gpu: $(CUPY)  ## measure on a GPU against CuPy and PyTorch, write docs/benchmark-gpu.md (ROWS=)
	$(BIN)/python tests/benchmarks/on_gpu.py $(if $(ROWS),--rows $(ROWS),--write)

bench-grading: $(READY)  ## measure grading against nbgrader's, write docs/grading.md
	$(BIN)/python tests/benchmarks/grading.py --write

grade-many: $(READY)  ## grade 2,000 made-up learners, kill the grader 20 times, compare the points
	$(BIN)/python tests/benchmarks/many.py --write

format: $(READY)  ## put the code in its form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: $(READY)  ## write requirements.lock from pyproject.toml (UPGRADE=1: newest releases)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --custom-compile-command "make lock" \
	    $(if $(UPGRADE),--upgrade) --quiet --output-file requirements.lock

clean:  ## remove the environment and all caches, never your work
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './work/*' -prune -exec rm -rf {} +

# CuPy, where there is a GPU and no CuPy yet, for the CUDA that its driver knows. Asked each time:
# the rule makes no file.
$(CUPY): $(READY)
	@$(BIN)/python -c 'import cupy' 2> /dev/null || ! command -v nvidia-smi > /dev/null || { \
	    echo "Installing CuPy and what it loads of CUDA's toolkit: about a gigabyte"; \
	    $(PIP) --no-build-isolation -e ".[cuda$$(nvidia-smi | \
	        sed -n 's/.*CUDA[A-Z ]*Version: *\([0-9]*\).*/\1/p')]"; }

# The environment, made once and again when one of these changes.
$(READY): requirements.lock pyproject.toml $(wildcard course/jupyter/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "This course needs Python 3.11 or newer; name one: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "This Python lacks venv; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(if $(LOCK),$(PIP) --require-hashes -r $(LOCK),$(PIP) --upgrade '.[dev]')
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@
