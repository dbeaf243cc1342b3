"""Find out whether the invariant of a learner's file can fail at all.

With an invariant that cannot fail, every program seems to be right. The usual mistake is a
comparison without `assert` or `return`.
"""

import ast
from collections.abc import Mapping, Set
from pathlib import Path

_JUDGES = ("invariant", "always", "after_power_cut")


def can_never_fail(file: Path) -> bool:
    """Return whether none of the judging functions in the file can report a problem.

    Search these functions, and all functions of the file that they can call. A call of an imported
    function counts as one that can fail, because its code is unknown. Return False if the file is
    not valid Python.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        # Running the file reports the syntax error.
        return False
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "invariant" not in functions:
        return False
    return not _any_can_fail(functions, _imported_functions(tree))


def _any_can_fail(functions: Mapping[str, ast.FunctionDef], imported: Set[str]) -> bool:
    """Return whether one of the judging functions, or a function that it may call, can fail."""
    pending = [name for name in _JUDGES if name in functions]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        function = functions[name]
        if _can_fail(function, may_return=name in _JUDGES):
            return True
        called = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        if called & imported:
            return True
        pending += sorted(called & functions.keys())
    return False


def _can_fail(function: ast.FunctionDef, *, may_return: bool) -> bool:
    """Return whether the function raises an error or asserts something.

    With `may_return`, a function that returns a value can fail, too.
    """
    for node in ast.walk(function):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Assert) and not _is_always_true(node.test):
            return True
        if may_return and isinstance(node, ast.Return) and not _is_none(node.value):
            return True
    return False


def _is_none(value: ast.expr | None) -> bool:
    """Return whether a `return` with this value returns None."""
    if value is None:
        return True
    return isinstance(value, ast.Constant) and value.value is None


def _is_always_true(test: ast.expr) -> bool:
    """Return whether `assert` never fails for this test, such as for `(x, "message")`."""
    if isinstance(test, ast.Tuple):
        return bool(test.elts)
    return isinstance(test, ast.Constant) and bool(test.value)


def _imported_functions(tree: ast.Module) -> set[str]:
    """Return the names that the file imports by `from X import name`, without classes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                if name[:1].islower():
                    names.add(name)
    return names
