# Everything sets itself up: `make run` and `make test` are all a newcomer needs. Nothing is installed outside .venv.

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

style: $(READY)  ## Show how dense the code is, next to other projects; fail where a rewritten folder breaks a rule
	@$(BIN)/python -m tests.project.style

revision: $(READY)  ## Raise the revision of the kit after a change of its files
	@$(BIN)/python -m tests.project.revision

audits: $(READY)  ## Audit known programs that are installed, and write their scores into docs/audit/audit.md # audit
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.audit.audits # audit

# Clients of MCP and its conformance suite, with a Node.js of their own. A lock file would name a registry.
node: $(VENV)/node/.ready  ## Install the programs for Node.js that test `tool mcp` # mcp

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

docs: $(VENV)/.documents  ## Build the site, to be opened from disk: build/site/index.html
	@$(BIN)/python -m docs.site

$(VENV)/.documents: $(READY)
	@$(INSTALL) --group docs
	@touch $@

forks: $(TESTABLE)  ## Create, test and upgrade projects: without parts, with each, with all, a ledger (PARTS="state lab", none or ledger) # fork
	@$(BIN)/python -m tests.fork.forks $(PARTS) # fork

busy: $(TESTABLE)  ## The suite beside sixteen busy loops, then twice at the same time (TESTS="tests/kit")
	@$(BIN)/python -m tests.kit.busy $(TESTS)

bench: $(READY)  ## Compare speed within one run: with a bare interpreter and with the naive way
	@$(BIN)/python -m tests.kit.bench $(ONLY)

soak: $(TESTABLE)  ## The counted tests with their large counts
	@env $(PREFIX)_TEST_SCALE=soak $(BIN)/python -m pytest

matrix: $(READY)  ## The kit's tests with the lowest and newest of every dependency, on every Python that is there
	@$(BIN)/python -m tests.kit.matrix

# Of each folder, a sample of 120 mutants is tried, or of COUNT; of a file, all are. FRESH=1 measures the coverage again.
mutate: $(TESTABLE)  ## Change the code by chance in a copy: does a test notice? (FILE=…, or FOLDER="… …" SEED=…)
	@$(BIN)/python -m tests.kit.mutants mutate $(or $(FILE),$(FOLDER),$(PACKAGE)) $(SEED:%=--seed %) $(COUNT:%=--count %) \
	  $(SECONDS:%=--seconds %) $(FRESH:1=--fresh)

mutants: $(TESTABLE)  ## Take each mechanism of the guarantees out: does its test notice? (LISTS="FILE.toml…", or all)
	@$(BIN)/python -m tests.kit.mutants guarantees $(LISTS)

soak: soak-state# state

soak-state: $(TESTABLE)# state
	@$(BIN)/python -m tests.state.soak --page docs/state/soak.md $(SOAK) # state
