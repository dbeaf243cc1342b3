# The targets of every project on this kit. Its Makefile includes this file. Before that, it may set:
# EXTRAS       the optional dependencies to install, such as [redis]
# TEST_GROUPS  the dependency groups that only tests and checks need
# CHECKS       folders with tests that `make check` runs, and `make test` does not

KIT := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
PACKAGE := $(patsubst %/,%,$(dir $(KIT)))
PREFIX = $(shell sed -n 's/^PROGRAM = "\(.*\)"/\1/p' $(PACKAGE)/__init__.py | tr a-z- A-Z_)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTABLE := $(VENV)/.testable
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)
ifneq ($(UV),)
INSTALL := $(UV) pip install --quiet --python $(BIN)/python --compile-bytecode -c constraints.txt
else
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
endif

# Bytecode is kept, because compiling again would take seconds in each test process, and much of the time of a command.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test check new-command how-to upgrade pages coverage clean

help:  ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { sub(/ # [a-z]+$$/, "", $$2); printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY)  ## Set up the environment, then show the tool at work
	@$(BIN)/python -m $(PACKAGE).kit.testing.show

test: $(TESTABLE)  ## Set up the environment, then run the tests (TESTS="tests/x/test_y.py"; ORDER=SEED for a random order)
	@env $(PREFIX)_TEST_ORDER=$(ORDER) $(BIN)/python -m pytest $(or $(TESTS),$(CHECKS:%=--ignore=%))

check: $(TESTABLE)  ## Check the code, its types and imports, and the rules for commands, errors, settings, pages and the kit
	@$(BIN)/python -m $(PACKAGE).kit.checksums
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pytest -q --rules
	@$(if $(CHECKS),$(BIN)/python -m pytest -q $(CHECKS))

new-command: $(READY)  ## Create a command and its tests: NAME=add or NAME=group/add (PART=…, PLAIN=1)
	@$(BIN)/python -m $(PACKAGE).kit.new_command --part "$$PART" $(if $(PLAIN),--plain) -- "$$NAME"

how-to:  ## Show where to read how to add commands, settings, errors and more
	@echo $(KIT)/README.md

upgrade: $(READY)  ## Replace the kit with a newer one, then check the rules (FROM=checkout, wheel or sdist)
	@$(BIN)/python -m $(PACKAGE).kit.upgrade $(if $(FROM),"$$FROM",--help)

pages: $(READY)  ## Generate the list of all pages, and the reference of each part
	@$(BIN)/python -m $(PACKAGE).kit.testing.pages

coverage: $(TESTABLE)  ## Measure the branch coverage of the tests, including child processes
	@rm -f .coverage .coverage.*
	@COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml $(BIN)/coverage run -m pytest -p no:cacheprovider
	@$(BIN)/coverage combine -q && $(BIN)/coverage report

clean:  ## Remove the environment and all caches
	@rm -rf $(VENV) $(VENV)-built-* $(VENV)-old-* .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Built only if one of these files has changed. environment.sh keeps the old one if this fails.
$(READY): pyproject.toml constraints.txt
	@PYTHON='$(PYTHON)' UV='$(UV)' PACKAGE='$(PACKAGE)' sh $(KIT)/environment.sh -e '.$(EXTRAS)' --group dev

$(TESTABLE): $(READY)
	@$(if $(TEST_GROUPS),$(INSTALL) $(TEST_GROUPS:%=--group %))
	@touch $(TESTABLE)
