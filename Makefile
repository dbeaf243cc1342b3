# Everything sets itself up: `make run` and `make test` are all a newcomer needs. Nothing is installed outside .venv.

EXTRAS := [redis,postgres]# state
TEST_GROUPS := checkers docs
TEST_GROUPS += servers# state
TEST_GROUPS += browser# lab
TEST_GROUPS += mcp# mcp

include sampletool/kit/kit.mk

.PHONY: style revision forks docs
.PHONY: soak-state# state

check: style

style: $(READY)  ## Show how dense the code is, next to other projects; fail where a rewritten folder breaks a rule
	@$(BIN)/python -m tests.project.style

revision: $(READY)  ## Raise the revision of the kit after a change of its files
	@$(BIN)/python -m tests.project.revision

docs: $(VENV)/.documents  ## Build the site, to be opened from disk: build/site/index.html
	@$(BIN)/python -m docs.site

$(VENV)/.documents: $(READY)
	@$(INSTALL) --group docs
	@touch $@

forks: $(TESTABLE)  ## Make, test and upgrade forks: without parts, with each, with all (PARTS="state lab", or none) # fork
	@$(BIN)/python -m tests.fork.forks $(PARTS) # fork

soak: soak-state# state

soak-state: $(TESTABLE)# state
	@$(BIN)/python -m tests.state.soak --page docs/state/soak.md $(SOAK) # state
