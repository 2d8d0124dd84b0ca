# Needs only make and Python 3.11 or newer. `make` alone lists the targets.
#
#   VENV=path      where the environment is made (default .venv)
#   PYTHON=name    which Python makes it (default: the first one found that is new enough)
#   ARGS="..."     more arguments for pytest in `make test`, for the load benchmark in `make bench`

VENV ?= .venv
# Not read until an environment has to be made.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command "make lock"

# A stamp is written last, after every step of its set-up has worked; an interrupted set-up starts again.
MADE := $(VENV)/.made
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
NODE := $(VENV)/.node

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check docs bench lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(DEV) $(NODE)  ## make the environment for development

demo: $(RUN)  ## show every protocol streaming through the gateway; needs no account or configuration
	$(BIN)/headrace demo --once

# What breaks whole gateways runs behind the rest: beside it the others, which count milliseconds, find a busy machine.
# Exit code 5: ARGS choose no test of this kind.
test: $(DEV) $(NODE)  ## run all tests
	$(BIN)/python -m pytest -n auto -rs -m "not chaos" $(ARGS) || [ $$? -eq 5 ]
	$(BIN)/python -m pytest -n auto -rs -m chaos $(ARGS) || [ $$? -eq 5 ]

check: $(DEV)  ## style, types, who imports whom, the tree and the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q -rs tests/test_architecture.py tests/test_repository.py tests/test_docs.py

docs: $(DEV)  ## test the documentation
	$(BIN)/python -m pytest -q -rs tests/test_docs.py

bench: $(DEV)  ## measure cost per event and under load
	$(BIN)/python -m pytest -q --benchmark-only bench/micro
	$(BIN)/python -m bench.load $(ARGS)

# dev comes first and holds the versions of the other two. A version stays as it is unless its .in file asks for
# another; `make lock UPGRADE=--upgrade` takes the newest of everything.
lock: $(DEV)  ## write requirements/*.txt anew from requirements/*.in
	$(LOCK) $(UPGRADE) requirements/dev.in --output-file requirements/dev.txt
	$(LOCK) --constraint requirements/dev.txt requirements/run.in --output-file requirements/run.txt
	$(LOCK) --constraint requirements/dev.txt requirements/build.in --output-file requirements/build.txt
	$(BIN)/npm --prefix tests/sdk/node install --package-lock-only

clean:  ## remove .venv, what was built, and caches
	rm -rf .venv build dist .benchmarks .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache htmlcov
	find src tests bench -type d -name __pycache__ -prune -exec rm -rf {} +

$(MADE):
	@if [ -z "$(PYTHON)" ]; then \
		echo "Headrace needs Python 3.11 or newer, and none was found." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; fi
	@if ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo "$(PYTHON) is no Python 3.11 or newer, which Headrace needs." >&2; exit 1; fi
	@if ! "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
		exit 1; fi
	"$(PYTHON)" -m venv "$(VENV)"
	@touch $@

$(RUN): requirements/build.txt requirements/run.txt pyproject.toml | $(MADE)
	$(PIP) --require-hashes -r requirements/build.txt -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt $(RUN)
	$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

# The SDKs for Node, for their tests, which are skipped without them. Node itself is one of the packages in dev.txt.
# They are put beside the environment's other packages: nothing that reads the tree comes upon them.
$(NODE): tests/sdk/node/package.json tests/sdk/node/package-lock.json tests/sdk/node/.npmrc $(DEV)
	@mkdir -p "$(VENV)/node-sdks"
	@cp tests/sdk/node/package.json tests/sdk/node/package-lock.json tests/sdk/node/.npmrc "$(VENV)/node-sdks/"
	@if (cd "$(VENV)/node-sdks" && "$(abspath $(BIN))/npm" ci --loglevel=error); then touch $@; \
	else echo "The npm packages could not be installed; going on without them." >&2; fi
