"""A sample command-line application that many can run at the same time.

Each command prints one response on stdout: JSON for programs, text on a terminal. Everything else
is printed on stderr.
"""

PROGRAM = "tool"
REPOSITORY = "https://github.com/sampletool/sampletool"
# The address of the documentation. While it is empty, no link to it is printed.
DOCUMENTATION = ""
__version__ = "0.3.0.dev0"
