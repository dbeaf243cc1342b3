"""@@DESCRIPTION@@

One answer per call on stdout: JSON where a program reads it, text on a terminal. Everything else is on stderr.
"""

PROGRAM = "tool"
__version__ = "0.1.0"
