"""Change one key of a TOML text and leave every other byte alone.

tomlkit finds the place: put a mark there, and what differs from the original is exactly where the old value stood.
The change itself is a splice of the original text, so nothing else can move, and tomllib must then read the old
document with just this change in it. Where no splice passes that test, the change is refused by name.
"""

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

from .toml_key import Path, get, has, parse_key, show_key, show_value

_MARK = "\N{REPLACEMENT CHARACTER}here\N{REPLACEMENT CHARACTER}"


class CannotEdit(Exception):
    """The document reads, but this key cannot be changed without touching something else."""


class NotAValue(CannotEdit):
    """The key, or a part of the way to it, is not what it would have to be: a table for a value, or the reverse."""

    def __init__(self, path: Path, at: Path, found: Any) -> None:
        """`found` is what stands at `at`, which is the path or a part of it."""
        self.path, self.at, self.found = path, at, found
        way = f"{show_key(path)} cannot be set: {show_key(at)} is not a table"
        super().__init__(f"{show_key(path)} is a table, not a value" if at == path else way)


def set_value(text: str, path: Path, value: Any) -> str:
    document = tomllib.loads(text)
    shown = show_value(value)
    if not has(document, path):
        return _first_right(_insertions(text, path, shown), [_with_value(document, path, value)], path)
    before = get(document, path)
    try:
        start, end = _span(text, path)
    except CannotEdit as error:
        if _is_table(before):
            raise NotAValue(path, path, before) from error
        raise
    return _first_right(iter([text[:start] + shown + text[end:]]), [_with_value(document, path, value)], path)


def unset_value(text: str, path: Path) -> str:
    start, end = _span(text, path)
    return _first_right(_deletions(text, start, end), list(_without(tomllib.loads(text), path)), path)


def _first_right(candidates: Iterator[str], wanted: list[dict[str, Any]], path: Path) -> str:
    for candidate in candidates:
        try:
            read = tomllib.loads(candidate)
            if any(_same(read, document) for document in wanted):
                return candidate
        except ValueError:
            continue
    raise CannotEdit(f"{show_key(path)} cannot be changed without touching other parts of the file")


def _span(text: str, path: Path) -> tuple[int, int]:
    """Where the value of this key stands, as tomlkit sees it and tomllib confirms it."""
    import tomlkit

    mark = show_value(_MARK)
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for part in path[:-1]:
            table = table[part]
        table[path[-1]] = _MARK
        marked = document.as_string()
        start = marked.index(mark)
        rest = marked[start + len(mark) :]
        end = len(text) - len(rest)
        read = tomllib.loads(f"found = {text[start:end]}")
    except Exception as error:
        raise CannotEdit(f"{show_key(path)} cannot be located for certain ({type(error).__name__})") from error
    is_there = text[:start] == marked[:start] and text[end:] == rest
    if not is_there or not _same(read, {"found": get(tomllib.loads(text), path)}):
        raise CannotEdit(f"{show_key(path)} cannot be located for certain")
    return start, end


def _insertions(text: str, path: Path, shown: str) -> Iterator[str]:
    """Places for a new key, best first: after its table's last key, below its header, in a table of its own."""
    document = tomllib.loads(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{show_key(path)} = {shown}"
    for depth in range(len(path) - 1, -1, -1):
        table, rest = path[:depth], path[depth:]
        if not has(document, table) or (depth == 0 and len(path) > 1):
            continue
        line = f"{show_key(rest)} = {shown}"
        leaves = [key for key, value in get(document, table).items() if not _is_table(value)]
        if leaves:
            with suppress(CannotEdit):
                yield from _after_key(text, *_span(text, (*table, leaves[-1])), line, newline)
        yield from _below_header(text, table, line, newline)
        yield from _into_braces(text, table, line)
    if len(path) > 1:
        yield _at_the_end(text, path[:-1], path[-1:], shown, newline)
    yield from _at_the_top(text, line, newline)
    yield _at_the_end(text, (), path, shown, newline)


def _after_key(text: str, start: int, end: int, line: str, newline: str) -> Iterator[str]:
    begins, ends = _line_of(text, start, end)
    indent, written_key = _indent_and_key(text[begins:start])
    prefix, dot, _ = written_key.rpartition(".")
    gap, last = ("", newline) if text[:ends].endswith("\n") else (newline, "")
    for dotted in dict.fromkeys((prefix + dot, "")):
        yield f"{text[:ends]}{gap}{indent}{dotted}{line}{last}{text[ends:]}"
    yield f"{text[:end]}, {line}{text[end:]}"


def _below_header(text: str, table: Path, line: str, newline: str) -> Iterator[str]:
    for found in re.finditer(r"^[ \t]*\[([^\[\]\r\n]+|.*)\][ \t]*(#.*)?\r?$", text, re.MULTILINE):
        try:
            if parse_key(found[1].strip()) != table:
                continue
        except ValueError:
            continue
        ends = text.find("\n", found.end()) + 1 or len(text)
        if remark := re.compile(r"([ \t]*#.*\n)+(?=[ \t]*\r?\n|\Z)").match(text, ends):  # else it is about what follows
            ends = remark.end()
        gap = "" if text[:ends].endswith("\n") else newline
        yield f"{text[:ends]}{gap}{line}{newline}{text[ends:]}"


def _at_the_top(text: str, line: str, newline: str) -> Iterator[str]:
    """A root key of a document that has only tables: before the first header, and the comments that belong to it."""
    header = re.search(r"(?:^[ \t]*#.*\n)*^[ \t]*\[", text, re.MULTILINE)
    if header is not None:
        yield f"{text[: header.start()]}{line}{newline}{newline}{text[header.start() :]}"


def _into_braces(text: str, table: Path, line: str) -> Iterator[str]:
    """An inline table that has no plain value of its own to stand behind."""
    try:
        start, _ = _span(text, table)
    except (CannotEdit, IndexError):
        return
    for comma in ("", ","):
        yield f"{text[: start + 1]} {line}{comma}{text[start + 1 :]}"


def _at_the_end(text: str, table: Path, rest: Path, shown: str, newline: str) -> str:
    gap = newline if text and not text.endswith("\n") else ""
    header = f"[{show_key(table)}]{newline}" if table else ""
    blank = newline if header and text.strip() else ""
    return f"{text}{gap}{blank}{header}{show_key(rest)} = {shown}{newline}"


def _deletions(text: str, start: int, end: int) -> Iterator[str]:
    begins, ends = _line_of(text, start, end)
    yield text[:begins] + text[ends:]
    inside = re.search(r"(,?[ \t]*)[^,{]*$", text[begins:start])
    if inside is not None:
        key_starts = begins + inside.start()
        following = re.match(r"[ \t]*,[ \t]*", text[end:])
        yield text[:key_starts] + text[end:]
        if following is not None:
            yield text[: begins + inside.end(1)] + text[end + following.end() :]


def _line_of(text: str, start: int, end: int) -> tuple[int, int]:
    """The lines that a value stands in: from the first one's begin to behind the last one's end."""
    return text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)


def _indent_and_key(before_value: str) -> tuple[str, str]:
    key = before_value.rpartition("=")[0]
    return key[: len(key) - len(key.lstrip())], key.strip()


def _with_value(document: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    table: Any = document
    for depth, part in enumerate(path[:-1], 1):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise NotAValue(path, path[:depth], table)
    table[path[-1]] = value
    return document


def _without(document: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The document without this key, then without the tables too that were there only for it (`a.b = 1`)."""
    for depth in range(len(path) - 1, -1, -1):
        table = get(document, path[:depth])
        del table[path[depth]]
        yield deepcopy(document)
        if table:
            break


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))


def _same(one: Any, other: Any) -> bool:
    """Equal in type as well; the order of keys and the sign of nan do not count."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) or (one != one and other != other)
