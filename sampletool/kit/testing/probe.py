"""The real tool with one more command, `probe`, for which a test writes the body.

A test needs it to see what happens inside of a command: a signal comes, or the result is too large.
"""

import sys

from ..stepping.forked_process import ForkedProcess
from .tool import Tool


def probe_command_line(body: str, *, before: str = "") -> list[str]:
    """Return a command line that runs `probe` in an interpreter of its own.

    `body` is the source of a function that may use `context` and all names of probe_program.py. It
    may return a `Result`. `before` is source that runs before any module of the tool is imported.
    """
    source = f"{before}\nfrom {__package__}.probe_program import run\nrun({body!r})"
    return [sys.executable, "-c", source]


def start_probe(tool: Tool, body: str, *args: str, before: str = "") -> ForkedProcess:
    """Start `probe` with these arguments in a forked process. Return while it runs.

    When `before` runs there, all modules but kit/start.py are already imported.
    """
    _interpreter, *program = probe_command_line(body, before=before)
    return tool.start(*args, program=program)
