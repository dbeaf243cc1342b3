"""Mutants: copies of the code with one change. Do the tests notice the change?

* `operators.py` defines the changes, and `source.py` makes them.
* `draw.py` draws mutants at random. `guarantees.py` reads the mechanisms behind
  docs/*/guarantees.md, each of which is removed by one mutant.
* `coverage_by_test.py` knows which tests run which function.
* `trial.py` tries a mutant, and `report.py` counts the outcomes.
"""
