"""Compile a file so that each of its functions calls the recorder. The source stays as it is: tests may read it."""

import ast
import importlib.util
import marshal
import struct
from pathlib import Path

from .recorder import NAME


def compile_recorded(path: Path, file: str) -> None:
    """Write the bytecode of this source so that its functions record themselves, as functions of `file`."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    _call_in_functions(module.body, f"{file}:")
    # A process without site-packages (`python -S`) has no recorder: there the call does nothing.
    prelude = ast.parse(f"{NAME} = __import__('builtins').__dict__.get('{NAME}', id)").body
    place = 0
    while place < len(module.body) and _has_to_be_first(module.body[place]):
        place += 1
    module.body[place:place] = prelude
    code = compile(module, str(path), "exec")
    status = path.stat()
    # The header of a .pyc file: no flags, and the source that it belongs to.
    header = importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, int(status.st_mtime), status.st_size & 0xFFFFFFFF)
    target = Path(importlib.util.cache_from_source(str(path)))
    target.parent.mkdir(exist_ok=True)
    # A new file: the old one may be linked with that of another copy.
    target.unlink(missing_ok=True)
    target.write_bytes(header + marshal.dumps(code))


def _call_in_functions(body: list[ast.stmt], prefix: str) -> None:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            _call_in_functions(statement.body, f"{prefix}{statement.name}.")
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            call = ast.parse(f"{NAME}({f'{prefix}{statement.name}'!r})").body[0]
            for node in ast.walk(call):
                ast.copy_location(node, statement.body[0])
            statement.body.insert(1 if ast.get_docstring(statement) is not None else 0, call)


def _has_to_be_first(statement: ast.stmt) -> bool:
    """Return whether this is a docstring, or an import from __future__."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
