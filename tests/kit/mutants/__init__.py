"""Mutants: the code with one change in it. Do the tests notice?

`operators.py` says what is changed, `source.py` changes it, `coverage_by_test.py` knows which tests run it, `trial.py`
tries one, `report.py` counts. `guarantees.py` reads the mechanisms behind docs/*/guarantees.md.
"""
