"""A reference command-line tool that stays right when many calls run at once."""

PROGRAM = "tool"
__version__ = "0.2.0.dev0"
