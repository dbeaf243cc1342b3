"""A change of one key leaves every other byte as it is, or it is refused."""

import sysconfig
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampletool.kit.safety.toml_limits import MAX_TOML_BYTES
from sampletool.kit.settings.toml_edit import CannotEdit, WrongKind, set_value, unset_value
from sampletool.kit.settings.toml_key import KeyPath, parse_key, show_key, value_at
from sampletool.kit.testing.failing import failure_of, outcome_of

_WORDS = st.sampled_from(["a", "b", "c", "key-1", "x.y", "ü", "with space", ""])
_SCALARS = st.sampled_from(
    [
        "1",
        "0x1F",
        "true",
        "1.5",
        '"text"',
        "'lit # eral'",
        '"""multi\nline = 1\n[no]"""',
        "1979-05-27",
        "[1, 2]",
        "[\n  1, # one\n  2,\n]",
    ]
)
_COMMENTS = st.sampled_from(["", "  # why", "\t# = [x]"])
_INDENTS = st.sampled_from(["", "", "  ", "\t"])
paths = st.lists(_WORDS, min_size=1, max_size=3).map(tuple)
_NEW = "a value of the test"
_ANY_DOCUMENT = settings(suppress_health_check=list(HealthCheck))


@st.composite
def _keys(draw: st.DrawFn) -> str:
    return show_key(tuple(draw(st.lists(_WORDS, min_size=1, max_size=2))))


@st.composite
def _values(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        return draw(_SCALARS)
    on_one_line = _SCALARS.filter(lambda text: "\n" not in text)
    members = draw(st.lists(st.tuples(_keys(), on_one_line), max_size=3))
    return "{ " + ", ".join(f"{key} = {value}" for key, value in members) + " }"


@st.composite
def _lines(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["key", "key", "key", "header", "array", "comment", "blank"]))
    indent = draw(_INDENTS)
    comment = draw(_COMMENTS)
    if kind == "key":
        equals = draw(st.sampled_from([" = ", "=", "  =  "]))
        return f"{indent}{draw(_keys())}{equals}{draw(_values())}{comment}"
    if kind == "header":
        return f"{indent}[{draw(_keys())}]{comment}"
    if kind == "array":
        return f"{indent}[[{draw(_keys())}]]{comment}"
    if kind == "comment":
        return f"{indent}# a remark"
    return indent


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw any document that tomllib reads. Lines that would make it invalid are left out."""
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = ""
    for line in draw(st.lists(_lines(), max_size=10)):
        longer = text + line.replace("\n", newline) + newline
        try:
            tomllib.loads(longer)
        except tomllib.TOMLDecodeError:
            continue
        text = longer
    if draw(st.booleans()):
        return text.removesuffix(newline)
    return text


@_ANY_DOCUMENT
@given(documents(), paths)
def test_a_new_value_is_the_only_thing_that_changes(text: str, path: KeyPath) -> None:
    old_document = tomllib.loads(text)

    try:
        new_text = set_value(text, path, _NEW)
    except CannotEdit as refusal:
        assert refusal.path == path
        assert show_key(path) in str(refusal)
        return

    assert tomllib.loads(new_text) == with_new_value(old_document, path)
    if value_at(old_document, path) is None:
        assert was_only_added(text, new_text)
    else:
        assert_only_the_value_changed(text, new_text)


@_ANY_DOCUMENT
@given(documents())
def test_every_value_of_a_document_can_be_changed_or_is_refused(text: str) -> None:
    for path in leaves(tomllib.loads(text)):
        try:
            new_text = set_value(text, path, _NEW)
        except CannotEdit as refusal:
            assert show_key(path) in str(refusal)
            continue

        assert tomllib.loads(new_text) == with_new_value(tomllib.loads(text), path)
        assert_only_the_value_changed(text, new_text)


@_ANY_DOCUMENT
@given(documents())
def test_every_value_of_a_document_can_be_removed_or_is_refused(text: str) -> None:
    for path in leaves(tomllib.loads(text)):
        try:
            new_text = unset_value(text, path)
        except CannotEdit as refusal:
            assert show_key(path) in str(refusal)
            continue

        expected = tomllib.loads(text)
        del value_at(expected, path[:-1])[path[-1]]
        assert without_empty_tables(tomllib.loads(new_text)) == without_empty_tables(expected)
        assert was_only_added(new_text, text)
        assert new_text.count("# a remark") == text.count("# a remark")
        added_lines = Counter(new_text.splitlines()) - Counter(text.splitlines())
        assert added_lines.total() <= 1, "more than the line of the value has changed"


@_ANY_DOCUMENT
@given(documents(), paths)
def test_adding_and_removing_a_key_brings_the_document_back(text: str, path: KeyPath) -> None:
    if value_at(tomllib.loads(text), path) is not None:
        return

    try:
        with_key = set_value(text, path, 1)
        without_key = unset_value(set_value(with_key, path, 2), path)
    except CannotEdit:
        return

    expected = without_empty_tables(tomllib.loads(text))
    assert without_empty_tables(tomllib.loads(without_key)) == expected
    assert was_only_added(without_key, with_key)


def with_new_value(document: dict[str, Any], path: KeyPath) -> dict[str, Any]:
    changed = deepcopy(document)
    table = changed
    for part in path[:-1]:
        table = table.setdefault(part, {})
    table[path[-1]] = _NEW
    return changed


def without_blanks(*texts: str) -> list[str]:
    """Return the texts without blanks if one has braces, in which tomlkit may change blanks."""
    if any("{" in text for text in texts):
        return [text.replace(" ", "") for text in texts]
    return list(texts)


def assert_only_the_value_changed(before: str, after: str) -> None:
    before, after, new = without_blanks(before, after, f'"{_NEW}"')
    prefix, _, suffix = after.partition(new)
    assert before.startswith(prefix)
    assert before[len(prefix) :].endswith(suffix)


def was_only_added(shorter: str, longer: str) -> bool:
    """Return whether the longer text is the shorter one with one stretch more."""
    shorter, longer = without_blanks(shorter, longer)
    common = 0
    while common < len(shorter) and shorter[common] == longer[common]:
        common += 1
    return longer.endswith(shorter[common:])


def without_empty_tables(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    pruned = {}
    for key, value in document.items():
        member = without_empty_tables(value)
        if member != {}:
            pruned[key] = member
    return pruned


def leaves(document: dict[str, Any], above: KeyPath = ()) -> list[KeyPath]:
    found: list[KeyPath] = []
    for key, value in document.items():
        if isinstance(value, dict):
            found += leaves(value, (*above, key))
        else:
            found.append((*above, key))
    return found


def tables(document: dict[str, Any], above: KeyPath = ()) -> Iterator[KeyPath]:
    yield above
    for key, value in document.items():
        if isinstance(value, dict):
            yield from tables(value, (*above, key))


NEW_KEYS = {
    "in an empty file": ("", "a", "a = 1\n"),
    "in a new table": ("", "a.b", "[a]\nb = 1\n"),
    "in a new table of a new table": ("x = 0\n", "a.b.c", "x = 0\n\n[a.b]\nc = 1\n"),
    "after a last line without an end": ("x = 0", "a", "x = 0\na = 1\n"),
    "after the last key": ("x = [\n  1,\n]\ny = 2\n", "a", "x = [\n  1,\n]\ny = 2\na = 1\n"),
    "above the comment of the next table": (
        "[t]\nx = 0\n\n# about u\n[u]\ny = 0\n",
        "t.a",
        "[t]\nx = 0\na = 1\n\n# about u\n[u]\ny = 0\n",
    ),
    "above the comment of the next table, with other line ends": (
        "[t]\r\nx = 0\r\n\r\n# about u\r\n[u]\r\n",
        "t.a",
        "[t]\r\nx = 0\r\na = 1\r\n\r\n# about u\r\n[u]\r\n",
    ),
    "below the comment of its table": (
        "[t]\n# about t\n\n# about u\n[u]\n",
        "t.a",
        "[t]\n# about t\na = 1\n\n# about u\n[u]\n",
    ),
    "below its header": ("[t]\n# about u\n[u]\n", "t.a", "[t]\na = 1\n# about u\n[u]\n"),
    "above the first table": ("# about t\n[t]\n", "a", "a = 1\n\n# about t\n[t]\n"),
    "above the first table, after other keys": (
        "x = 0\n\n# about t\n[t]\n",
        "a",
        "x = 0\na = 1\n\n# about t\n[t]\n",
    ),
    "above a blank line": ("[t]\n\n[u]\n", "t.a", "[t]\na = 1\n\n[u]\n"),
    "below a last comment": ("[t]\n# about t\n", "t.a", "[t]\n# about t\na = 1\n"),
    "as a dotted key next to dotted keys": (
        "t.x = 0 # why\n[u]\n",
        "t.a",
        "t.x = 0 # why\nt.a = 1\n[u]\n",
    ),
    "as a dotted key in a table": ("[t]\nx = 0\n[u]\n", "t.b.a", "[t]\nx = 0\nb.a = 1\n[u]\n"),
    "in a table in parts": (
        "[t]\nx = 0\n[u]\n[t.v]\ny = 0\n",
        "t.b.a",
        "[t]\nx = 0\n\n[t.b]\na = 1\n[u]\n[t.v]\ny = 0\n",
    ),
    "in a table without a header": ("[t.u]\nx = 0\n", "t.a", "[t]\na = 1\n\n[t.u]\nx = 0\n"),
    "in braces": ("t = {x = 0}\n", "t.a", "t = {x = 0,a = 1}\n"),
    "in empty braces": ("t = {}\n", "t.a", "t = {a = 1}\n"),
    "in braces with a dotted key": ("t = {x.y = 0}\n", "t.x.a", "t = {x.y = 0, x.a = 1}\n"),
    "in new braces in braces": ("t = {x = 0}\n", "t.u.a", "t = {x = 0,u = {a = 1}}\n"),
    "in braces with blanks and a comment": (
        "t = { x = [0, {y = 2}] } # keep\n",
        "t.a",
        "t = { x = [0, {y = 2}], a = 1} # keep\n",
    ),
    "after a dotted key in a last line that does not end": (
        "a.b.c = 1",
        "x",
        "a.b.c = 1\nx = 1\n",
    ),
    "after a dotted key that does not end, with other line ends": (
        "x = 0\r\na.b.c = 1",
        "y",
        "x = 0\r\na.b.c = 1\r\ny = 1\r\n",
    ),
    "where lines end with carriage returns": (
        "  x = 0\r\n[t]\r\n",
        "a",
        "  x = 0\r\na = 1\r\n\r\n[t]\r\n",
    ),
}

NEW_VALUES = {
    "with a comment": ("a = 'old' # keep\n", "a", "a = 1 # keep\n"),
    "of several lines": ("a = [\n 1, # one\n [2],\n] # keep\n", "a", "a = 1 # keep\n"),
    "of a text of several lines": ("a = '''\nb = 2\n[c]\n''' # keep\n", "a", "a = 1 # keep\n"),
    "of a date": ("a = 1979-05-27 07:32:00 # keep\n", "a", "a = 1 # keep\n"),
    "of another type": ("a = 1.0\nb = 2", "a", "a = 1\nb = 2"),
    "in braces": ("t = {u = {a = 0}, b = 2}\n", "t.u.a", "t = {u = {a = 1}, b = 2}\n"),
    "below a text that looks like its table": (
        "x = '''\n[t]\na = 0\n'''\n[t]\na = 2\n",
        "t.a",
        "x = '''\n[t]\na = 0\n'''\n[t]\na = 1\n",
    ),
    "above a text that looks like its table": (
        "[t]\na = 0\n[u]\nx = '''\n[t]\na = 2'''\n",
        "t.a",
        "[t]\na = 1\n[u]\nx = '''\n[t]\na = 2'''\n",
    ),
    "with quoted names": ('[ "t" . u ] # [x]\n"a" = 0\n', "t.u.a", '[ "t" . u ] # [x]\n"a" = 1\n'),
    "with trailing blanks": ("x = 0  \n a=0  \r\n\t\n", "a", "x = 0  \n a=1  \r\n\t\n"),
}


@pytest.mark.parametrize(("before", "key", "after"), NEW_KEYS.values(), ids=NEW_KEYS)
def test_a_new_key_goes_where_a_person_would_write_it(before: str, key: str, after: str) -> None:
    edited = outcome_of(lambda: set_value(before, parse_key(key), 1))

    assert edited == after


@pytest.mark.parametrize(("before", "key", "after"), NEW_VALUES.values(), ids=NEW_VALUES)
def test_a_new_value_is_written_over_the_old_one(before: str, key: str, after: str) -> None:
    edited = outcome_of(lambda: set_value(before, parse_key(key), 1))

    assert edited == after


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("x = 0\na = 1 # removed too\ny = 2\n", "a", "x = 0\ny = 2\n"),
        ("x = 0\na = 1 # removed too", "a", "x = 0\n"),
        ("# one\na = 1\n# two\nb = 2\n", "a", "# one\n# two\nb = 2\n"),
        ("a1 = 1\na2 = 2\n", "a1", "a2 = 2\n"),
        ("a = [\n 1, # one\n] # end\nx = 0\n", "a", "x = 0\n"),
        ("a = '''\n# no comment\n'''\nx = 0\n", "a", "x = 0\n"),
        ("t.a = 1\nx = 0\n", "t.a", "x = 0\n"),
        ("[t]\na = 1\n", "t.a", "[t]\n"),
        ("t = {a = 1}\n", "t", ""),
        ("t = {a = 1} # stays\n", "t.a", "t = {} # stays\n"),
        ("t = {a = 1, x = 0}\n", "t.a", "t = { x = 0}\n"),
        ("t = {x = 0, a = 1}\n", "t.a", "t = {x = 0 }\n"),
        ("t = { x = 0, a = [1], y = 3 } # stays\n", "t.a", "t = { x = 0,  y = 3 } # stays\n"),
        ("t = {u = {a = 1, b = 2}}\n", "t.u.a", "t = {u = { b = 2}}\n"),
    ],
)
def test_a_removed_key_takes_only_its_own_line_with_it(before: str, key: str, after: str) -> None:
    edited = outcome_of(lambda: unset_value(before, parse_key(key)))

    assert edited == after


@pytest.mark.parametrize("text", ["[[a]]\nx = 1\n", "a = 1\n", "a = [{x = 1}]\n"])
def test_a_key_below_a_value_is_refused(text: str) -> None:
    error = failure_of(lambda: set_value(text, ("a", "b"), 1))

    assert isinstance(error, WrongKind)
    assert (error.path, error.obstacle) == (("a", "b"), ("a",))
    assert error.found == tomllib.loads(text)["a"]
    assert str(error) == "a.b cannot be changed: a is not a table"


@pytest.mark.parametrize("value", [1, {"c": 1}], ids=["value", "table"])
@pytest.mark.parametrize("text", ["a.b.c = 1\n", "[a.b]\nc = 1\n", "[[a.b]]\nc = 1\n", "[a.b]\n"])
def test_a_table_that_is_not_in_braces_is_not_replaced(text: str, value: object) -> None:
    if value == 1 or "[[" in text:
        value = [value]

    error = failure_of(lambda: set_value(text, ("a", "b"), value))

    assert isinstance(error, WrongKind)
    assert error.obstacle == error.path == ("a", "b")
    assert error.found == tomllib.loads(text)["a"]["b"]
    assert str(error) == "a.b cannot be changed: a.b is a table, not a value"


@pytest.mark.parametrize("text", ["a = {b = {c = 1}}\n", "[a]\nb = {c = 1}\n", "a.b = {c = 1}\n"])
def test_a_table_in_braces_can_be_replaced_by_another_but_not_by_a_value(text: str) -> None:
    with pytest.raises(WrongKind, match=r"a\.b is a table"):
        set_value(text, ("a", "b"), 1)

    assert set_value(text, ("a", "b"), {"d": 2}) == text.replace("c = 1", "d = 2")
    assert set_value(text.replace("c = 1", ""), ("a", "b"), 1) == text.replace("{c = 1}", "1")


@pytest.mark.parametrize("text", ["[a]\nx = 1\n", "[[a]]\nx = 1\n", "a.x = 1\n"])
def test_a_table_that_is_not_in_braces_is_not_removed(text: str) -> None:
    with pytest.raises(WrongKind, match="a is a table, not a value"):
        unset_value(text, ("a",))


@pytest.mark.parametrize("text", ["[[a]]\nb = 1\n", "x = 1\n", ""])
def test_a_key_that_is_not_set_cannot_be_removed(text: str) -> None:
    error = failure_of(lambda: unset_value(text, ("a", "b")))

    assert isinstance(error, CannotEdit)
    assert (error.path, error.reason) == (("a", "b"), "it is not set, or it is in a list of tables")


def test_an_edit_for_which_tomlkit_moves_a_table_is_refused() -> None:
    text = "[[x]]\na = 0\n[t]\n[[x]]\na = 2\n"

    error = failure_of(lambda: set_value(text, ("t", "a"), 1))

    assert isinstance(error, CannotEdit)
    assert error.reason == "the edit would change other parts of the file"


def test_an_edit_for_which_tomlkit_writes_another_text_is_refused() -> None:
    """tomlkit 0.15 loses the blank after a date in braces."""
    text = "t = {a = 1, d = 1979-05-27 }\n"

    with pytest.raises(CannotEdit, match="other parts"):
        set_value(text, ("t", "a"), 2)
    with pytest.raises(CannotEdit, match="other parts"):
        unset_value(text, ("t", "a"))


def test_a_key_is_not_removed_if_tomlkit_removes_its_header_and_comments_too() -> None:
    """tomlkit 0.15 drops the first part of a table that continues later in the file."""
    text = "[t] # why\n# about t\na = 1\n[u]\nx = 0\n[t.v]\ny = 0\n"

    error = failure_of(lambda: unset_value(text, ("t", "a")))

    assert isinstance(error, CannotEdit)
    assert error.reason == "the edit would change other parts of the file"


def test_a_text_that_is_not_toml_is_not_edited() -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        set_value("a = ", ("b",), 1)
    with pytest.raises(tomllib.TOMLDecodeError):
        unset_value("a = ", ("a",))


def test_a_file_does_not_grow_beyond_the_size_that_can_be_read() -> None:
    largest = "x" * (MAX_TOML_BYTES - len('a = ""\n'))

    text = set_value("", ("a",), largest)

    assert len(text) == MAX_TOML_BYTES
    for path in (("a",), ("b",)):
        with pytest.raises(CannotEdit, match="would become larger than 256 KiB"):
            set_value('a = "old"\n', path, largest + "ü")


@pytest.mark.parametrize(
    ("line", "most"),
    [("a.k{} = 1\n", 1000), ("a.b.k{} = 1\n", 353), ("[a.k{}]\n", 2000), ("[[k{}]]\n", None)],
)
def test_a_file_that_tomlkit_parses_too_slowly_is_not_edited(line: str, most: int | None) -> None:
    def edit(count: int) -> str:
        text = "".join(line.format(number) for number in range(count))
        return set_value(text, ("z",), 1)

    if most is None:
        assert "z = 1\n" in edit(3000)
        return

    assert "z = 1\n" in edit(most)
    with pytest.raises(CannotEdit, match="too many keys with dots"):
        edit(most + 1)


def test_dots_in_values_and_comments_do_not_make_a_file_expensive() -> None:
    text = "x = [\n" + "  1.5, # a.b.c.d\n" * 2000 + ']\ny = "' + "a." * 2000 + '"\n'

    assert set_value(text, ("z",), 1) == f"{text}z = 1\n"


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": {"c": [1, 2, "x"]}},
        {},
        [],
        [[]],
        [{}],
        [{"a": 1}, {"b": 2}],
        {"a b": {"x": [{}]}},
        1.5,
        True,
        "a\x1b\n",
    ],
    ids=str,
)
def test_a_value_of_any_shape_is_read_back_as_it_was_set(value: object) -> None:
    text = outcome_of(lambda: set_value("x = 1  # kept\n", ("y",), value))
    in_braces = outcome_of(lambda: set_value("x = {y.z = 1}\n", ("x", "y", "a"), value))

    assert isinstance(text, str), text
    assert isinstance(in_braces, str), in_braces
    assert tomllib.loads(text) == {"x": 1, "y": value}
    assert text.startswith("x = 1  # kept\n")
    assert tomllib.loads(in_braces) == {"x": {"y": {"z": 1, "a": value}}}


def test_values_that_python_takes_for_equal_are_told_apart() -> None:
    with_boolean = outcome_of(lambda: set_value("a = 1\nb = nan\n", ("a",), True))
    with_float = outcome_of(lambda: set_value("a = true\n", ("a",), 1.0))

    assert with_boolean == "a = true\nb = nan\n"
    assert with_float == "a = 1.0\n"


def _person_written_files() -> list[Path]:
    return sorted(Path(sysconfig.get_path("purelib")).rglob("*.toml"))


@dataclass
class Outcomes:
    """The result of the edits of many files."""

    edits: int = 0
    refused: list[str] = field(default_factory=list)

    def count(self, file: Path, edit: Callable[[], str], expected: dict[str, Any]) -> None:
        self.edits += 1
        try:
            new_text = edit()
        except CannotEdit as refusal:
            self.refused.append(f"{file.name}: {refusal}")
            return
        # repr() tells 1 from 1.0, which are equal.
        new_document = tomllib.loads(new_text)
        assert new_document == expected, file
        assert sorted(repr(new_document)) == sorted(repr(expected)), file


def edit_in_three_ways(file: Path, outcomes: Outcomes) -> None:
    """Change a value, remove it, and add a key to each table."""
    text = file.read_bytes().decode()
    document = tomllib.loads(text)
    values = [path for path in leaves(document) if not isinstance(value_at(document, path), list)]
    if values:
        path = values[len(values) // 2]
        outcomes.count(file, partial(set_value, text, path, _NEW), with_new_value(document, path))
        expected = deepcopy(document)
        del value_at(expected, path[:-1])[path[-1]]
        outcomes.count(file, partial(unset_value, text, path), expected)
    for table in list(tables(document))[:20]:
        path = (*table, "new-key")
        outcomes.count(file, partial(set_value, text, path, _NEW), with_new_value(document, path))


def test_values_and_tables_of_files_that_people_wrote_are_edited_as_requested() -> None:
    files = sorted(Path(sysconfig.get_path("purelib")).rglob("*.toml"))
    # The environments of `make matrix` have few packages.
    if len(files) < 20:
        pytest.skip(f"this environment has only {len(files)} TOML files")
    outcomes = Outcomes()

    for file in files:
        edit_in_three_ways(file, outcomes)

    assert len(files) >= 150
    assert outcomes.edits >= 500
    assert len(outcomes.refused) <= outcomes.edits // 100, outcomes.refused


def test_the_longest_key_that_can_be_set_can_be_removed_again() -> None:
    text = set_value("[t]\nx = 1\n", ("t", *["a"] * 49), 1)

    assert unset_value(text, ("t", *["a"] * 49)) == "[t]\nx = 1\n"
    with pytest.raises(CannotEdit, match="has more than 50 parts"):
        set_value(text, ("t", *["b"] * 50), 1)


def test_a_value_is_not_set_if_the_file_could_not_be_edited_again() -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return value

    text = set_value("", ("a",), nested(90))

    assert unset_value(text, ("a",)) == ""
    with pytest.raises(CannotEdit, match="the value is nested too deep"):
        set_value("", ("a",), nested(120))
