"""A sample command-line tool that stays right when many calls run at once."""

__version__ = "0.1.0"
