"""Tables of constants: the value of each, and why it is this value.

A test that replaces a constant says nothing about its real value. A table says it, and is complete:
the table of a part has every number that has a name, every default of a parameter, and every limit
of an option in the folder of the part.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, NamedTuple

import pytest

from ..app import root_command
from ..commands.manifest import describe, find_commands
from ..contract.duration import parse_duration
from ..program import PACKAGE
from ..project import ROOT

_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context)


class Constant(NamedTuple):
    """A row of a table."""

    name: str
    """The name below the part, such as `safety.lock._GATE_SECONDS`.

    The name of a default is, for example, `safety.lock.Lock.shared(timeout_seconds)`.
    """
    value: object
    reason: str
    """What breaks if it is much larger, or much smaller."""


class Limit(NamedTuple):
    """The default of an option, and its bounds."""

    option: str
    """The command and the option, such as `task claim --count`."""
    default: object
    least: int | None
    most: int | None
    reason: str


def differences(part: str, table: Iterable[Constant], left_out: tuple[str, ...] = ()) -> list[str]:
    """Return the constants whose values differ from the table, and those that it lacks."""
    faults = []
    known = {row.name: row for row in table}
    for name, row in known.items():
        value = _value_of(part, name)
        if type(value) is not type(row.value) or value != row.value:
            faults.append(f"{name} is {value!r}, not {row.value!r}: {row.reason}")
    for name in _names_of_numbers(part, left_out):
        if name not in known:
            faults.append(f"{name} is not in the table")
    return faults


def option_differences(part: str, table: Iterable[Limit]) -> list[str]:
    """Return the options whose limits differ from the table, and those that one of them lacks."""
    faults = []
    known = {row.option: row for row in table}
    found = dict(_limits_of_options(part))
    for option, actual in found.items():
        row = known.get(option)
        if row is None:
            faults.append(f"{option} is not in the table: {actual}")
        elif actual != (row.default, row.least, row.most):
            faults.append(f"{option} has default, least and most {actual}: {row.reason}")
    for option in known:
        if option not in found:
            faults.append(f"{option} is in the table only")
    return faults


def _value_of(part: str, name: str) -> Any:
    """Return the value of a constant, or the default of a parameter."""
    place, _, parameter = name.removesuffix(")").partition("(")
    module, attributes = _split(part, place)
    try:
        found: Any = import_module(module)
    except ImportError as error:
        pytest.skip(f"{module} cannot be imported: {error}")
    for attribute in attributes:
        found = _member(found, attribute)
    if parameter:
        return inspect.signature(found).parameters[parameter].default
    return found


def _member(owner: Any, name: str) -> Any:
    """Return an attribute, or the default of a field of a named tuple."""
    defaults_of_fields = getattr(owner, "_field_defaults", {})
    if name in defaults_of_fields:
        return defaults_of_fields[name]
    return getattr(owner, name)


def _split(part: str, place: str) -> tuple[str, list[str]]:
    """Return the name of the module, and the names of the attributes below it."""
    words = place.split(".")
    folder = ROOT / PACKAGE / part
    length = len(words) - 1
    while not (folder / "/".join(words[:length])).with_suffix(".py").exists():
        length -= 1
        assert length > 0, f"{place} names no module of {part}"
    module = ".".join([PACKAGE, part, *words[:length]])
    return module, words[length:]


def _names_of_numbers(part: str, left_out: tuple[str, ...]) -> Iterator[str]:
    folder = ROOT / PACKAGE / part
    for file in sorted(folder.rglob("*.py")):
        module = ".".join(file.relative_to(folder).with_suffix("").parts)
        for name in _numbers_in(ast.parse(file.read_text()), f"{module}."):
            if not name.startswith(left_out):
                yield name


def _numbers_in(scope: ast.Module | ast.ClassDef, above: str) -> Iterator[str]:
    """Yield the names of constants and attributes with a number, and of such defaults.

    0 is not a limit, so it does not count.
    """
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from _numbers_in(node, f"{above}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _numbers_in_function(node, above)
        elif isinstance(node, ast.Assign) and _is_number(node.value):
            for name in _assigned_names(node):
                yield f"{above}{name}"
        elif isinstance(node, ast.AnnAssign) and node.value is not None and _is_number(node.value):
            yield f"{above}{ast.unparse(node.target)}"


def _numbers_in_function(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    above: str,
) -> Iterator[str]:
    # The defaults of `command` are those of options, which have tables of their own.
    if function.name == "command":
        return
    for name in _numeric_defaults(function.args):
        yield f"{above}{function.name}({name})"


def _assigned_names(node: ast.Assign) -> Iterator[str]:
    for target in node.targets:
        if isinstance(target, ast.Tuple):
            for each in target.elts:
                yield ast.unparse(each)
        else:
            yield ast.unparse(target)


def _numeric_defaults(arguments: ast.arguments) -> Iterator[str]:
    """Yield the names of parameters whose default is a number."""
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    pairs: list[tuple[ast.arg, ast.expr | None]] = []
    pairs += zip(positional[first_default:], arguments.defaults, strict=True)
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for argument, default in pairs:
        if default is not None and _is_number(default):
            yield argument.arg


def _is_number(value: ast.expr) -> bool:
    """Return whether an expression consists of numbers, other constants and flags of `os`.

    It is not one if all its numbers are 0.
    """
    nodes = list(ast.walk(value))
    is_arithmetic = all(_is_part_of_number(node) for node in nodes)
    return is_arithmetic and any(_is_number_or_flag(node) for node in nodes)


def _is_number_or_flag(node: ast.AST) -> bool:
    """Return whether this is a number other than 0, or a flag such as `os.O_RDONLY`."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float) and node.value != 0
    return isinstance(node, ast.Attribute) and node.attr.startswith("O_")


def _is_part_of_number(node: ast.AST) -> bool:
    """Return whether an expression that has a number as its value can contain this."""
    if isinstance(node, ast.Name):
        # Another constant has a name in capitals.
        return node.id == "os" or node.id.strip("_").isupper()
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    return _is_number_or_flag(node) or isinstance(node, _ARITHMETIC)


def _limits_of_options(part: str) -> Iterator[tuple[str, tuple[object, int | None, int | None]]]:
    """Yield each option or argument with a limit: its default, its minimum and its maximum."""
    package = import_module(f"{PACKAGE}.{part}.commands")
    names = {module.name for module in walk_packages(package.__path__, f"{package.__name__}.")}
    for name, command in find_commands(root_command()):
        if f"{package.__name__}.{name.replace(' ', '.').replace('-', '_')}" not in names:
            continue
        described = describe(name, command)
        for parameter in (*described["options"], *described["arguments"]):
            default = parameter.get("default")
            least = parameter.get("minimum")
            most = parameter.get("maximum")
            is_limited = least is not None or most is not None
            if is_limited or type(default) is int or _is_duration(default):
                flags = parameter.get("flags", [parameter["name"]])
                yield f"{name} {flags[0]}", (default, least, most)


def _is_duration(default: object) -> bool:
    try:
        parse_duration(str(default))
    except ValueError:
        return False
    return True
