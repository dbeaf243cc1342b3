"""Commands for other command-line tools, which may not be safe to run several times at once.

`audit` tests whether a tool is safe. It knows nothing about how the tool works: it runs, stops and
kills the tool, and then reads back the values that the tool should have stored. `run-safely` runs
any program while holding a lock, so that only one copy of the program runs at a time.
"""

TITLE = "Other tools"
