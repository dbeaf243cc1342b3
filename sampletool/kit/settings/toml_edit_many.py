"""Change many keys of a TOML text, and leave every other byte of the text as it is.

`set_value` parses the whole text for each key, so 500 keys took it 6 s. Here, the text is parsed
once for all keys that already have a value, and once for each table that gets new keys.

The checks are the same. Every byte outside of the changed values and the new lines has to stay, and
tomllib has to read exactly the requested values. If a check fails, or if a table is written in an
unusual way, the keys are changed one after the other. This either works, or raises the error that
names the key.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..safety.toml_file import parse
from .toml_check import find_difference, reads_as, with_value
from .toml_cost import is_expensive
from .toml_edit import (
    CannotEdit,
    EditedTable,
    can_be_edited,
    edit,
    is_too_large,
    is_written_as_value,
    newline_of,
    refuse_wrong_kind,
    set_value,
    table_at,
)
from .toml_key import KeyPath, TomlTable, TomlValue, show_key, show_value, value_at

_Values = Mapping[KeyPath, TomlValue]


def set_many(text: str, values: _Values, check_signals: Callable[[], None]) -> str:
    """Return the text with these values for the keys.

    Call `check_signals` before each step that can take a second. Raise the errors of `set_value`.
    """
    if len(values) > 1:
        new_text = _set_at_once(text, values, check_signals)
        if new_text is not None:
            return new_text
    for path, value in values.items():
        check_signals()
        text = set_value(text, path, value)
    return text


def _set_at_once(text: str, values: _Values, check_signals: Callable[[], None]) -> str | None:
    """Return the text with these values, or None if the keys have to be changed one by one."""
    document = parse(text)
    existing = {}
    new_in_tables: dict[KeyPath, dict[KeyPath, TomlValue]] = {}
    for path, value in values.items():
        if value_at(document, path) is not None:
            existing[path] = value
        else:
            new_in_tables.setdefault(path[:-1], {})[path] = value
    try:
        new_text = _replace_values(text, existing)
        for new_keys in new_in_tables.values():
            check_signals()
            if new_text is not None:
                new_text = _add_keys(new_text, new_keys)
    except CannotEdit:
        # Another order may work. If not, the error has to name the first key that is a problem.
        return None
    if new_text is None or is_too_large(new_text):
        return None
    # The next command has to be able to edit the file too.
    if is_expensive(new_text) or not can_be_edited(new_text):
        return None
    return new_text


def _replace_values(text: str, values: _Values) -> str | None:
    """Return the text with other values for keys that have one. Return None if a check fails.

    Raise CannotEdit if one of them is a table that is not written as a value.
    """
    if not values:
        return text
    if is_expensive(text):
        return None
    document = parse(text)
    template = _template_of(text, document, values)
    if template is None:
        return None

    # Fill the gaps twice: with the old values, to compare the result with the old text, and with
    # the new values.
    old_text = template.text
    new_text = template.text
    expected = document
    for path, gap in template.gaps.items():
        # The brackets detect a comment behind the value: the last one would be a part of it.
        old_value = value_at(document, path)
        if not reads_as(f"value = [{gap.old_value}]", {"value": [old_value]}):
            return None
        old_text = old_text.replace(gap.placeholder, gap.old_value)
        new_text = new_text.replace(gap.placeholder, show_value(values[path]))
        expected = with_value(expected, path, values[path])
    # If tomlkit has changed anything outside of the gaps, the old values do not give the old text.
    has_other_changes = old_text != text
    if has_other_changes or not reads_as(new_text, expected):
        return None
    return new_text


@dataclass(frozen=True)
class _Gap:
    """The position of one value in a template."""

    placeholder: str
    """The text in place of the value, with its quotation marks. It occurs only once."""
    old_value: str
    """The value, as the text before has it."""


@dataclass(frozen=True)
class _Template:
    """A TOML text with a placeholder in place of some values."""

    text: str
    gaps: Mapping[KeyPath, _Gap]
    """The gap of each key that gets another value."""


def _template_of(text: str, document: TomlTable, values: _Values) -> _Template | None:
    """Return the text with a gap at each of these keys. Return None if tomlkit cannot edit it.

    `document` is the parsed text. Raise CannotEdit if a key is a table that is not written as a
    value.
    """
    gaps = {}

    def put_placeholders(edited_document: EditedTable) -> None:
        for path, new_value in values.items():
            refuse_wrong_kind(document, path, new_value)
            table = table_at(edited_document, path[:-1])
            item = table[path[-1]]
            if not is_written_as_value(item):
                raise CannotEdit(path, "it is a table")
            # The random part makes sure that the text does not contain it yet.
            placeholder = f"placeholder-{os.urandom(16).hex()}"
            gaps[path] = _Gap(placeholder=f'"{placeholder}"', old_value=item.as_string())
            table[path[-1]] = placeholder

    text_with_gaps = edit(text, put_placeholders)
    if text_with_gaps is None:
        return None
    return _Template(text_with_gaps, gaps)


def _add_keys(text: str, new_keys: _Values) -> str | None:
    """Return the text with new keys of one table. Return None if a check fails.

    `set_value` adds the first key, and the lines of the others follow it. Raise the errors of
    `set_value`.
    """
    first_path, *other_paths = new_keys
    text_with_first = set_value(text, first_path, new_keys[first_path])
    if not other_paths:
        return text_with_first

    added = find_difference(text, text_with_first)
    added_lines = added.new.rstrip("\r\n")
    last_line = added_lines.rpartition("\n")[2]
    first_statement = _statement(first_path, new_keys)
    if not last_line.endswith(first_statement):
        # For example, the table is in braces.
        return None
    # It may be indented, or start with the names of the tables above: `  a.b = 1`.
    line_start = last_line.removesuffix(first_statement)
    newline = newline_of(text)
    other_lines = ""
    expected = parse(text_with_first)
    for path in other_paths:
        other_lines += newline + line_start + _statement(path, new_keys)
        expected = with_value(expected, path, new_keys[path])

    end_of_first = added.start + len(added_lines)
    new_text = text_with_first[:end_of_first] + other_lines + text_with_first[end_of_first:]
    if not reads_as(new_text, expected):
        return None
    return new_text


def _statement(path: KeyPath, values: _Values) -> str:
    """Return `key = value`. The key is relative to its table."""
    return f"{show_key(path[-1:])} = {show_value(values[path])}"
