"""Read a file of the package as a syntax tree, find code in it by pattern, and replace that code.

The terms of this package:

* A *mutant* is one file of the package with one change in it. The tests should fail with it.
* An *operator* is a kind of change with a name, such as "drop operand" (see operators.py).
* A *scope* is a function, or the statements of a class or module outside of its functions.
* A *place* is the code that a change replaces: one expression, or neighbouring statements.
* A *trial* is one run of tests with a mutant, in a *copy* of the project (see trial.py).

A pattern is Python: one expression, or one or more statements. It is compared with the syntax tree,
so formatting, comments and line breaks do not matter. The statement `...` in a pattern stands for
any statements, and `...` in the replacement stands for the same statements.

A replacement changes only the text of the nodes that it replaces. All other lines stay the same.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import indent

from sampletool.kit.program import PACKAGE

Nodes = Sequence[ast.stmt] | Sequence[ast.expr]
Captured = list[list[ast.stmt]]
"""The statements that each `...` of a pattern stands for, in the order of the pattern."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_MAX_CHARACTERS = 110
"""The length above which the two sides of a diff are shortened."""
_CONTEXT_CHARACTERS = 40
"""How much of the common text a shortened diff shows on each side of the difference."""


@dataclass(frozen=True)
class Mutant:
    """One file of the package with one change in it."""

    file: str
    """The path below the package, such as `kit/safety/lock.py`."""
    function: str
    """The outermost function, such as `Lock._take`.

    For a statement of a class, this is the name of the class. For one of the module, it is empty.
    """
    line: int
    operator: str
    before: str
    after: str
    content: str
    """The whole text of the changed file."""

    @property
    def diff(self) -> str:
        """Return the change in one line."""
        place = f"{PACKAGE}/{self.file}:{self.line} {self.function or 'module'}"
        before, after = _shortened(self.before, self.after)
        return f"{place}: [{self.operator}] {before} -> {after}"


class PatternError(ValueError):
    """A pattern that is not Python, or that does not match exactly once."""


@dataclass(frozen=True)
class Scope:
    """Statements that belong to one name: a function, or statements of a class or of the module."""

    name: str
    statements: Sequence[ast.stmt]


@dataclass(frozen=True)
class Place:
    """Neighbouring statements, or one expression, in one scope."""

    scope: str
    nodes: Nodes


class Source:
    """One Python file of the package, in one tree (a directory with the whole project)."""

    def __init__(self, tree: Path, file: str) -> None:
        self.file = file
        self.path = tree / PACKAGE / file
        self.text = self.path.read_text(encoding="utf-8")
        self.module = ast.parse(self.text)

    @cached_property
    def scopes(self) -> list[Scope]:
        """The functions and methods, and the statements of classes and the module outside them."""
        return list(_scopes("", self.module.body))

    def find(self, name: str, pattern: str, instead: str) -> tuple[Place, Nodes]:
        """Return the only place in this function, class or module that matches the pattern.

        Also return the nodes that replace it: those of `instead`, with each `...` filled in.

        Raise PatternError if there is no such function or class, or if there is no match or more
        than one.
        """
        wanted, replacement = _parsed(pattern, instead)
        matches = self._matches(name, wanted)
        if len(matches) != 1:
            where = name or "the module"
            raise PatternError(f"the pattern is in {where} {len(matches)} times: {pattern}")
        place, captured = matches[0]
        return place, _filled(replacement, captured)

    def count(self, name: str, pattern: str) -> int:
        """Return how often the pattern is in this function, class or module."""
        wanted, _ = _parsed(pattern, pattern)
        return len(self._matches(name, wanted))

    def mutant(self, operator: str, place: Place, replacement: Nodes) -> Mutant:
        """Return the mutant that has the replacement in this place."""
        return Mutant(
            file=self.file,
            function=place.scope,
            line=place.nodes[0].lineno,
            operator=operator,
            before=one_line(place.nodes),
            after=one_line(replacement),
            content=self._replaced(place.nodes, replacement),
        )

    def _matches(self, name: str, wanted: Nodes) -> list[tuple[Place, Captured]]:
        """Return each place that matches, and the statements that `...` stands for there."""
        matches = []
        for scope in self._scopes_in(name):
            if isinstance(wanted[0], ast.expr):
                places = _expression_places(scope)
            else:
                places = _statement_places(scope, len(wanted))
            for place in places:
                captured = _match(list(wanted), list(place.nodes))
                if captured is not None:
                    matches.append((place, captured))
        return matches

    def _scopes_in(self, name: str) -> list[Scope]:
        """Return the scopes inside the function or class. The empty name means the whole module.

        Raise PatternError if there are none.
        """
        if name == "":
            inside = self.scopes
        else:
            inside = []
            for scope in self.scopes:
                if scope.name == name or scope.name.startswith(f"{name}."):
                    inside.append(scope)
        if not inside:
            raise PatternError(f"there is no {name}")
        return inside

    def _replaced(self, old: Nodes, new: Nodes) -> str:
        """Return the text of the file with the new nodes in place of the old ones."""
        expected = _rebuilt(self.module, old, new)
        ast.fix_missing_locations(expected)
        new_text = "\n".join(ast.unparse(node) for node in new)
        # Replacing text can give another tree than replacing nodes: with `a + b` for `x`, the text
        # `x * 2` becomes `a + b * 2`. So compare the trees, and try again with parentheses.
        for text in (new_text, f"({new_text})"):
            content = self._with_text(old, text)
            if _has_tree(content, expected):
                return content
        # Some nodes cannot be replaced alone: the text of an inner `if` may begin with `elif`.
        return ast.unparse(expected) + "\n"

    def _with_text(self, old: Nodes, text: str) -> str:
        """Return the text of the file with `text` in place of the text of the old nodes."""
        first, last = old[0], old[-1]
        assert last.end_lineno is not None
        assert last.end_col_offset is not None
        if isinstance(first, ast.stmt):
            # The first line keeps the indentation that is already in the file before it.
            first_line, newline, other_lines = text.partition("\n")
            text = first_line + newline + indent(other_lines, " " * first.col_offset)
        # ast counts columns in bytes of UTF-8, not in characters.
        content = self.text.encode()
        start = self._byte_offset(first.lineno, first.col_offset)
        end = self._byte_offset(last.end_lineno, last.end_col_offset)
        return (content[:start] + text.encode() + content[end:]).decode()

    def _byte_offset(self, line_number: int, column: int) -> int:
        """Return how many bytes of the file precede a position of the syntax tree."""
        # ast counts lines from 1.
        return self._line_starts[line_number - 1] + column

    @cached_property
    def _line_starts(self) -> list[int]:
        """The byte offset at which each line begins."""
        starts = []
        offset = 0
        for line in self.text.encode().splitlines(keepends=True):
            starts.append(offset)
            offset += len(line)
        return starts


def nodes_of(top: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and everything in it.

    Nothing inside an f-string is yielded: Python 3.11 gives these nodes wrong positions.
    """
    yield top
    if not isinstance(top, ast.JoinedStr):
        for child in ast.iter_child_nodes(top):
            yield from nodes_of(child)


def blocks_of(statements: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Yield these statements, and every list of statements inside them."""
    yield list(statements)
    for statement in statements:
        for node in ast.walk(statement):
            for _, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    yield value


def dump(node: ast.AST) -> str:
    """Return the tree as text, to compare it with another one.

    The text leaves out whether a name is read, assigned or deleted. A replacement was parsed on its
    own, where every name is read; in the file, the place of a name decides.
    """
    return re.sub(r"ctx=(Load|Store|Del)\(\)", "", ast.dump(node))


def one_line(nodes: Sequence[ast.AST]) -> str:
    """Return the code in one line, as it is in a report and in the list of equivalent mutants."""
    lines = []
    for node in nodes:
        for line in ast.unparse(node).splitlines():
            lines.append(line.strip())
    return "; ".join(lines).replace(":; ", ": ")


def _scopes(prefix: str, body: Sequence[ast.stmt]) -> Iterator[Scope]:
    """Yield the scopes in the body of a class or of the module.

    `prefix` is empty for the module, and "Lock." for the class `Lock`.
    """
    # A pattern of several statements must not match across a function or class between them.
    # So each run of statements without one in between is a scope of its own.
    runs: list[list[ast.stmt]] = []
    is_new_run = True
    for statement in body:
        if isinstance(statement, _FUNCTIONS):
            yield Scope(f"{prefix}{statement.name}", [statement])
            is_new_run = True
        elif isinstance(statement, ast.ClassDef):
            yield from _scopes(f"{prefix}{statement.name}.", statement.body)
            is_new_run = True
        else:
            if is_new_run:
                runs.append([])
                is_new_run = False
            runs[-1].append(statement)
    for run in runs:
        yield Scope(prefix.removesuffix("."), run)


def _expression_places(scope: Scope) -> Iterator[Place]:
    """Yield each expression of the scope."""
    for statement in scope.statements:
        for node in nodes_of(statement):
            if isinstance(node, ast.expr):
                yield Place(scope.name, [node])


def _statement_places(scope: Scope, length: int) -> Iterator[Place]:
    """Yield each group of `length` neighbouring statements of the scope."""
    for block in blocks_of(scope.statements):
        for start in range(len(block) - length + 1):
            yield Place(scope.name, block[start : start + length])


def _parsed(pattern: str, instead: str) -> tuple[Nodes, Nodes]:
    """Return the nodes of a pattern and of its replacement: both expressions, or both statements.

    Raise PatternError if one of them is not Python, or if the pattern is empty.
    """
    try:
        wanted = ast.parse(pattern).body
        replacement = ast.parse(instead).body
    except SyntaxError as error:
        raise PatternError(f"not Python: {error.text or ''}".strip()) from error
    if not wanted:
        raise PatternError("the pattern is empty")
    if len(wanted) == 1 and len(replacement) == 1:
        pattern_statement, new_statement = wanted[0], replacement[0]
        if isinstance(pattern_statement, ast.Expr) and isinstance(new_statement, ast.Expr):
            return [pattern_statement.value], [new_statement.value]
    if not replacement:
        # A body without any statement would not be Python.
        replacement = [ast.Pass()]
    return wanted, replacement


def _is_ellipsis(statement: object) -> bool:
    """Return whether this is the statement `...`."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return statement.value.value is ...


def _match(pattern: object, found: object) -> Captured | None:
    """Return the statements that each `...` of the pattern stands for, or None if nothing matches.

    A pattern that matches without any `...` gives an empty list, so compare the result with None.
    Both arguments are nodes, or values of a field of a node: a list, a name, a number and so on.
    """
    if isinstance(pattern, list):
        if not isinstance(found, list):
            return None
        return _match_lists(pattern, found)
    # Whether a name is read, assigned or deleted does not matter: every name of a pattern that is
    # an expression counts as read, but the same expression may be assigned to in the file.
    if isinstance(pattern, ast.expr_context) and isinstance(found, ast.expr_context):
        return []
    if type(pattern) is not type(found):
        return None
    if isinstance(pattern, ast.AST):
        fields = ast.iter_fields(pattern)
        return _match_pairs((value, getattr(found, name)) for name, value in fields)
    if pattern != found:
        return None
    return []


def _match_pairs(pairs: Iterable[tuple[object, object]]) -> Captured | None:
    """Match the first of each pair with the second. Return None if one of them does not match."""
    captured: Captured = []
    for pattern, found in pairs:
        captured_in_pair = _match(pattern, found)
        if captured_in_pair is None:
            return None
        captured += captured_in_pair
    return captured


def _match_lists(pattern: list[object], found: list[object]) -> Captured | None:
    """Match the members of two lists. A `...` stands for the members that the others leave over."""
    ellipsis_indexes = [index for index, member in enumerate(pattern) if _is_ellipsis(member)]
    if not ellipsis_indexes:
        if len(pattern) != len(found):
            return None
        return _match_pairs(zip(pattern, found, strict=True))

    # What precedes `...` must match the beginning of `found`, and what follows must match its end.
    start = ellipsis_indexes[0]
    pattern_before, pattern_after = pattern[:start], pattern[start + 1 :]
    end = len(found) - len(pattern_after)
    if end < start:
        return None
    captured_before = _match_lists(pattern_before, found[:start])
    if captured_before is None:
        return None
    captured_after = _match_lists(pattern_after, found[end:])
    if captured_after is None:
        return None
    captured_here = [member for member in found[start:end] if isinstance(member, ast.stmt)]
    return [*captured_before, captured_here, *captured_after]


def _filled(replacement: Nodes, captured: Captured) -> Nodes:
    """Return the replacement with captured statements in place of each `...`, in their order.

    The nodes of the replacement are changed. A `...` for which nothing was captured stays.
    """
    remaining = list(captured)
    # Make the replacement the body of a module, so that the loop treats it like the bodies inside
    # it. A real module has no expression as a member of its body, but here that does no harm.
    holder = ast.Module(list(replacement), [])  # type: ignore[arg-type]
    for node in ast.walk(holder):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                filled: list[object] = []
                for member in value:
                    if remaining and _is_ellipsis(member):
                        filled += remaining.pop(0)
                    else:
                        filled.append(member)
                setattr(node, name, filled)
    return holder.body


def _rebuilt(node: ast.AST, old: Nodes, new: Nodes) -> ast.AST:
    """Return a copy of the tree below the node, with the new nodes in place of the old ones.

    The old nodes are neighbours in one list, or a single node.
    """
    fields: dict[str, object] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            fields[name] = _rebuilt_list(value, old, new)
        else:
            fields[name] = _rebuilt_value(value, old, new)
    return ast.copy_location(type(node)(**fields), node)


def _rebuilt_list(members: list[object], old: Nodes, new: Nodes) -> list[object]:
    rebuilt: list[object] = []
    for member in members:
        if member is old[0]:
            # All new nodes go here. The other old nodes are left out below.
            rebuilt += new
        elif not any(member is node for node in old):
            rebuilt.append(_rebuilt_value(member, old, new))
    return rebuilt


def _rebuilt_value(value: object, old: Nodes, new: Nodes) -> object:
    """Return a copy of a node. Return anything else, such as a name or a number, as it is."""
    if value is old[0]:
        # This field holds a single expression, such as the condition of an `if`. Only another
        # single expression can replace it: several statements are always in a list.
        return new[0]
    if isinstance(value, ast.AST):
        return _rebuilt(value, old, new)
    return value


def _has_tree(content: str, expected: ast.AST) -> bool:
    """Return whether the text is Python and has this syntax tree."""
    try:
        return dump(ast.parse(content)) == dump(expected)
    except SyntaxError:
        return False


def _shortened(before: str, after: str) -> tuple[str, str]:
    """Return both texts. If they are long, leave out most of what is equal at both ends."""
    if max(len(before), len(after)) <= _MAX_CHARACTERS:
        return before, after
    start_length = _common_start_length(before, after)
    # Compare the ends without the common beginning, so that no character is counted twice.
    reversed_before = before[start_length:][::-1]
    reversed_after = after[start_length:][::-1]
    end_length = _common_start_length(reversed_before, reversed_after)
    return _cut(before, start_length, end_length), _cut(after, start_length, end_length)


def _common_start_length(one: str, other: str) -> int:
    """Return how many characters are the same at the beginning."""
    for index, (character, other_character) in enumerate(zip(one, other, strict=False)):
        if character != other_character:
            return index
    return min(len(one), len(other))


def _cut(text: str, start_length: int, end_length: int) -> str:
    """Return the text with only a few of its first and last characters that are common."""
    start = max(0, start_length - _CONTEXT_CHARACTERS)
    end = min(len(text), len(text) - end_length + _CONTEXT_CHARACTERS)
    shown = text[start:end]
    if len(shown) > 2 * _MAX_CHARACTERS:
        shown = f"{shown[:_MAX_CHARACTERS]} … {shown[-_MAX_CHARACTERS:]}"
    if start > 0:
        shown = f"… {shown}"
    if end < len(text):
        shown = f"{shown} …"
    return shown
