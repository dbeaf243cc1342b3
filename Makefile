# To get started, run `make run` or `make test`. Both set up everything they need, and install nothing outside .venv.

EXTRAS := [redis,postgres]# state
TEST_GROUPS := checkers docs
TEST_GROUPS += servers# state
TEST_GROUPS += browser# lab
TEST_GROUPS += mcp# mcp

# Tests about the repository: its pages, names and sizes.
CHECKS := $(wildcard tests/project tests/*/project)

include sampletool/kit/kit.mk

.PHONY: style revision forks docs busy bench soak matrix mutate mutants
.PHONY: soak-state# state
.PHONY: node fastmcp# mcp
.PHONY: audits# audit

check: style

style: $(READY)  ## Compare the style of the code with other projects, and enforce the rules of style
	@$(BIN)/python -m tests.project.style

revision: $(READY)  ## Raise the revision of the kit after you have changed its files
	@$(BIN)/python -m tests.project.revision

audits: $(READY)  ## Audit well-known programs that are installed, and write their scores into docs/audit/audit.md # audit
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.audit.audits # audit

# MCP clients and the conformance suite, with their own Node.js. There is no lock file, because it would name a registry.
node: $(VENV)/node/.ready  ## Install the Node.js programs that the tests of `tool mcp` need # mcp

$(VENV)/node/.ready: tests/mcp/node/package.json $(READY)# mcp
	@mkdir -p $(VENV)/node # mcp
	@cp tests/mcp/node/package.json $(VENV)/node # mcp
	@cd $(VENV)/node && npm install --no-audit --no-fund --no-package-lock --loglevel=error # mcp
	@touch $@ # mcp

# In an environment of its own, so that its many packages cannot change those of the tool. # mcp
fastmcp: $(VENV)/fastmcp/.ready  ## Install fastmcp, a client that tests `tool mcp` # mcp

$(VENV)/fastmcp/.ready: tests/mcp/fastmcp/requirements.txt $(READY)# mcp
	@$(BIN)/python -m venv --clear $(VENV)/fastmcp # mcp
	@$(VENV)/fastmcp/bin/python -m pip install --quiet --disable-pip-version-check -r $< # mcp
	@touch $@ # mcp

docs: $(VENV)/.documents  ## Build the documentation as a site. To read it, open build/site/index.html
	@$(BIN)/python -m docs.site

$(VENV)/.documents: $(READY)
	@$(INSTALL) --group docs
	@touch $@

forks: $(TESTABLE)  ## Create projects with and without parts, then test and upgrade them (PARTS="state lab", none or ledger) # fork
	@$(BIN)/python -m tests.fork.forks $(PARTS) # fork

busy: $(TESTABLE)  ## Run the tests next to sixteen busy loops, then twice at the same time (TESTS="tests/kit")
	@$(BIN)/python -m tests.kit.busy $(TESTS)

bench: $(READY)  ## Compare the speed of the tool with bare Python and with simpler solutions (ONLY=…)
	@$(BIN)/python -m tests.kit.bench $(ONLY)

soak: $(TESTABLE)  ## Run the tests that repeat something, with many more repetitions
	@env $(PREFIX)_TEST_SCALE=soak $(BIN)/python -m pytest

matrix: $(READY)  ## Run the kit's tests with the oldest and newest dependencies, on each installed Python
	@$(BIN)/python -m tests.kit.matrix

# For a folder, 120 random changes are tried, or COUNT. For a file, all of them. FRESH=1 measures the coverage again.
mutate: $(TESTABLE)  ## Make random changes to a copy of the code, and check whether a test fails (FILE=…, or FOLDER="… …" SEED=…)
	@$(BIN)/python -m tests.kit.mutants mutate $(or $(FILE),$(FOLDER),$(PACKAGE)) $(SEED:%=--seed %) $(COUNT:%=--count %) \
	  $(SECONDS:%=--seconds %) $(FRESH:1=--fresh)

mutants: $(TESTABLE)  ## Remove each mechanism behind a guarantee, and check whether its test fails (LISTS="FILE.toml…", or all)
	@$(BIN)/python -m tests.kit.mutants guarantees $(LISTS)

soak: soak-state# state

soak-state: $(TESTABLE)# state
	@$(BIN)/python -m tests.state.soak --page docs/state/soak.md $(SOAK) # state
