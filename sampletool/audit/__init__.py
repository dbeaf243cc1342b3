"""Audits of other command-line tools: may they be run several times at once?

A tool is only seen from outside: it is run, stopped and killed, and its values are read back.
"""

TITLE = "Other tools"
