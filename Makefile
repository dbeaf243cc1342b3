# Everything sets itself up: `make run` and `make test` are all a newcomer needs. Nothing is installed outside .venv.

EXTRAS := [redis,postgres]# state
TEST_GROUPS := checkers
TEST_GROUPS += servers# state

include sampletool/kit/kit.mk

.PHONY: sizes forks
.PHONY: soak-state# state

check: sizes

sizes: $(READY)
	@$(BIN)/python -m tests.project.test_size

forks: $(TESTABLE)  ## Make, test and upgrade forks: without parts, with each, with all (PARTS="state lab", or none) # fork
	@$(BIN)/python -m tests.fork.forks $(PARTS) # fork

soak: soak-state# state

soak-state: $(TESTABLE)# state
	@$(BIN)/python -m tests.state.soak --page docs/state/soak.md $(SOAK) # state
