# The verbs of the project. `make help` lists them.

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that the lock files cover; `make PYTHON=... demo` overrides.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && echo $$p && break; done)
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test check contract weather leakcheck bench lock clean

help: ## list these verbs
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: $(VENV)/runtime ## install what is needed, then run the demo until Ctrl-C
	@$(BIN)/python manage.py demo $(ARGS)

test: $(VENV)/development ## run every test but the slow ones
	@deploy/test-tools.sh
	@$(PYTEST) -m "not weather" $(ARGS)

check: $(VENV)/development ## lint, types, missing migrations, templates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --fail-level WARNING

contract: $(VENV)/development ## which executor statements have a passing test
	@$(PYTEST) -q -p tests.contract -m "statement and not weather" $(ARGS)

weather: $(VENV)/development ## run the slow tests: processes and networks that fail
	@$(PYTEST) -m weather $(ARGS)

leakcheck: $(VENV)/development ## plant canaries and look for them everywhere
	@$(PYTEST) -m leakcheck $(ARGS)

bench: $(VENV)/development ## measure against the peers, print the table
	@$(BIN)/python -m benchmarks $(ARGS)

lock: ## recreate the lock files from pyproject.toml
	deploy/lock.sh

clean: ## remove the environment and everything the demo kept
	rm -rf $(VENV) var

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed"; exit 2; }
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 2; }

# An environment holds one of the two sets; the larger one serves both.
$(VENV)/runtime: requirements.txt | $(VENV)/bin/python
	@echo "installing what the demo needs (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(VENV)/development: requirements-dev.txt | $(VENV)/bin/python
	@echo "installing what the tests need (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@ $(VENV)/runtime
