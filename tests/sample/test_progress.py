"""A person sees how far a call has come, and nothing of it stays behind."""

import pytest

from sampletool.kit.testing.added_command import added
from sampletool.kit.testing.console import on_terminal
from sampletool.kit.testing.tool import Tool

_PROGRESS = """
import time
from sampletool.sample.progress import Progress
with Progress(context, "file", 4, 1) as progress:
    progress.running["file\\x1b[2J"] = time.monotonic()
    progress.beat()
    progress.done = 2
    progress.beat()  # too soon to be seen
return Result("done")
"""
_BAR = "probe [########                      ]  25% file\\x1b[2J 0 s"
_CLEAR_LINE = "\r\x1b[K"


def test_progress_is_one_line_that_is_gone_at_the_end(tool: Tool) -> None:
    seen = on_terminal(added(_PROGRESS), tool.cwd, tool.environ | {"TERM": "xterm"}, stderr_too=True)

    assert seen == f"{_CLEAR_LINE}{_BAR}{_CLEAR_LINE}done\n"


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"TERM": "xterm", "CI": "true"}])
def test_where_a_line_cannot_be_rewritten_no_progress_is_shown(tool: Tool, environ: dict[str, str]) -> None:
    assert _CLEAR_LINE not in on_terminal(added(_PROGRESS), tool.cwd, tool.environ | environ, stderr_too=True)
