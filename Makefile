# The verbs of this project; `make` alone lists them. Works with GNU make 3.81 and later.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CUPY   := $(VENV)/.cupy
JOBS   ?= logical
# NEWEST=1 takes the newest releases instead of the locked ones, as the weekly test does
INSTALL = $(PYTHON) requirements/install.py $(if $(NEWEST),--newest)
# a file's tests run in one process, the files in the order of their names: notebooks, the short ones, last
PYTEST := $(BIN)/pytest -n $(JOBS) --dist loadscope --no-loadscope-reorder

# Where everything is "C", Python 3.11 cannot read an environment whose folder's name has an umlaut
ifneq (,$(filter C POSIX,$(LC_ALL)))
export LC_ALL := C.UTF-8
endif

.DEFAULT_GOAL := help
.PHONY: help lab teach demo bundle hosted build check format test test-all browser-test test-gpu parity hosted-check release-check lock site site-check clean size bench bench-operations bench-gpu bench-grading grade-many demo-cluster

help:  ## list these verbs
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } \
	    /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

## Learn

lab: install-lab  ## open the course in JupyterLab (PORT=8899, BROWSER=none, IP=0.0.0.0)
	@exec $(BIN)/course lab $(if $(PORT),--port $(PORT)) $(if $(BROWSER),--browser "$(BROWSER)") \
	    $(if $(IP),--ip $(IP))

## Teach

teach: install-teach  ## install what an instructor needs: nbgrader's commands, course grade
	@echo "Ready: $(BIN)/nbgrader and $(BIN)/course; docs/instructors.md leads through a course."

demo: install-teach  ## rehearse a class with nbgrader, from release to feedback
	$(BIN)/course demo

bundle: install-teach  ## make the folder that learners get
	$(BIN)/course bundle

hosted: install-teach  ## make the folder from which Colab opens the chapters
	$(BIN)/course hosted

## Work on it

build: install-teach  ## build the notebooks from their texts (CHAPTER=01_tensors)
	$(BIN)/course build $(CHAPTER)

check: install-dev  ## lint and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: install-dev  ## put the code in its form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

test: check  ## lint, types, doctests, every notebook, the course and its grading: about five minutes
	$(PYTEST) --nbval -m "not rest and not browser"
	@echo "Left out: all values and gradients of tensorkit beside PyTorch's, the long tests, the browser."
	@echo "They are run by: make test-all; the site's pages by: make site-check"

test-all: test browser-test  ## what `make test` leaves out as well: twenty minutes
	$(PYTEST) -m rest tests

browser-test: install-dev  ## drive JupyterLab in Chromium
	$(BIN)/pytest -m browser tests/browser

test-gpu: $(CUPY)  ## the tests of devices on a GPU, beside PyTorch where it can use that
	@$(BIN)/python -c 'import sys; from tensorkit.cuda.cupy_backend import missing; sys.exit(missing() and \
	    f"No GPU to test on: {missing()} make test-all uses the simulated device.")'
	$(BIN)/pytest tests/tensorkit/cuda $(addprefix tests/tensorkit/test_,on_devices.py \
	    training_on_devices.py against_cupy.py against_pytorch_cuda.py kernels.py kernels_on_gpu.py)

parity: install-dev  ## compare what the chapters print with PyTorch, where that is installed
	$(BIN)/python tests/course/parity.py $(CHAPTER)

hosted-check: install-dev  ## run what `make hosted` wrote on Colab's versions (HOSTED_PYTHON=python3.12 or 3.13)
	$(BIN)/python tests/hosted/check.py $(if $(HOSTED_PYTHON),--python $(HOSTED_PYTHON))

release-check: install-dev  ## build a release, install it in empty environments, run a chapter (TAG=v0.1.0)
	$(BIN)/python tests/release/release_check.py $(if $(TAG),--tag $(TAG))

lock: install-dev  ## write requirements/*.txt from pyproject.toml (UPGRADE=1: newest releases)
	$(COMPILE) $(if $(UPGRADE),--upgrade) pyproject.toml --extra dev -o requirements/dev.txt
	$(COMPILE) $(LOCKED) pyproject.toml --extra teach -o requirements/teach.txt
	$(COMPILE) $(LOCKED) pyproject.toml --extra lab -o requirements/lab.txt
	$(COMPILE) $(LOCKED) pyproject.toml -o requirements/core.txt
	$(COMPILE) $(LOCKED) --group build -o requirements/build.txt

# All versions are resolved once, for the engineer, whose packages include everybody's; the other
# files are the same versions.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --custom-compile-command "make lock"
LOCKED  = --constraints requirements/dev.txt --no-annotate

# Sphinx warns only of what it reads, so a build that warned forgets what it has read.
site: install-dev  ## build the site into build/site: the chapters, docs/ and an API reference
	@$(BIN)/python docs/site/staging.py build/site-source
	@$(BIN)/sphinx-build -W --keep-going --quiet -c docs/site -d build/site-read build/site-source \
	    build/site || { rm -rf build/site-read; exit 1; }
	@echo "The site is in build/site; open its index.html."

site-check: site  ## open every page of the site in Chromium: axe, links, search, narrow screens
	$(BIN)/pytest tests/site

clean:  ## remove the environment and all caches, never your work
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './work/*' -prune -exec rm -rf {} +

## Measure

size: install-dev  ## count the code lines of tensorkit, by room
	@$(BIN)/python tests/size.py

bench: install-dev  ## measure against PyTorch and NumPy, write docs/benchmark.md (ROWS="a: b:")
	$(BIN)/python tests/benchmarks/bench.py $(if $(ROWS),--rows $(ROWS),--write)

bench-operations: install-dev  ## time every operation beside PyTorch's: where it takes 2x (ABOVE=, ROWS=, LARGE=1)
	$(BIN)/python tests/benchmarks/operations.py $(if $(ROWS),--rows $(ROWS)) \
	    $(if $(ABOVE),--above $(ABOVE)) $(if $(LARGE),--large)

bench-gpu: $(CUPY)  ## measure on a GPU against CuPy and PyTorch, write docs/benchmark-gpu.md (ROWS=)
	$(BIN)/python tests/benchmarks/on_gpu.py $(if $(ROWS),--rows $(ROWS),--write)

bench-grading: install-dev  ## measure grading against nbgrader's, write docs/grading.md
	$(BIN)/python tests/benchmarks/grading.py --write

grade-many: install-dev  ## grade 2,000 made-up learners, kill the grader 20 times, compare the points
	$(BIN)/python tests/benchmarks/many.py --write

demo-cluster: install-dev  ## grade 200 made-up learners on a scheduler and two workers, into PostgreSQL
	@command -v pg_virtualenv > /dev/null || { \
	    echo "This needs PostgreSQL; on Debian and Ubuntu: apt install postgresql"; exit 1; }
	pg_virtualenv $(BIN)/python tests/benchmarks/demo_cluster.py

# CuPy, where there is a GPU and no CuPy yet, for the CUDA that its driver knows. Asked each time:
# the rule makes no file.
$(CUPY): install-dev
	@$(BIN)/python -c 'import cupy' 2> /dev/null || ! command -v nvidia-smi > /dev/null || { \
	    echo "Installing CuPy and what it loads of CUDA's toolkit: about a gigabyte"; \
	    $(BIN)/python -m pip install --quiet --no-build-isolation -e ".[cuda$$(nvidia-smi | \
	        sed -n 's/.*CUDA[A-Z ]*Version: *\([0-9]*\).*/\1/p')]"; }

# The environment and one user's packages; finds out by itself whether there is anything to do.
install-%:
	@command -v "$(PYTHON)" > /dev/null || { \
	    echo "There is no $(PYTHON) here. Install Python 3.11 or newer, or name yours: make lab PYTHON=..."; exit 1; }
	@$(INSTALL) $*
