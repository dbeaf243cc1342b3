"""A history checker: random clients use a store at the same time, and the checker judges their log.

It works in three steps, and each step has its own modules:

1. **Record.** `recording.py` starts several clients, each in a process of its own, and kills some
   of them with kill -9. A client (`client.py`) chooses random calls of the store, and writes the
   time before and after each call to a log. `operation.py` describes what the log contains.
2. **Check.** `check.py` splits the history by key and by task. `linearizable.py` searches for an
   order that explains what the callers saw; `models.py` says what a value and a counter would have
   returned in that order. `tasks.py` has one function for each promise about tasks.
3. **Doubt the checker.** `tests/state/project/removed_checks.toml` lists checks in the code of the
   store. The tests remove one of them at a time from a copy of the code, and the checker must
   refuse the history.

The page docs/state/history.md explains the ideas. Only `adapter.py` knows the interface of the
store, so a change of that interface is a change of one file here.
"""
