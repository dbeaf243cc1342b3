"""Many keys are changed at once, with the same result as one after the other."""

import time
import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampletool.kit.safety.toml_limits import MAX_TOML_BYTES
from sampletool.kit.settings import toml_edit, toml_edit_many
from sampletool.kit.settings.toml_edit import CannotEdit, WrongKind, set_value
from sampletool.kit.settings.toml_edit_many import set_many
from sampletool.kit.settings.toml_key import KeyPath, TomlValue, parse_key
from sampletool.kit.testing.failing import failure_of
from tests.kit.settings.test_toml_edit import documents, paths

_ANY_DOCUMENT = settings(suppress_health_check=list(HealthCheck))
_KEYS = 2000


def set_all(text: str, values: Mapping[KeyPath, TomlValue]) -> str:
    return set_many(text, values, lambda: None)


def set_one_by_one(text: str, values: Mapping[KeyPath, TomlValue]) -> str:
    for path, value in values.items():
        text = set_value(text, path, value)
    return text


def with_paths(values: Mapping[str, TomlValue]) -> dict[KeyPath, TomlValue]:
    return {parse_key(key): value for key, value in values.items()}


@_ANY_DOCUMENT
@given(documents(), st.lists(paths, min_size=2, max_size=5, unique=True))
def test_the_document_has_the_values_and_everything_that_it_had(
    text: str, paths: list[KeyPath]
) -> None:
    values = {path: f"value {number}" for number, path in enumerate(paths)}
    expected = deepcopy(tomllib.loads(text))

    try:
        new_text = set_all(text, values)
    except CannotEdit:
        return

    for path, value in values.items():
        table = expected
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = value
    assert tomllib.loads(new_text) == expected
    assert new_text.count("# a remark") == text.count("# a remark")


@_ANY_DOCUMENT
@given(documents(), st.lists(paths, min_size=2, max_size=5, unique=True))
def test_new_keys_change_nothing_else(text: str, paths: list[KeyPath]) -> None:
    document = tomllib.loads(text)
    values = {path: 1 for path in paths if path[0] not in document}

    try:
        new_text = set_all(text, values)
    except CannotEdit:
        return

    # Each old line is still there, in the old order. The last one may have got a line end.
    new_lines = iter(new_text.splitlines())
    for line in text.splitlines():
        assert line in new_lines


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {"a": 1, "b": 2}),
        ("a = 1 # one\nb = [1, # two\n 2]\n", {"a": 3, "b": 4, "c": 5, "d": 6}),
        ("[t]\n  a = 1\n\n# about u\n[u]\nx = 1\n", {"t.b": 2, "t.c": 3, "u.y": 4, "t.a": 5}),
        ("[t]\r\na = 1\r\n[u]\r\n", {"t.b": 2, "t.c": 3, "u.d": 4}),
        ("a = 1", {"b": 2, "c": 3}),
        ("a = 1\n  ", {"b": 2, "c.d": 3}),
        ("[t]\n", {"new.a": 1, "new.b": 2, "t.x": 3}),
        ("t = {a = 1, b = 2}\n", {"t.a": 3, "t.b": 4}),
        ("t = {a = 1}\n", {"t.b": 2, "t.c": 3}),
        ("t = {a = 1}\n", {"t": {"b": 2}, "x": 3}),
        ("a = 'x'\n", {"a": "\"'\n", "'b c'": {"d": [1.5]}, "e": True}),
        ("[[t]]\na = 1\n", {"x": 1, "y": 2}),
    ],
)  # fmt: skip
def test_the_text_is_the_same_as_after_one_edit_for_each_key(
    text: str, values: dict[str, TomlValue]
) -> None:
    new_text = set_all(text, with_paths(values))

    assert new_text == set_one_by_one(text, with_paths(values))


def test_blanks_after_the_last_line_end_do_not_become_the_indentation_of_a_header() -> None:
    new_text = set_all("a = {}\n  ", with_paths({"b.c": 1}))

    assert new_text == "a = {}\n  \n[b]\nc = 1\n"


def test_new_keys_of_a_table_with_dotted_keys_are_next_to_each_other() -> None:
    text = "[t]\nx.y = 1\nz = 2\n"

    new_text = set_all(text, with_paths({"t.x.a": 1, "t.x.b": 2}))

    assert tomllib.loads(new_text) == {"t": {"x": {"y": 1, "a": 1, "b": 2}, "z": 2}}
    assert "x.a = 1\nx.b = 2\n" in new_text


@pytest.mark.parametrize("text", ["", "[settings]\nlevel = 1\n\n# about other\n[other]\n"])
def test_the_time_does_not_grow_with_the_square_of_the_keys(text: str) -> None:
    """One edit for each of these keys would take more than a minute, twice."""
    paths = [("settings", f"key{number}") for number in range(_KEYS)]
    began = time.process_time()

    with_keys = set_all(text, dict.fromkeys(paths, 1))
    with_other_values = set_all(with_keys, dict.fromkeys(paths, 2))

    assert time.process_time() - began < 10
    settings = tomllib.loads(with_other_values)["settings"]
    assert [settings[f"key{number}"] for number in range(_KEYS)] == [2] * _KEYS


@pytest.mark.parametrize(
    ("text", "values", "path"),
    [
        ("t = {a = 1}\n", {"x": 1, "t": 2}, "t"),
        ("a = 1\n", {"x": 1, "a.b": 2}, "a.b"),
        ("a = 1\n[t]\nb = 1\n", {"a": 2, "t": 2}, "t"),
        ("", {"a": 1, "a.b": 2, "c": 3}, "a.b"),
    ],
)
def test_the_key_that_is_refused_is_named(
    text: str, values: dict[str, TomlValue], path: str
) -> None:
    error = failure_of(lambda: set_all(text, with_paths(values)))

    assert isinstance(error, WrongKind)
    assert error.path == parse_key(path)


def test_many_values_do_not_let_the_file_become_too_large() -> None:
    half = "x" * (MAX_TOML_BYTES // 2)

    error = failure_of(lambda: set_all("", with_paths({"a": half, "b": half})))

    assert isinstance(error, CannotEdit)
    assert error.path == ("b",)


def test_a_value_that_could_not_be_edited_again_is_refused_among_others() -> None:
    nested: TomlValue = 1
    for _ in range(120):
        nested = [nested]

    error = failure_of(lambda: set_all("a = 1\n", with_paths({"a": nested, "b": 1})))

    assert isinstance(error, CannotEdit)
    assert error.path == ("a",)


def test_an_edit_for_which_tomlkit_changes_something_else_is_not_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "# first\na = 1\nb = 2\n"

    def edit_that_loses_a_comment(
        text: str, change: Callable[[toml_edit.EditedTable], None]
    ) -> str | None:
        edited = toml_edit.edit(text, change)
        assert edited is not None
        return edited.replace("# first\n", "")

    monkeypatch.setattr(toml_edit_many, "edit", edit_that_loses_a_comment)

    new_text = set_all(text, with_paths({"a": 3, "b": 4}))

    assert new_text == "# first\na = 3\nb = 4\n"


def test_a_signal_can_end_the_change_of_many_keys() -> None:
    class Ended(Exception):
        """The error that a signal causes."""

    def check_signals() -> None:
        raise Ended

    error = failure_of(lambda: set_many("", with_paths({"a": 1, "b": 2}), check_signals))

    assert isinstance(error, Ended)
