"""The exceptions that the tool expects, and the one function that turns them into its own errors.

Every command can end with one of them. An exception of any other class is a bug in the tool.
"""

from ..safety.errors import SafetyError
from .errors import ToolError
from .file_errors import from_os_error
from .library_errors import from_library_error

EXPECTED = (ToolError, SafetyError, OSError)
"""The base classes of all expected exceptions, for `except EXPECTED as error`."""


def to_tool_error(error: ToolError | SafetyError | OSError) -> ToolError:
    """Return the error that the tool reports for an expected exception."""
    if isinstance(error, SafetyError):
        return from_library_error(error)
    if isinstance(error, OSError):
        return from_os_error(error)
    return error
