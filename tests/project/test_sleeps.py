"""No test sleeps for a fixed time and hopes: it waits for what it needs, in a loop that looks again."""

import ast
from collections.abc import Iterator

from sampletool.kit.project import ROOT

_LEFT_OUT = {"bench", "candidates"}
"""What measures, and what is tested."""
_EXAMPLE = "for each in (1, 2): time.sleep(0.5)\nwhile not ready: time.sleep(0.01)\ntime.sleep(pause)\n"


def fixed_sleeps(code: str) -> Iterator[int]:
    """The lines of those that are in no `while`."""
    nodes = [*ast.walk(ast.parse(code))]
    looking_again = {node for loop in nodes if isinstance(loop, ast.While) for node in ast.walk(loop)}
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("sleep") and node not in looking_again:
            pause = node.args[0]
            # `await asyncio.sleep(0)` does not wait: it lets other coroutines run.
            if isinstance(pause, ast.Constant) and pause.value != 0:
                yield node.lineno


def test_no_test_sleeps_for_a_fixed_time() -> None:
    files = [file.relative_to(ROOT) for file in (ROOT / "tests").rglob("*.py")]
    looked_at = [file for file in files if not _LEFT_OUT.intersection(file.parts)]
    found = [f"{file}:{line}" for file in looked_at for line in fixed_sleeps((ROOT / file).read_text())]

    assert found == []
    assert [*fixed_sleeps(_EXAMPLE)] == [1]
