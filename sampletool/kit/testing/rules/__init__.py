"""The rules about a project's own commands, errors, settings, files and pages.

`pytest --rules` runs them, as a part of `make check`. They know no project: what a project adds,
such as an effect or a kind of setting, is read from its own code. If a rule is broken, the failure
says what to write, and in which section of the how-to the rule is explained.
"""
