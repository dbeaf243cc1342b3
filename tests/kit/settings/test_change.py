"""Several keys of a settings file are changed together, or the file stays as it was."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.errors import InvalidValues, VersionConflict
from sampletool.kit.contract.file_errors import EditRefused
from sampletool.kit.contract.response import Effect
from sampletool.kit.safety.errors import DeadlineExceeded, InvalidToml
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.signals import Signals
from sampletool.kit.safety.toml_file import TomlEdit, editing_toml, read_toml
from sampletool.kit.settings.change import Change, Changed, set_key, set_keys, set_values
from sampletool.kit.settings.precedence import Scope
from sampletool.kit.testing.failing import failure_of, outcome_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.toml"


@pytest.fixture
def scope(path: Path) -> Scope:
    """Return the scope of a user's file. A workspace's file has its settings in a table."""
    return Scope("user", path)


@pytest.fixture
def file(path: Path) -> Iterator[TomlEdit]:
    path.write_text("a = 1\nb = 'two'\nt = {x = 1, y = {z = 2}}\n")
    with editing_toml(path) as edit:
        yield edit


def changed_by(
    file: TomlEdit,
    scope: Scope,
    values: Mapping[tuple[str, ...], object],
    if_version: str | None = None,
) -> Changed:
    """Return the result of a change that must not fail."""
    outcome = outcome_of(lambda: set_values(file, scope, values, if_version))
    assert isinstance(outcome, Changed), outcome
    return outcome


@pytest.mark.parametrize(
    ("value", "effect"),
    [
        (1, "unchanged"),
        (2, "updated"),
        (1.0, "updated"),
        (True, "updated"),
        ("1", "updated"),
        (None, "deleted"),
    ],
)
def test_the_effect_tells_whether_the_value_has_changed(
    file: TomlEdit, scope: Scope, value: object, effect: Effect
) -> None:
    changed = changed_by(file, scope, {("a",): value})

    assert changed.changes == [Change("a", effect)]
    assert changed.effect == effect
    after = tomllib.loads(scope.path.read_text())
    assert after.get("a") == value
    assert type(after.get("a")) is type(value)


@pytest.mark.parametrize(
    ("values", "effects", "effect"),
    [
        ({"a": 1, "b": "two"}, ["unchanged", "unchanged"], "unchanged"),
        ({"a": 1, "b": "three"}, ["unchanged", "updated"], "updated"),
        ({"a": 1, "c": 3}, ["unchanged", "created"], "created"),
        ({"c": 3, "d": 4}, ["created", "created"], "created"),
        ({"a": None, "c": None}, ["deleted", "unchanged"], "deleted"),
        ({"a": None, "c": 3}, ["deleted", "created"], "updated"),
        ({"a": 2, "c": 3}, ["updated", "created"], "updated"),
        ({}, [], "unchanged"),
    ],
)
def test_the_effect_of_several_keys_is_the_one_that_the_changed_ones_share(
    file: TomlEdit, scope: Scope, values: dict[str, Any], effects: list[str], effect: str
) -> None:
    changed = changed_by(file, scope, {(name,): value for name, value in values.items()})

    assert [change.effect for change in changed.changes] == effects
    assert changed.effect == effect


def test_the_result_names_the_file_and_its_new_version(file: TomlEdit, scope: Scope) -> None:
    changed = changed_by(file, scope, {("c", "d"): 3})

    assert (changed.scope, changed.path) == ("user", str(scope.path))
    assert changed.version == read_toml(scope.path).version
    assert changed.version != file.before.version


def test_the_result_has_a_line_for_each_key() -> None:
    changed = Changed(
        effect="updated",
        changes=[Change("a", "created"), Change("b.c", "deleted")],
        scope="project",
        path="/work/tool.toml",
        version="1",
    )

    lines = changed.lines()

    assert lines == [
        "a: created (project settings, /work/tool.toml)",
        "b.c: deleted (project settings, /work/tool.toml)",
    ]


def test_keys_are_changed_in_the_table_of_the_scope(path: Path) -> None:
    path.write_text("[settings]\na = 1\n")
    scope = Scope("project", path, table=("settings",))

    with editing_toml(path) as file:
        changed = changed_by(file, scope, {("a",): 2, ("b", "c"): 3})

    assert [change.key for change in changed.changes] == ["a", "b.c"]
    assert tomllib.loads(path.read_text()) == {"settings": {"a": 2, "b": {"c": 3}}}


def test_a_version_that_is_not_that_of_the_file_is_a_conflict(file: TomlEdit, scope: Scope) -> None:
    old_text = scope.path.read_text()

    error = failure_of(lambda: set_values(file, scope, {("a",): 2}, if_version="0123"))

    assert isinstance(error, VersionConflict)
    assert error.context == {
        "path": str(scope.path),
        "expected": "0123",
        "actual": file.before.version,
    }
    assert scope.path.read_text() == old_text


def test_the_version_of_the_file_is_no_conflict(file: TomlEdit, scope: Scope) -> None:
    changed = changed_by(file, scope, {("a",): 2}, if_version=file.before.version)

    assert changed.effect == "updated"


@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        (
            ("t",),
            1,
            "t cannot be changed: t is a table, not a value",
            "Remove these keys first: t.x, t.y.z.",
        ),
        (
            ("t",),
            None,
            "t cannot be changed: t is a table, not a value",
            "Remove these keys first: t.x, t.y.z.",
        ),
        (
            ("t", "y"),
            1,
            "t.y cannot be changed: t.y is a table, not a value",
            "Remove this key first: t.y.z.",
        ),
        (
            ("a", "b", "c"),
            1,
            "a.b.c cannot be changed: a is not a table",
            "Remove this key first: a.",
        ),
    ],
)
@pytest.mark.parametrize("table", [(), ("settings",)], ids=["user", "project"])
def test_a_key_in_the_way_is_named_as_the_user_writes_it(
    path: Path, table: tuple[str, ...], key: tuple[str, ...], value: object, message: str, hint: str
) -> None:
    old_text = "a = 1\nt = {x = 1, y = {z = 2}}\n"
    if table:
        old_text = f"[settings]\n{old_text}"
    path.write_text(old_text)
    scope = Scope("project", path, table)

    with editing_toml(path) as file:
        error = failure_of(lambda: set_values(file, scope, {("new",): 1, key: value}))

    assert isinstance(error, InvalidValues)
    (mistake,) = error.mistakes
    assert (mistake.param, mistake.code) == ("KEY", "INVALID_VALUE")
    assert mistake.value == ".".join(key)
    assert (mistake.message, mistake.suggestion) == (message, hint)
    assert path.read_text() == old_text


@pytest.mark.parametrize("value", [1, None])
@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ("[settings.a]", "Remove the empty table [settings.a] in a text editor."),
        ("[settings.a.b.c]", "Remove the empty table [settings.a.b.c] in a text editor."),
        (
            "[settings.a.b]\n[settings.a.'c d']",
            'Remove the empty tables [settings.a.b], [settings.a."c d"] in a text editor.',
        ),
    ],
)
def test_a_header_in_the_way_is_named_as_it_is_in_the_file(
    path: Path, headers: str, hint: str, value: object
) -> None:
    path.write_text(f"{headers}\n")
    scope = Scope("project", path, table=("settings",))

    with editing_toml(path) as file:
        error = failure_of(lambda: set_values(file, scope, {("a",): value}))

    assert isinstance(error, InvalidValues)
    (mistake,) = error.mistakes
    assert mistake.message == "a cannot be changed: a is a table, not a value"
    assert mistake.suggestion == hint


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({("a",): 1, ("a", "b"): 2}, "a.b and a contradict each other"),
        ({("a", "b"): 2, ("a",): 1}, "a and a.b contradict each other"),
        ({("a",): 1, ("c",): 3, ("a", "b", "c"): 2}, "a.b.c and a contradict each other"),
    ],
)
def test_keys_of_one_change_that_contradict_each_other_are_named(
    path: Path, scope: Scope, values: dict[tuple[str, ...], object], message: str
) -> None:
    path.write_text("x = 1\n")

    with editing_toml(path) as file:
        error = failure_of(lambda: set_values(file, scope, values))

    assert isinstance(error, InvalidValues)
    (mistake,) = error.mistakes
    assert (mistake.message, mistake.suggestion) == (message, "Set only one of them.")
    assert path.read_text() == "x = 1\n"


def test_a_key_below_a_table_that_is_set_in_the_same_change_is_no_contradiction(
    file: TomlEdit, scope: Scope
) -> None:
    changed_by(file, scope, {("n",): {"x": 1}, ("n", "y"): 2})

    assert tomllib.loads(scope.path.read_text())["n"] == {"x": 1, "y": 2}


@pytest.mark.parametrize("table", [(), ("settings",)], ids=["user", "project"])
def test_an_edit_that_is_refused_changes_none_of_the_keys(
    path: Path,
    table: tuple[str, ...],
) -> None:
    old_text = "a = 1\n"
    if table:
        old_text = f"[settings]\n{old_text}"
    path.write_text(old_text)
    scope = Scope("project", path, table)
    too_large = "x" * 256 * 1024

    with editing_toml(path) as file:
        error = failure_of(lambda: set_values(file, scope, {("a",): 2, ("b", "c"): too_large}))

    assert isinstance(error, EditRefused)
    assert error.context.get("key") == "b.c"
    reason = "the file would become larger than 256 KiB"
    assert error.message == f"Cannot change b.c in {path}: {reason}. Nothing was changed."
    assert error.suggestion == "Use a shorter value, or remove other keys first."
    assert path.read_text() == old_text


def test_settings_that_are_no_table_are_not_changed(path: Path) -> None:
    path.write_text("settings = 1\n")
    scope = Scope("project", path, table=("settings",))

    with editing_toml(path) as file:
        error = failure_of(lambda: set_values(file, scope, {("a",): 1}))

    assert isinstance(error, InvalidToml)
    assert error.reason == "settings is not a table"


def test_the_deadline_is_looked_at_before_each_key(path: Path, scope: Scope) -> None:
    path.write_text("a = 1\n")
    now = [0.0]
    signals = Signals(clock=lambda: now[0])
    signals.limit(5)

    def make_lock(lock_path: Path, name: str) -> Lock:
        return Lock(lock_path, name, signals=signals)

    with editing_toml(path, make_lock=make_lock) as file:
        now[0] = 5.0
        # No value changes, so the file would not be written.
        error = failure_of(lambda: set_values(file, scope, {("a",): 1}))

    assert isinstance(error, DeadlineExceeded)


def test_in_a_dry_run_the_effects_are_returned_and_nothing_is_written(
    path: Path,
    scope: Scope,
) -> None:
    path.write_text("a = 1\n")
    file = TomlEdit(read_toml(path))

    changed = changed_by(file, scope, {("a",): 2})

    assert changed.effect == "updated"
    assert changed.version == file.before.version
    assert path.read_text() == "a = 1\n"


def test_one_key_of_another_file_is_set_without_writing_it(path: Path) -> None:
    path.write_text("screw = 1  # counted\n")

    with editing_toml(path) as file:
        set_key(file, ("screw",), 2)
        text_before_the_write = path.read_text()
        file.write()

    assert text_before_the_write == "screw = 1  # counted\n"
    assert path.read_text() == "screw = 2  # counted\n"


def test_a_key_of_another_file_that_cannot_be_set_is_reported(path: Path) -> None:
    path.write_text("#" * (256 * 1024 - 1) + "\n")

    with editing_toml(path) as file:
        error = failure_of(lambda: set_key(file, ("wing nut",), 2))
        text = file.text

    assert isinstance(error, EditRefused)
    reason = "the file would become larger than 256 KiB"
    assert error.message == f'Cannot change "wing nut" in {path}: {reason}. Nothing was changed.'
    assert error.suggestion == "Use a shorter value, or remove other keys first."
    assert text == path.read_text()


def test_several_keys_of_another_file_are_set_together(path: Path) -> None:
    path.write_text("screw = 1  # counted\n")

    with editing_toml(path) as file:
        set_keys(file, {("screw",): 2, ("bolt",): 5})
        file.write()

    assert path.read_text() == "screw = 2  # counted\nbolt = 5\n"


def test_if_one_of_several_keys_cannot_be_set_none_is_set(path: Path) -> None:
    path.write_text("[nut]\nsize = 1\n")

    with editing_toml(path) as file:
        error = failure_of(lambda: set_keys(file, {("screw",): 2, ("nut",): 5}))
        text = file.text

    assert isinstance(error, EditRefused)
    assert "Cannot change nut" in error.message
    assert text == path.read_text()
