"""A sample command-line tool that stays right when many calls run at once.

One answer per call on stdout: JSON where a program reads it, text on a terminal. Everything else is on stderr.
"""

PROGRAM = "tool"
REPOSITORY = "https://github.com/sampletool/sampletool"
# The address of the documentation. While it is empty, no link to it is printed.
DOCUMENTATION = ""
__version__ = "0.2.0.dev0"
