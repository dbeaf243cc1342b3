"""Each error has a code of its own, a message, a hint, and all the facts that these name.

A missing fact would turn an expected failure into a crash, and only when the error is raised.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from string import Formatter

from ... import contract
from ...contract.errors import ToolError
from ...contract.file_errors import PathError
from ...part_discovery import offered
from ..how_to import fail_if_any, relative
from .own_code import file_of, is_own, own_commands, own_python_files

_HEADING = "Errors"
_UPPER_SNAKE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
_FACTS_OF_EVERY_ERROR = {"PROGRAM", "PACKAGE", "WORKSPACE_FILE", "directory"}
"""The facts that ToolError and PathError give themselves."""


def all_errors(above: type[ToolError] = ToolError) -> list[type[ToolError]]:
    """Return the error classes of the kit and of each part."""
    for module in iter_modules(contract.__path__, f"{contract.__name__}."):
        import_module(module.name)
    # offered() imports a module only when the loop asks for it.
    for _module in offered("errors"):
        continue
    # A command file can define errors too.
    own_commands()
    found = []
    for error_class in above.__subclasses__():
        found += [error_class, *all_errors(error_class)]
    return found


def own_errors() -> list[type[ToolError]]:
    """Return the error classes of the project."""
    return [error_class for error_class in all_errors() if is_own(error_class.__module__)]


def test_each_code_belongs_to_one_class() -> None:
    class_of_code: dict[str, str] = {}
    faults = []
    for error_class in all_errors():
        if "code" not in vars(error_class):
            continue
        other_class = class_of_code.setdefault(error_class.code, error_class.__name__)
        if other_class != error_class.__name__:
            faults.append(
                f"{file_of(error_class.__module__)}: {error_class.__name__} has the code "
                f"{error_class.code}, which belongs to {other_class}."
            )

    what_to_do = "Choose another code, or derive the class from the other one without a code"
    fail_if_any(faults, what_to_do, _HEADING)


def test_each_code_is_in_upper_snake_case() -> None:
    faults = []
    for error_class in own_errors():
        code = vars(error_class).get("code")
        if code is not None and not _UPPER_SNAKE.fullmatch(code):
            file = file_of(error_class.__module__)
            faults.append(f"{file}: the code {code!r} is not in upper case with underscores.")

    fail_if_any(faults, "Write the code of an error as in `NOT_ENOUGH`", _HEADING)


def test_each_error_has_a_docstring_and_sentences() -> None:
    faults = []
    for error_class in own_errors():
        place = f"{file_of(error_class.__module__)}: {error_class.__name__}"
        meaning, _, _ = (error_class.__doc__ or "").partition("\n")
        if not meaning.endswith("."):
            faults.append(f"{place}: the docstring does not begin with a sentence.")
        for attribute in ("sentence", "advice"):
            text = getattr(error_class, attribute)
            # A fact at the end may be a sentence.
            if text and not text.endswith((".", "?", "}")):
                faults.append(f"{place}: `{attribute}` does not end with a period.")

    what_to_do = "Begin the docstring with the meaning of the code, and end sentences with a period"
    fail_if_any(faults, what_to_do, _HEADING)


@dataclass(frozen=True)
class Raised:
    """A place in the code that creates an error."""

    place: str
    error_class: type[ToolError]
    arguments: set[str]

    @property
    def has_usual_arguments(self) -> bool:
        """Whether the keyword arguments are the facts, as most classes have it."""
        return self.error_class.__init__ in (ToolError.__init__, PathError.__init__)

    @property
    def has_hint(self) -> bool:
        """Whether the class or the caller gives a hint."""
        return bool(self.error_class.advice) or "suggestion" in self.arguments

    @property
    def missing_facts(self) -> set[str]:
        """The facts that the message and the hint name, and that are never passed."""
        facts: set[str] = set()
        if "message" not in self.arguments:
            facts |= _fields_in(self.error_class.sentence)
        facts |= _fields_in(self.error_class.advice)
        return facts - self.arguments - _FACTS_OF_EVERY_ERROR


def _fields_in(template: str) -> set[str]:
    """Return the names in braces."""
    names = set()
    for _, name, _, _ in Formatter().parse(template):
        if name:
            names.add(name)
    return names


def raised_errors() -> Iterator[Raised]:
    """Yield each place in the code of the project that calls the class of an error."""
    classes = {error_class.__name__: error_class for error_class in all_errors()}
    for file in own_python_files():
        tree = ast.parse(file.read_text())
        original_names = _original_names(tree)
        for call in _calls_in(tree):
            name = _name_of_function(call)
            error_class = classes.get(original_names.get(name, name))
            if error_class is not None:
                place = f"{relative(file)}:{call.lineno}"
                yield Raised(place, error_class, _arguments_of(call, error_class))


def _original_names(tree: ast.Module) -> dict[str, str]:
    """Return the names of what the file imports `as` another name, by that other name."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = alias.name
    return names


def _calls_in(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield each call. `raise NotEnough` is short for `raise NotEnough()`, so it is one too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node
        elif isinstance(node, ast.Raise) and isinstance(node.exc, (ast.Name, ast.Attribute)):
            call = ast.Call(func=node.exc, args=[], keywords=[])
            yield ast.copy_location(call, node)


def _name_of_function(call: ast.Call) -> str:
    """Return the last name of what is called: `NotEnough` for `errors.NotEnough()`."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return ""


def _arguments_of(call: ast.Call, error_class: type[ToolError]) -> set[str]:
    """Return the names of the arguments of a call, also of those without a keyword."""
    parameters = list(inspect.signature(error_class).parameters)
    names = set(parameters[: len(call.args)])
    for keyword in call.keywords:
        if keyword.arg is not None:
            names.add(keyword.arg)
    return names


def test_each_error_is_raised_with_the_facts_that_it_names() -> None:
    faults = []
    for raised in raised_errors():
        if raised.has_usual_arguments and raised.missing_facts:
            names = ", ".join(sorted(raised.missing_facts))
            faults.append(f"{raised.place}: {raised.error_class.__name__} lacks {names}.")

    fail_if_any(faults, "Pass each fact in braces as a keyword argument", _HEADING)


def test_each_error_has_a_hint() -> None:
    faults = []
    for raised in raised_errors():
        if raised.has_usual_arguments and not raised.has_hint:
            faults.append(f"{raised.place}: {raised.error_class.__name__} has no hint.")

    fail_if_any(faults, "Say in `advice` of the class what the user can do", _HEADING)
