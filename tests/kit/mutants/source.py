"""Read a file of the package as a syntax tree, find code in it by pattern, and replace nodes of the tree.

A pattern is Python: one expression, or one statement or more. It is compared with the nodes of a function, so
formatting, comments and line breaks do not matter. `...` as one of the statements of a body stands for any statements,
and `...` in the replacement for the same ones.

A replacement changes only the text of the nodes that it replaces, so all other lines stay where they are.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from textwrap import indent

from sampletool.kit.program import PACKAGE

Nodes = Sequence[ast.stmt] | Sequence[ast.expr]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """One change of one file that can be tried."""

    file: str
    """The path below the package, such as `kit/safety/lock.py`."""
    function: str
    """The outermost function, such as `Lock._take`; a class for its own statements, nothing for those of the module."""
    line: int
    operator: str
    before: str
    after: str
    content: str
    """What is in the file instead."""

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
    """The statements that belong to one name: a function, or the own statements of a class or of the module."""

    name: str
    statements: Sequence[ast.stmt]


@dataclass(frozen=True)
class Place:
    """Neighbouring statements, or one expression, in one scope."""

    scope: str
    nodes: Nodes


class Source:
    """One Python file of the package in one tree of the project."""

    def __init__(self, tree: Path, file: str) -> None:
        self.file = file
        self.path = tree / PACKAGE / file
        self.text = self.path.read_text(encoding="utf-8")
        self.module = ast.parse(self.text)

    @cached_property
    def scopes(self) -> list[Scope]:
        """The functions and methods with their names; classes and the module with what is outside of these."""
        return list(_scopes("", self.module.body))

    def find(self, name: str, pattern: str, instead: str) -> tuple[Place, Nodes]:
        """Return the only place in this function, class or module that the pattern matches, and what replaces it.

        Raise PatternError if there is no such scope, or if the pattern matches not once.
        """
        wanted, replacement = _parsed(pattern, instead)
        found = self._matches(name, wanted)
        if len(found) != 1:
            raise PatternError(f"the pattern is in {name or 'the module'} {len(found)} times: {pattern}")
        place, captured = found[0]
        return place, _filled(replacement, captured)

    def count(self, name: str, pattern: str) -> int:
        """Return how often the pattern is in this function, class or module."""
        wanted, _ = _parsed(pattern, pattern)
        return len(self._matches(name, wanted))

    def _matches(self, name: str, wanted: Nodes) -> list[tuple[Place, list[list[ast.stmt]]]]:
        found = []
        for place in self._places(name, len(wanted), is_expression=isinstance(wanted[0], ast.expr)):
            captured: list[list[ast.stmt]] = []
            if _match(list(wanted), list(place.nodes), captured):
                found.append((place, captured))
        return found

    def _places(self, name: str, length: int, *, is_expression: bool) -> Iterator[Place]:
        inside = [scope for scope in self.scopes if name in ("", scope.name) or scope.name.startswith(f"{name}.")]
        if not inside:
            raise PatternError(f"there is no {name}")
        for scope in inside:
            if is_expression:
                for statement in scope.statements:
                    for node in nodes_of(statement):
                        if isinstance(node, ast.expr):
                            yield Place(scope.name, [node])
            else:
                for block in blocks_of(scope.statements):
                    for start in range(len(block) - length + 1):
                        yield Place(scope.name, block[start : start + length])

    def mutant(self, operator: str, place: Place, replacement: Nodes) -> Mutant:
        """Return the file with the replacement in this place."""
        first = place.nodes[0]
        return Mutant(
            file=self.file,
            function=place.scope,
            line=first.lineno,
            operator=operator,
            before=one_line(place.nodes),
            after=one_line(replacement),
            content=self._replaced(place.nodes, replacement),
        )

    def _replaced(self, old: Sequence[ast.AST], new: Sequence[ast.AST]) -> str:
        """Replace the text of the nodes. Where that does not give the tree that is meant, write the whole file anew."""
        meant = _rebuilt(self.module, list(old), list(new))
        assert isinstance(meant, ast.Module)
        ast.fix_missing_locations(meant)
        written = "\n".join(ast.unparse(node) for node in new)
        for attempt in (written, f"({written})"):
            text = self._with_text(old, attempt)
            try:
                is_meant = dump(ast.parse(text)) == dump(meant)
            except SyntaxError:
                is_meant = False
            if is_meant:
                return text
        return ast.unparse(meant) + "\n"

    def _with_text(self, old: Sequence[ast.AST], text: str) -> str:
        # The offsets of a syntax tree count bytes.
        lines = self.text.encode().splitlines(keepends=True)
        first, last = old[0], old[-1]
        assert isinstance(first, (ast.stmt, ast.expr))
        assert isinstance(last, (ast.stmt, ast.expr))
        assert last.end_lineno is not None
        head = b"".join(lines[: first.lineno - 1]) + lines[first.lineno - 1][: first.col_offset]
        tail = lines[last.end_lineno - 1][last.end_col_offset :] + b"".join(lines[last.end_lineno :])
        if isinstance(first, ast.stmt):
            text = indent(text, " " * first.col_offset).lstrip(" ")
        return (head + text.encode() + tail).decode()


def nodes_of(top: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and everything in it, but nothing inside an f-string: Python 3.11 gives it wrong positions."""
    yield top
    if not isinstance(top, ast.JoinedStr):
        for child in ast.iter_child_nodes(top):
            yield from nodes_of(child)


def blocks_of(statements: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Yield these statements, and every list of statements inside of them."""
    yield list(statements)
    for statement in statements:
        for node in ast.walk(statement):
            for _, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    yield value


def dump(node: ast.AST) -> str:
    """Return the tree as text. Whether a name is read or written follows from where it is."""
    return re.sub(r"ctx=(Load|Store|Del)\(\)", "", ast.dump(node))


def _scopes(prefix: str, body: Sequence[ast.stmt]) -> Iterator[Scope]:
    own = []
    for statement in body:
        if isinstance(statement, _FUNCTIONS):
            yield Scope(f"{prefix}{statement.name}", [statement])
        elif isinstance(statement, ast.ClassDef):
            yield from _scopes(f"{prefix}{statement.name}.", statement.body)
        else:
            own.append(statement)
    # A pattern of several statements must not match across a function that lies between them.
    for run in _runs(own, body):
        yield Scope(prefix.removesuffix("."), run)


def _runs(own: list[ast.stmt], body: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """Return those of `own` that are neighbours in `body` together."""
    if not own:
        return []
    positions = {id(statement): number for number, statement in enumerate(body)}
    runs = [[own[0]]]
    for before, after in pairwise(own):
        if positions[id(after)] == positions[id(before)] + 1:
            runs[-1].append(after)
        else:
            runs.append([after])
    return runs


def _parsed(pattern: str, instead: str) -> tuple[Nodes, Nodes]:
    try:
        wanted = ast.parse(pattern).body
        replacement = ast.parse(instead).body
    except SyntaxError as error:
        raise PatternError(f"not Python: {error.text or ''}".strip()) from error
    if not wanted:
        raise PatternError("the pattern is empty")
    if len(wanted) == len(replacement) == 1:
        one, other = wanted[0], replacement[0]
        if isinstance(one, ast.Expr) and isinstance(other, ast.Expr):
            return [one.value], [other.value]
    nothing: list[ast.stmt] = [ast.Pass()]
    return wanted, replacement or nothing


def _is_anything(statement: object) -> bool:
    """Tell whether this is the statement `...`."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return statement.value.value is ...


def _match(pattern: object, found: object, captured: list[list[ast.stmt]]) -> bool:
    if isinstance(pattern, list):
        return isinstance(found, list) and _match_lists(pattern, found, captured)
    if isinstance(pattern, ast.expr_context):
        return isinstance(found, ast.expr_context)
    if isinstance(pattern, ast.AST):
        if type(pattern) is not type(found):
            return False
        return all(_match(value, getattr(found, name), captured) for name, value in ast.iter_fields(pattern))
    return type(pattern) is type(found) and pattern == found


def _match_lists(pattern: list[object], found: list[object], captured: list[list[ast.stmt]]) -> bool:
    """Compare member by member. One `...` stands for as many statements as are left over for it."""
    places = [number for number, member in enumerate(pattern) if _is_anything(member)]
    if places:
        place = places[0]
        end = len(found) - (len(pattern) - place - 1)
        if end < place or not _match_lists(pattern[:place], found[:place], captured):
            return False
        captured.append([member for member in found[place:end] if isinstance(member, ast.stmt)])
        return _match_lists(pattern[place + 1 :], found[end:], captured)
    if len(pattern) != len(found):
        return False
    return all(_match(one, other, captured) for one, other in zip(pattern, found, strict=True))


def _filled(replacement: Nodes, captured: list[list[ast.stmt]]) -> Nodes:
    """Put the statements that `...` stood for where `...` is a statement of the replacement, in their order."""
    waiting = list(captured)
    holder = ast.Module(body=list(replacement), type_ignores=[])  # type: ignore[arg-type]  # expressions too
    for node in ast.walk(holder):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                filled: list[object] = []
                for member in value:
                    if _is_anything(member) and waiting:
                        filled += waiting.pop(0)
                    else:
                        filled.append(member)
                setattr(node, name, filled)
    return holder.body


def _rebuilt(node: object, old: list[ast.AST], new: list[ast.AST]) -> object:
    """Return a copy of the tree with the new nodes in place of the old ones, which are neighbours."""
    if isinstance(node, list):
        members: list[object] = []
        for member in node:
            if member is old[0]:
                members += new
            elif not any(member is each for each in old):
                members.append(_rebuilt(member, old, new))
        return members
    if not isinstance(node, ast.AST):
        return node
    if node is old[0]:
        return new[0]
    fields = {name: _rebuilt(value, old, new) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)


def one_line(nodes: Sequence[ast.AST]) -> str:
    """Return the code in one line, as it is in a report and in the list of equivalent mutants."""
    texts = [ast.unparse(node) for node in nodes]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return "; ".join(lines).replace(":; ", ": ")


_MOST_CHARACTERS = 110
_AROUND = 40


def _shortened(before: str, after: str) -> tuple[str, str]:
    """Leave out what both have in common at their beginning and end, where they are long."""
    if max(len(before), len(after)) <= _MOST_CHARACTERS:
        return before, after
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return _cut(before, start, end), _cut(after, start, end)


def _common(one: str, other: str) -> int:
    """Return how many characters are the same at the beginning."""
    for number, (ours, theirs) in enumerate(zip(one, other, strict=False)):
        if ours != theirs:
            return number
    return min(len(one), len(other))


def _cut(text: str, start: int, end: int) -> str:
    first, last = max(0, start - _AROUND), min(len(text), len(text) - end + _AROUND)
    middle = text[first:last]
    if len(middle) > 2 * _MOST_CHARACTERS:
        middle = f"{middle[:_MOST_CHARACTERS]} … {middle[-_MOST_CHARACTERS:]}"
    return ("… " if first else "") + middle + (" …" if last < len(text) else "")
