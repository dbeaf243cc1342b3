"""@@DESCRIPTION@@"""

PROGRAM = "tool"
REPOSITORY = "@@REPOSITORY@@"
# The address of the documentation. While it is empty, no link to it is printed.
DOCUMENTATION = "@@DOCUMENTATION@@"
__version__ = "0.1.0"
