# What to do with a clone. All that is needed is make and Python 3.11 or newer.
#
#   make run     a daemon that is ready to use, on ./logd-data
#   make test    the tests
#   make check   everything that a change has to pass
#
# PYTHON=python3.12 chooses the interpreter, VENV=DIR where things are installed,
# ARGS="..." is handed on: make test ARGS="tests/query -x", make run ARGS="--new-secrets".

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

# Tests start hundreds of processes, and each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait for disks and processes now and then: one more than there are cores, and four at most.
# ARGS="-n0" runs the tests in one process, for a debugger.
workers := $(shell n=$$(nproc 2>/dev/null || echo 1); echo $$((n < 4 ? n + 1 : 4)))
parallel := -n $(workers) --dist worksteal

bin := $(VENV)/bin
installed := $(VENV)/.installed
installed_dev := $(VENV)/.installed-dev

.PHONY: help run test lint format types faults bench check clean
.DELETE_ON_ERROR:

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

run: $(installed)
	@exec $(bin)/logd quickstart $(ARGS)

test: $(installed_dev)
	@$(bin)/python -m pytest $(parallel) -m "not slow" $(ARGS)

lint: $(installed_dev)
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/lint-imports --no-cache

format: $(installed_dev)
	$(bin)/ruff check --fix .
	$(bin)/ruff format .

types: $(installed_dev)
	$(bin)/mypy

faults: $(installed_dev)
	@$(bin)/python -m pytest $(parallel) -m "slow or not slow" tests/faults tests/model $(ARGS)

bench: $(installed_dev)
	@$(bin)/python -m bench $(ARGS)

check: lint types test

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info build dist

$(bin)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "logd needs Python 3.11 or newer, and $(PYTHON) is not: make PYTHON=/path/to/python3" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv" >&2; \
	  exit 1; }
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Editable: a change of the sources needs no new installation, one of pyproject.toml does.
$(installed): pyproject.toml | $(bin)/python
	@echo "installing logd in $(VENV)"
	@$(bin)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(installed_dev): pyproject.toml | $(bin)/python
	@echo "installing logd and its development tools in $(VENV)"
	@$(bin)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(installed) $@
