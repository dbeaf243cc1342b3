"""Compile a file so that each of its functions calls the recorder.

The source stays as it is, because tests may read it.
"""

import ast
import importlib.util
import marshal
import struct
from pathlib import Path

from .recorder import NAME


def compile_recorded(path: Path, file: str) -> None:
    """Write the bytecode of this source so that its functions record themselves.

    They are recorded as functions of `file`.
    """
    module = ast.parse(path.read_text(encoding="utf-8"))
    _call_in_functions(module.body, f"{file}:")
    # A process without site-packages (`python -S`) has no recorder. There, the call does nothing.
    prelude = ast.parse(f"{NAME} = __import__('builtins').__dict__.get('{NAME}', id)").body
    index = 0
    while index < len(module.body) and _has_to_be_first(module.body[index]):
        index += 1
    module.body[index:index] = prelude
    code = compile(module, str(path), "exec")

    bytecode = Path(importlib.util.cache_from_source(str(path)))
    bytecode.parent.mkdir(exist_ok=True)
    # Write a new file: the old one may be a hard link to that of another copy.
    bytecode.unlink(missing_ok=True)
    bytecode.write_bytes(_header(path) + marshal.dumps(code))


def _header(source: Path) -> bytes:
    """Return the header of a .pyc file. It tells Python which version of the source it is from."""
    status = source.stat()
    flags = 0
    modified_at = int(status.st_mtime)
    size = status.st_size & 0xFFFFFFFF
    return importlib.util.MAGIC_NUMBER + struct.pack("<III", flags, modified_at, size)


def _call_in_functions(body: list[ast.stmt], prefix: str) -> None:
    """Insert a call of the recorder into each function and method in this body.

    Functions inside a function get none, because they count as a part of it.
    """
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            _call_in_functions(statement.body, f"{prefix}{statement.name}.")
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = f"{prefix}{statement.name}"
            call = ast.parse(f"{NAME}({function!r})").body[0]
            for node in ast.walk(call):
                ast.copy_location(node, statement.body[0])
            index = 0
            if ast.get_docstring(statement) is not None:
                index = 1
            statement.body.insert(index, call)


def _has_to_be_first(statement: ast.stmt) -> bool:
    """Return whether this is a docstring, or an import from __future__."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
