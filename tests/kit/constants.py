"""Tables of constants: the value of each, and why it is this value.

A test that replaces a constant says nothing about its real value. A table says it, and is complete: every number that
has a name, a default of a parameter or a limit of an option in a part's folder is in the table of that part.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, NamedTuple

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import describe, find_commands
from sampletool.kit.contract.duration import parse_duration
from sampletool.kit.program import PACKAGE
from tests.kit.trees import ROOT

_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context)


class Constant(NamedTuple):
    name: str
    """Below the part: `safety.lock._GATE_SECONDS`, `safety.lock.Lock.shared(timeout_seconds)` for a default."""
    value: object
    reason: str
    """What breaks if it is much larger, or much smaller."""


class Limit(NamedTuple):
    """The default of an option, and its bounds."""

    option: str
    """`task claim --count`"""
    default: object
    least: int | None
    most: int | None
    reason: str


def differences(part: str, table: Iterable[Constant], left_out: tuple[str, ...] = ()) -> list[str]:
    """Where the package is not what the table says, and what is missing in the table."""
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
    """Where the options of a part's commands are not what the table says, and what is missing in the table."""
    faults = []
    known = {row.option: row for row in table}
    found = dict(_limits_of_options(part))
    for option, actual in found.items():
        row = known.get(option)
        if row is None:
            faults.append(f"{option} is not in the table: {actual}")
        elif actual != (row.default, row.least, row.most):
            faults.append(f"{option} has default, least and most {actual}: {row.reason}")
    faults += [f"{option} is in the table only" for option in known if option not in found]
    return faults


def _value_of(part: str, name: str) -> Any:
    place, _, parameter = name.removesuffix(")").partition("(")
    module, attributes = _split(part, place)
    try:
        found: Any = import_module(module)
    except ImportError as error:
        pytest.skip(f"{module} cannot be imported: {error}")
    for attribute in attributes:
        defaults_of_fields = getattr(found, "_field_defaults", {})
        found = (
            defaults_of_fields[attribute]
            if attribute in defaults_of_fields
            else getattr(found, attribute)
        )
    return inspect.signature(found).parameters[parameter].default if parameter else found


def _split(part: str, place: str) -> tuple[str, list[str]]:
    """The module, and the names of what is in it."""
    words = place.split(".")
    folder = ROOT / PACKAGE / part
    length = len(words) - 1
    while not (folder / "/".join(words[:length])).with_suffix(".py").exists():
        length -= 1
        assert length > 0, f"{place} names no module of {part}"
    return ".".join([PACKAGE, part, *words[:length]]), words[length:]


def _names_of_numbers(part: str, left_out: tuple[str, ...]) -> Iterator[str]:
    folder = ROOT / PACKAGE / part
    for file in sorted(folder.rglob("*.py")):
        module = ".".join(file.relative_to(folder).with_suffix("").parts)
        for name in _numbers_in(ast.parse(file.read_text()), f"{module}."):
            if not name.startswith(left_out):
                yield name


def _numbers_in(scope: ast.Module | ast.ClassDef, above: str) -> Iterator[str]:
    """Constants and attributes with a number, and parameters that have one as their default. 0 is no limit."""
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from _numbers_in(node, f"{above}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name != "command":  # its defaults are those of options
                yield from (f"{above}{node.name}({name})" for name in _numeric_defaults(node.args))
        elif isinstance(node, ast.Assign) and _is_number(node.value):
            for target in node.targets:
                targets = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from (f"{above}{ast.unparse(each)}" for each in targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None and _is_number(node.value):
            yield f"{above}{ast.unparse(node.target)}"


def _numeric_defaults(arguments: ast.arguments) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    first = len(positional) - len(arguments.defaults)
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(positional[first:], arguments.defaults, strict=True)
    ]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for argument, default in pairs:
        if default is not None and _is_number(default):
            yield argument.arg


def _is_number(value: ast.expr) -> bool:
    """Whether it is made of nothing but numbers, flags of `os` and other constants, and is not 0."""
    has_number = False
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            has_number = has_number or node.value != 0
        elif isinstance(node, ast.Attribute) and node.attr.startswith("O_"):
            has_number = True
        elif isinstance(node, ast.Name):
            if node.id != "os" and not node.id.strip("_").isupper():
                return False
        elif not isinstance(node, _ARITHMETIC):
            return False
    return has_number


def _limits_of_options(part: str) -> Iterator[tuple[str, tuple[object, int | None, int | None]]]:
    package = import_module(f"{PACKAGE}.{part}.commands")
    names = {module.name for module in walk_packages(package.__path__, f"{package.__name__}.")}
    for name, command in find_commands(root_command()):
        if f"{package.__name__}.{name.replace(' ', '.').replace('-', '_')}" not in names:
            continue
        described = describe(name, command)
        for option in (*described["options"], *described["arguments"]):
            default, least, most = (option.get(fact) for fact in ("default", "minimum", "maximum"))
            is_limit = (
                least is not None
                or most is not None
                or _is_duration(default)
                or type(default) is int
            )
            if is_limit:
                yield f"{name} {option.get('flags', [option['name']])[0]}", (default, least, most)


def _is_duration(default: object) -> bool:
    try:
        parse_duration(str(default))
    except ValueError:
        return False
    return True
