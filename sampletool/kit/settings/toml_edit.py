"""Change one key of a TOML text and leave every other byte alone, but for blanks in braces that the key is in.

A scan finds the place (parsing a long file with tomlkit takes seconds), tomlkit writes lists, tables and what is inside
of braces, and the change is a splice of the text. tomllib must then read the old document with just this change in it,
or it is refused.
"""

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from ..safety.toml_file import parse
from .toml_key import Path, get, parse_key, show_key, show_plain

_STRING = r""" "(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+" | '(?!'')[^'\n]*+' """
_TEXT = rf"""[^\n"'\#\[\]{{}}]*+ (?: (?:{_STRING}) [^\n"'\#\[\]{{}}]*+ )*+"""
_BEGIN = re.compile(
    rf"""[ \t]*+ (\[*+) [ \t]*+ ([^\n"'\#\[\]{{}}=]*+ (?: (?:{_STRING}) [^\n"'\#\[\]{{}}=]*+ )*+) [=\]] [ \t]*+""",
    re.VERBOSE,
)
"""Of a statement or a table: the brackets of a header, and the key; it ends where the value begins."""
_LONG = 20_000
"""Characters from which it is worth it to compile a pattern that passes over lines that are not on the way."""
_HAS_RIGHT_RE = sys.version_info >= (3, 11, 5)
"""Whether possessive groups match correctly (CPython's gh-100061). If not, _lines_without passes too many lines."""
_TOKEN = re.compile(
    rf"""\"""(?:\\.|[^\\])*?"{{3,5}} | '''.*?'{{3,5}} | {_STRING} | \#[^\n]* | [\[\]{{}}\n] """,
    re.VERBOSE | re.DOTALL,
)


class CannotEdit(Exception):
    """The document reads, but this key cannot be changed without touching something else."""


class NotAValue(CannotEdit):
    """The key, or a part of the way to it (`at`), is `found`: a table for a value, or the reverse."""

    def __init__(self, path: Path, at: Path, found: Any) -> None:
        self.path, self.at, self.found = path, at, found
        way = f"{show_key(path)} cannot be set: {show_key(at)} is not a table"
        super().__init__(f"{show_key(path)} is a table, not a value" if at == path else way)


class _Statement(NamedTuple):
    """`key = value`, as a part of the text."""

    start: int
    value: int
    end: int
    table: int
    """How many parts of the path the header above it names."""
    depth: int
    """How many parts of the path everything down to its key names."""


def set_value(text: str, path: Path, value: Any) -> str:
    document = parse(text)
    wanted = _with_value(document, path, value)
    headers, last, owner = _survey(text, path)
    found = get(document, path)
    if owner is None and found is None:
        candidates = _insertions(text, path, _written(value), headers, last)
    elif owner is None or (found and isinstance(found, dict) and not isinstance(value, dict)):
        raise NotAValue(path, path, found)
    else:
        candidates = iter([_with_owner(text, owner, path, value)])
    return _first_right(candidates, [wanted], path)


def _written(value: Any) -> str:
    if isinstance(value, (str, int)):
        return show_plain(value)
    import tomlkit  # which costs a tenth of a start: a plain value does without

    return str(tomlkit.item([[value]]).as_string())[2:-2]  # in a list of lists, tables are inline


def unset_value(text: str, path: Path) -> str:
    _, _, owner = _survey(text, path)
    if owner is None:
        raise CannotEdit(f"{show_key(path)} cannot be located for certain")
    return _first_right(iter([_with_owner(text, owner, path, None)]), list(_without(parse(text), path)), path)


def _with_owner(text: str, owner: _Statement, path: Path, value: Any) -> str:
    """The text with another value in this statement; None takes the key out."""
    if owner.depth < len(path):
        import tomlkit

        statement = tomlkit.parse(text[owner.start : owner.end])
        table: Any = statement
        for part in path[owner.table : -1]:
            table = table.setdefault(part, tomlkit.inline_table())
        if value is None:
            del table[path[-1]]
        else:
            table[path[-1]] = tomlkit.value(_written(value))  # an item would be lines of tables
        return text[: owner.start] + statement.as_string() + text[owner.end :]
    if value is None:
        start, end = _line_of(text, owner)
        return text[:start] + text[end:]
    return text[: owner.value] + _written(value) + text[owner.end :]


def _first_right(candidates: Iterator[str], wanted: list[dict[str, Any]], path: Path) -> str:
    for candidate in candidates:
        try:
            if any(_form(parse(candidate)) == _form(document) for document in wanted):
                return candidate
        except ValueError:
            continue
    raise CannotEdit(f"{show_key(path)} cannot be changed without touching other parts of the file")


def _survey(text: str, path: Path) -> tuple[dict[int, int], dict[int, _Statement], _Statement | None]:
    """What stands on the way to a key. The numbers are how many parts of its path a table has.

    Where the line of each table's header ends; the last statement in each table; and the statement that gives the key
    its value, or the inline table that the key is in.
    """
    headers: dict[int, int] = {}
    last: dict[int, _Statement] = {}
    owner: _Statement | None = None
    table: int | None = 0
    end = 0
    while end < len(text):
        start = end
        part = None if table is None else path[table]
        skipped = _lines_without(part).match(text, start) if len(text) > _LONG and _HAS_RIGHT_RE else None
        if skipped and skipped.end() > start:
            end = skipped.end()
        elif (key := _BEGIN.match(text, start)) and key[1]:
            end = text.find("\n", key.end()) + 1 or len(text)
            shared, parts = _on_the_way(key[2], path)
            table = shared if shared == parts < len(path) and key[1] == "[" else None
            if table is not None:
                headers[table] = end
        elif key:
            value_end = _end_of_value(text, key.end())
            end = text.find("\n", value_end) + 1 or len(text)
            if table is not None:
                shared, parts = _on_the_way(key[2], path[table:])
                statement = _Statement(key.start(2), key.end(), value_end, table, table + parts)
                last.update(dict.fromkeys(range(table, table + min(shared + 1, parts)), statement))
                if shared == parts:
                    owner = statement
        else:
            end = text.find("\n", start) + 1 or len(text)
    return headers, last, owner


@cache
def _lines_without(part: str | None) -> re.Pattern[str]:
    """Lines that are no header, end what they begin, and have no key that may have this part first.

    A statement is left where none follows: it may be the last of its table.
    """
    others = r"\[" if part is None else rf"""\[ | ["'] | {re.escape(part)} [ \t]*+ [.=]"""
    line = rf"(?! [ \t]*+ (?:{others}) ) {_TEXT} (?: [\[{{] {_TEXT} [\]}}] {_TEXT} )*+ (?:\#[^\n]*+)?+ \n"
    return re.compile(rf"(?: {line} (?= [ \t]*+ [^\s\#\[] ) )*+", re.VERBOSE)


def _line_of(text: str, statement: _Statement) -> tuple[int, int]:
    """All lines of a statement."""
    return text.rfind("\n", 0, statement.start) + 1, text.find("\n", statement.end) + 1 or len(text)


def _on_the_way(written: str, path: Path) -> tuple[int, int]:
    """How many parts at the beginning of a key are those of the path, and how many parts it has."""
    key = written.strip().expandtabs(1)
    if not key.startswith((path[0], '"', "'")):
        return 0, 1
    try:
        parts = parse_key(key)
    except ValueError:
        return 0, 1
    shared = (n for n, (one, other) in enumerate(zip(parts, path, strict=False)) if one != other)
    return next(shared, min(len(parts), len(path))), len(parts)


def _end_of_value(text: str, start: int) -> int:
    """Where the value that begins here ends; a line end or a comment follows."""
    depth, end = 0, len(text)
    for token in _TOKEN.finditer(text, start):
        if depth == 0 and token[0][0] in "\n#":
            end = token.start()
            break
        depth += (token[0] in "[{") - (token[0] in "]}")
    return start + len(text[start:end].rstrip())


def _insertions(
    text: str, path: Path, shown: str, headers: dict[int, int], last: dict[int, _Statement]
) -> Iterator[str]:
    """Places for a key, best first: after its table's last key, below its header, in a table of its own, at the top."""
    document = parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    for depth in range(len(path) - 1, -1, -1):
        table, line = path[:depth], f"{show_key(path[depth:])} = {shown}"
        if get(document, table) is None or (depth == 0 and len(path) > 1):
            continue
        if depth in last:
            yield _after(text, last[depth], path, shown, newline)
        if depth in headers:
            yield _below_header(text, headers[depth], line, newline)
    if len(path) > 1:
        yield _at_the_end(text, path[:-1], path[-1:], shown, newline)
    if header := re.search(r"(?:^[ \t]*#.*\n)*^[ \t]*\[", text, re.MULTILINE):  # with the comments that belong to it
        yield f"{text[: header.start()]}{show_key(path)} = {shown}{newline}{newline}{text[header.start() :]}"
    yield _at_the_end(text, (), path, shown, newline)


def _after(text: str, last: _Statement, path: Path, shown: str, newline: str) -> str:
    begins, ends = _line_of(text, last)
    gap, end = ("", newline) if text[:ends].endswith("\n") else (newline, "")
    return f"{text[:ends]}{gap}{text[begins : last.start]}{show_key(path[last.table :])} = {shown}{end}{text[ends:]}"


def _below_header(text: str, end: int, line: str, newline: str) -> str:
    if remark := re.compile(r"([ \t]*#.*\n)+(?=[ \t]*\r?\n|\Z)").match(text, end):  # else it is about what follows
        end = remark.end()
    gap = "" if text[:end].endswith("\n") else newline
    return f"{text[:end]}{gap}{line}{newline}{text[end:]}"


def _at_the_end(text: str, table: Path, rest: Path, shown: str, newline: str) -> str:
    gap = newline if text and not text.endswith("\n") else ""
    header = f"[{show_key(table)}]{newline}" if table else ""
    blank = newline if header and text.strip() else ""
    return f"{text}{gap}{blank}{header}{show_key(rest)} = {shown}{newline}"


def _with_value(table: Any, path: Path, value: Any, depth: int = 0) -> Any:
    """A copy of the document with this value; what is not on the way is shared."""
    if depth == len(path):
        return value
    if not isinstance(table, dict):
        raise NotAValue(path, path[:depth], table)
    return {**table, path[depth]: _with_value(table.get(path[depth], {}), path, value, depth + 1)}


def _without(document: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The document without this key, then without the tables too that were there only for it (`a.b = 1`)."""
    for depth in range(len(path) - 1, -1, -1):
        table = {key: value for key, value in get(document, path[:depth]).items() if key != path[depth]}
        yield _with_value(document, path[:depth], table)
        if table:
            break


def _form(document: dict[str, Any]) -> str:
    """The same for documents that are equal, also in the types of their values; the order of keys does not count."""
    return json.dumps(document, sort_keys=True, default=repr)
