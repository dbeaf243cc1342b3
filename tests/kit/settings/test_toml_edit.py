"""Changing one key leaves every other byte alone, or is refused by name."""

import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampletool.kit.settings import toml_edit
from sampletool.kit.settings.toml_edit import CannotEdit, set_value, unset_value
from sampletool.kit.settings.toml_key import Path, get, parse_key, show_key
from tests.kit.failing import failure_of

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


@pytest.fixture(autouse=True, scope="module", params=["short", "long"])
def _looked_at_as(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every text as a short one, line by line, and as a long one, whose plain lines are passed over."""
    usual, toml_edit._LONG = toml_edit._LONG, 0 if request.param == "long" else toml_edit._LONG
    yield
    toml_edit._LONG = usual


@st.composite
def _keys(draw: st.DrawFn) -> str:
    return show_key(tuple(draw(st.lists(_WORDS, min_size=1, max_size=2))))


@st.composite
def _values(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        return draw(_SCALARS)
    members = draw(st.lists(st.tuples(_keys(), _SCALARS.filter(lambda text: "\n" not in text)), max_size=3))
    return "{ " + ", ".join(f"{key} = {value}" for key, value in members) + " }"


@st.composite
def _lines(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["key", "key", "key", "header", "array", "comment", "blank"]))
    indent, comment = draw(_INDENTS), draw(_COMMENTS)
    if kind == "key":
        equals = draw(st.sampled_from([" = ", "=", "  =  "]))
        return f"{indent}{draw(_keys())}{equals}{draw(_values())}{comment}"
    if kind == "header":
        return f"{indent}[{draw(_keys())}]{comment}"
    if kind == "array":
        return f"{indent}[[{draw(_keys())}]]{comment}"
    return f"{indent}# a remark" if kind == "comment" else indent


@st.composite
def _documents(draw: st.DrawFn) -> str:
    """Any document that tomllib reads: lines that would make it invalid are left out one by one."""
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = ""
    for line in draw(st.lists(_lines(), max_size=10)):
        longer = text + line.replace("\n", newline) + newline
        try:
            tomllib.loads(longer)
        except tomllib.TOMLDecodeError:
            continue
        text = longer
    return text.removesuffix(newline) if draw(st.booleans()) else text


_NEW = "a value of the test"
_PATHS = st.lists(_WORDS, min_size=1, max_size=3).map(tuple)
_PROPERTY = settings(suppress_health_check=list(HealthCheck))


@_PROPERTY
@given(_documents(), _PATHS)
def test_a_set_key_reads_back_and_every_other_byte_stays(text: str, path: Path) -> None:
    try:
        after = set_value(text, path, _NEW)
    except CannotEdit as refusal:
        assert show_key(path) in str(refusal)
        return

    assert tomllib.loads(after) == with_value(tomllib.loads(text), path)
    if get(tomllib.loads(text), path) is not None:
        assert_only_the_value_changed(text, after)
    else:
        assert was_only_inserted(text, after)


@_PROPERTY
@given(_documents(), _PATHS)
def test_setting_again_and_unsetting_bring_the_document_back(text: str, path: Path) -> None:
    if get(tomllib.loads(text), path) is not None:
        return
    try:
        added = set_value(text, path, 1)
        removed = unset_value(set_value(added, path, 2), path)
    except CannotEdit:
        return

    assert _without_empty_tables(tomllib.loads(removed)) == _without_empty_tables(tomllib.loads(text))
    assert was_only_inserted(removed, added)


@_PROPERTY
@given(_documents())
def test_every_value_of_a_document_can_be_changed_or_is_refused_by_name(text: str) -> None:
    for path in _leaves(tomllib.loads(text)):
        try:
            after = set_value(text, path, _NEW)
        except CannotEdit as refusal:
            assert show_key(path) in str(refusal)
            continue
        assert tomllib.loads(after) == with_value(tomllib.loads(text), path)
        assert_only_the_value_changed(text, after)


@_PROPERTY
@given(_documents())
def test_every_value_of_a_document_can_be_taken_out_or_is_refused_by_name(text: str) -> None:
    for path in _leaves(tomllib.loads(text)):
        try:
            after = unset_value(text, path)
        except CannotEdit as refusal:
            assert show_key(path) in str(refusal)
            continue
        wanted = tomllib.loads(text)
        del get(wanted, path[:-1])[path[-1]]
        assert _without_empty_tables(tomllib.loads(after)) == _without_empty_tables(wanted)
        assert was_only_inserted(after, text)
        kept = Counter(after.splitlines()) - Counter(text.splitlines())
        assert kept.total() <= 1, "more than the line of the value is another one"


def with_value(document: dict[str, Any], path: Path) -> dict[str, Any]:
    table = changed = deepcopy(document)
    for part in path[:-1]:
        table = table.setdefault(part, {})
    table[path[-1]] = _NEW
    return changed


def without_blanks(*texts: str) -> list[str]:
    """Inside of braces blanks may change: tomlkit writes these."""
    return [text.replace(" ", "") if any("{" in each for each in texts) else text for text in texts]


def assert_only_the_value_changed(before: str, after: str) -> None:
    before, after, new = without_blanks(before, after, f'"{_NEW}"')
    prefix, _, suffix = after.partition(new)
    assert before.startswith(prefix)
    assert before[len(prefix) :].endswith(suffix)


def was_only_inserted(shorter: str, longer: str) -> bool:
    """Whether the longer text is the shorter one with one stretch more."""
    shorter, longer = without_blanks(shorter, longer)
    common = next((i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return longer.endswith(shorter[common:])


def _without_empty_tables(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    pruned = {key: _without_empty_tables(value) for key, value in document.items()}
    return {key: value for key, value in pruned.items() if value != {}}


def _leaves(document: dict[str, Any], above: Path = ()) -> list[Path]:
    found: list[Path] = []
    for key, value in document.items():
        found += _leaves(value, (*above, key)) if isinstance(value, dict) else [(*above, key)]
    return found


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("", "a", "a = 1\n"),
        ("", "a.b", "[a]\nb = 1\n"),
        ("x = 0", "a", "x = 0\na = 1"),
        ("[t]\nx = 0\n\n# about u\n[u]\ny = 0\n", "t.a", "[t]\nx = 0\na = 1\n\n# about u\n[u]\ny = 0\n"),
        ("# licence\n\n[t]\nx = 0\n", "a", "# licence\n\na = 1\n\n[t]\nx = 0\n"),
        ("[t]\n\n[u]\n", "t.a", "[t]\na = 1\n\n[u]\n"),
        ("[t]\n# about t\n\n# about u\n[u]\n", "t.a", "[t]\n# about t\na = 1\n\n# about u\n[u]\n"),
        ("[t]\n# about u\n[u]\n", "t.a", "[t]\na = 1\n# about u\n[u]\n"),
        ("[t]\n# about t\n", "t.a", "[t]\n# about t\na = 1\n"),
        ("t.x = 0 # why\n[u]\n", "t.a", "t.x = 0 # why\nt.a = 1\n[u]\n"),
        ("t = {x = 0}\n", "t.a", "t = {x = 0,a = 1}\n"),
        ("[t.u]\nx = 0\n", "t.a", "[t.u]\nx = 0\n\n[t]\na = 1\n"),
        ("x = [\n  1,\n]\ny = 2\n", "a", "x = [\n  1,\n]\ny = 2\na = 1\n"),
        ("  x = 0\r\n[t]\r\n", "a", "  x = 0\r\n  a = 1\r\n[t]\r\n"),
        ("a = 'old' # keep\n", "a", "a = 1 # keep\n"),
        ("a = [\n 1, # one\n [2],\n] # keep\n", "a", "a = 1 # keep\n"),
        ("a = '''\nb = 2\n[c]\n''' # keep\n", "a", "a = 1 # keep\n"),
        ("a = 1979-05-27 07:32:00 # keep\n", "a", "a = 1 # keep\n"),
        ("t = { x = [0, {y = 2}] } # keep\n", "t.a", "t = { x = [0, {y = 2}], a = 1} # keep\n"),
        ("t = {x.y = 0}\n", "t.x.a", "t = {x.y = 0, x.a = 1}\n"),
        ("t = {u = {a = 0}, b = 2}\n", "t.u.a", "t = {u = {a = 1}, b = 2}\n"),
        ("t = {}\n", "t.a", "t = {a = 1}\n"),
        ("x = '''\n[t]\na = 0\n'''\n[t]\na = 2\n", "t.a", "x = '''\n[t]\na = 0\n'''\n[t]\na = 1\n"),
        ("[t]\na = 0\n[u]\nx = '''\n[t]\na = 2'''\n", "t.a", "[t]\na = 1\n[u]\nx = '''\n[t]\na = 2'''\n"),
        ('[ "t" . u ] # [x]\n"a" = 0\n', "t.u.a", '[ "t" . u ] # [x]\n"a" = 1\n'),
        ("[[x]]\na = 0\n[t]\n[[x]]\na = 2\n", "t.a", "[[x]]\na = 0\n[t]\na = 1\n[[x]]\na = 2\n"),
    ],
)
def test_a_value_goes_where_a_person_would_write_it(before: str, key: str, after: str) -> None:
    changed = ""
    with suppress(CannotEdit):
        changed = set_value(before, parse_key(key), 1)

    assert changed == after


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("x = 0\na = 1 # gone too\ny = 2\n", "a", "x = 0\ny = 2\n"),
        ("t = {a = 1, x = 0}\n", "t.a", "t = { x = 0}\n"),
        ("t = {x = 0, a = 1}\n", "t.a", "t = {x = 0 }\n"),
        ("t = { x = 0, a = [1, 2], y = 3 } # keep\n", "t.a", "t = { x = 0,  y = 3 } # keep\n"),
        ("t = {a = 1}\n", "t.a", "t = {}\n"),
        ("t = {u = {a = 1, b = 2}}\n", "t.u.a", "t = {u = { b = 2}}\n"),
        ("a = [\n 1,\n]\nx = 0\n", "a", "x = 0\n"),
        ("[t]\na = 1\n", "t.a", "[t]\n"),
    ],
)
def test_an_unset_key_takes_its_line_with_it(before: str, key: str, after: str) -> None:
    assert unset_value(before, parse_key(key)) == after


@pytest.mark.parametrize("text", ["[[a]]\nx = 1\n", "a = 1\n", "a = [{x = 1}]\n", "a = {b.c = 1}\n"])
def test_a_way_that_leads_through_something_else_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit, match=r"a\.b"):
        set_value(text, ("a", "b"), 1)


@pytest.mark.parametrize("text", ["a = {b = {c = 1}}\n", "[a]\nb = {c = 1}\n", "a.b = {c = 1}\n"])
def test_a_table_in_braces_gives_way_to_another_but_to_no_value(text: str) -> None:
    with pytest.raises(CannotEdit, match=r"a\.b is a table"):
        set_value(text, ("a", "b"), 1)

    assert set_value(text, ("a", "b"), {"d": 2}) == text.replace("c = 1", "d = 2")
    assert set_value(text.replace("c = 1", ""), ("a", "b"), 1) == text.replace("{c = 1}", "1")


def test_a_key_of_an_array_of_tables_cannot_be_unset() -> None:
    error = failure_of(lambda: unset_value("[[a]]\nb = 1\n", ("a", "b")))

    assert isinstance(error, CannotEdit)
    assert "a.b" in str(error)


@pytest.mark.parametrize("key", ["a b", "a..b", "", "a=b", 'a"', "a\nb", "[a]", "a # b", ".a"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="not"):
        parse_key(key)


def test_odd_parts_of_a_key_are_quoted() -> None:
    assert parse_key(show_key(("a", "x.y", "with space"))) == ("a", "x.y", "with space")


def calls_for_one_change(keys: int, change: str) -> Counter[str]:
    """How often each function was called; comparing the documents looks at every value and does not count."""
    text = f"[settings] # {change}\n" + "".join(
        f"a_{n} = \"value {n}\" # {n}\nb_{n} = [{n}, 'x']\n" for n in range(keys)
    )
    calls: Counter[str] = Counter()

    def profile(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(("toml_edit.py", "tomllib/_parser.py")):
            calls[frame.f_code.co_name] += 1

    sys.setprofile(profile)
    try:
        set_value(text, ("settings", f"{change}_1"), keys)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.skipif(sys.version_info < (3, 11, 5), reason="there each line is looked at, see _HAS_RIGHT_RE")
@pytest.mark.parametrize("change", ["a", "b", "new"])
def test_a_large_file_is_parsed_twice_and_only_the_edited_lines_are_looked_at_one_by_one(change: str) -> None:
    few, many = calls_for_one_change(500, change), calls_for_one_change(1000, change)

    assert few["loads"] == many["loads"] == 2
    ours = ("_survey", "_on_the_way", "_end_of_value", "_line_of", "_insertions")
    assert {*ours} <= vars(toml_edit).keys()
    assert {name: many[name] for name in ours} == {name: few[name] for name in ours}


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
    text = set_value("x = 1  # kept\n", ("y",), value)

    assert tomllib.loads(text) == {"x": 1, "y": value}
    assert text.startswith("x = 1  # kept\n")
    in_braces = set_value("x = {y.z = 1}\n", ("x", "y", "a"), value)
    assert tomllib.loads(in_braces) == {"x": {"y": {"z": 1, "a": value}}}
