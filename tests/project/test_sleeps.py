"""No test sleeps for a fixed time: it waits for an event, in a loop that looks again."""

import ast
from collections.abc import Iterator

from sampletool.kit.project import ROOT

_LEFT_OUT = {"bench", "candidates"}
"""Folders with code that is no test: it measures something, or is itself tested."""

_EXAMPLE = """
time.sleep(0.5)
for _ in range(2):
    time.sleep(0.5)
while not is_ready():
    time.sleep(0.01)
time.sleep(pause)
await asyncio.sleep(0)
"""


def _fixed_sleeps(source: str) -> Iterator[int]:
    """Yield the line of each sleep for a fixed time that is not in a `while` loop."""
    nodes = list(ast.walk(ast.parse(source)))
    inside_loops: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.While):
            inside_loops.update(ast.walk(node))
    for node in nodes:
        if isinstance(node, ast.Call) and node not in inside_loops and _is_fixed_sleep(node):
            yield node.lineno


def _is_fixed_sleep(call: ast.Call) -> bool:
    if not ast.unparse(call.func).endswith("sleep"):
        return False
    seconds = call.args[0]
    # `await asyncio.sleep(0)` does not wait: it lets other coroutines run.
    return isinstance(seconds, ast.Constant) and seconds.value != 0


def test_no_test_sleeps_for_a_fixed_time() -> None:
    found = []
    for path in (ROOT / "tests").rglob("*.py"):
        file = path.relative_to(ROOT)
        if _LEFT_OUT.intersection(file.parts):
            continue
        for line in _fixed_sleeps(path.read_text()):
            found.append(f"{file}:{line}")

    assert found == []


def test_a_sleep_in_a_while_loop_or_for_a_computed_time_is_allowed() -> None:
    assert list(_fixed_sleeps(_EXAMPLE)) == [2, 4]
