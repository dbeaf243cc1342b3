"""Find the value of an expression in a stopped thread without running any code.

The lab asks for the value of an expression to see whether the next instruction uses shared memory.
Running code in the middle of a step could change the program. So only expressions are followed
whose values can be looked up: constants, variables, attributes, and items of built-in containers.
"""

import ast
import builtins
import inspect
import threading
from types import FrameType
from typing import Any

UNKNOWN: Any = object()
"""The value of an expression that cannot be found out without running code."""


def value_of(node: ast.AST | None, frame: FrameType) -> Any:
    """Return the value of an expression, or UNKNOWN if finding it would run code."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.JoinedStr():
            return ""
        case ast.Name(id=name):
            return value_of_variable(name, frame)
        case ast.Attribute(value=base, attr=name):
            return _value_of_attribute(value_of(base, frame), name)
        case ast.Subscript(value=base, slice=index):
            return _value_of_item(value_of(base, frame), value_of(index, frame))
    return UNKNOWN


def value_of_variable(name: str, frame: FrameType) -> Any:
    """Return the value of a variable, or UNKNOWN if it has none."""
    for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
        if name in scope:
            return scope[name]
    return UNKNOWN


def _value_of_attribute(base: Any, name: str) -> Any:
    """Return the value of an attribute, or UNKNOWN if reading it would run code."""
    if base is UNKNOWN:
        return UNKNOWN
    if type(base) is threading.local:
        # The function below does not find the attributes, which are different in each thread.
        return base.__dict__.get(name, UNKNOWN)
    value = inspect.getattr_static(base, name, UNKNOWN)
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return UNKNOWN
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    return value


def _value_of_item(base: Any, index: Any) -> Any:
    """Return the value of an item, or UNKNOWN if reading it would run code."""
    # Any other type, or a subclass of these, may have its own __getitem__(). Calling it would run
    # code of the file in the middle of a step.
    if type(base) not in (list, tuple, dict) or not isinstance(index, str | int):
        return UNKNOWN
    try:
        return base[index]
    except (LookupError, TypeError):
        return UNKNOWN


def source_of(node: ast.AST | None) -> str:
    """Return the source of an expression, or "" if there is none."""
    if node is None:
        return ""
    return ast.unparse(node)
