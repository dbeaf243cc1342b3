"""sampletool/kit/contract/table.py: columns are aligned by display width, and cut if necessary."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from sampletool.kit.contract.table import Line, Painted, header_row, laid_out
from sampletool.kit.contract.text import BOLD, PLAIN, RED

_ROWS: list[Line] = [header_row("key", "value"), ("a", "1"), ("longer", "a value of some length")]

_JAPANESE = "\u65e5\u672c\u8a9e"
"""Three characters, each in two columns."""

_ACCENTED = "cafe\u0301"
"""Five characters in four columns: the last one is a combining accent."""

_THUMB = "\U0001f44d"
"""An emoji in two columns."""


def test_columns_are_as_wide_as_their_longest_cell() -> None:
    assert laid_out(_ROWS, None, colour=False) == [
        "KEY     VALUE",
        "a       1",
        "longer  a value of some length",
    ]


def test_a_table_that_fits_exactly_is_not_cut() -> None:
    assert laid_out(_ROWS, 30, colour=False)[2] == "longer  a value of some length"


def test_the_widest_column_is_cut_with_an_ellipsis() -> None:
    assert laid_out(_ROWS, 29, colour=False)[2] == "longer  a value of some leng…"
    assert laid_out(_ROWS, 20, colour=False)[2] == "longer  a value of …"


def test_no_column_is_cut_below_8_characters() -> None:
    rows: list[Line] = [("abcdefghijkl", "abcdefghijkl", "short")]

    assert laid_out(rows, 1, colour=False) == ["abcdefg…  abcdefg…  short"]


def test_equally_wide_columns_are_narrowed_in_turn() -> None:
    rows: list[Line] = [("abcdefghijkl", "abcdefghijkl")]

    assert laid_out(rows, 21, colour=False) == ["abcdefgh…  abcdefghi…"]


@pytest.mark.parametrize("wide", [_JAPANESE, _ACCENTED, _THUMB, f"{_THUMB}{_ACCENTED}x"])
def test_the_next_column_begins_in_the_same_place_after_wide_and_combining_characters(
    wide: str,
) -> None:
    rows: list[Line] = [(wide, "next"), ("a longer cell", "next")]

    lines = laid_out(rows, None, colour=False)

    starts = {wcswidth(line.partition("next")[0]) for line in lines}
    assert starts == {len("a longer cell  ")}


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        # Four characters would need eight columns, and the ellipsis needs one.
        (_JAPANESE * 3, "\u65e5\u672c\u8a9e… "),
        (_ACCENTED * 3, "cafe\u0301caf…"),
        ("abcdefe\u0301xyz", "abcdefe\u0301…"),
        (f"abcdef{_THUMB}xyz", "abcdef… "),
        (f"abcde{_THUMB}xyz", f"abcde{_THUMB}…"),
        ("abcdefghijkl", "abcdefg…"),
    ],
)
def test_a_cell_is_cut_between_whole_characters(cell: str, shown: str) -> None:
    """Half of a wide character cannot be shown, and an accent belongs to its letter."""
    rows: list[Line] = [(cell, "next")]

    assert laid_out(rows, 8 + len("  next"), colour=False) == [f"{shown}  next"]


def test_a_table_with_ascii_cells_does_not_import_wcwidth() -> None:
    program = """
import sys
from sampletool.kit.contract.table import laid_out
laid_out([("a", "x" * 100)], 40, colour=False)
sys.exit("wcwidth" in sys.modules)
"""

    # A fresh interpreter, because the tests have imported it.
    completed = subprocess.run([sys.executable, "-c", program], check=False)

    assert completed.returncode == 0


def test_colours_do_not_count_in_the_width() -> None:
    lines = laid_out(_ROWS, 80, colour=True)

    assert lines[0].startswith(f"{BOLD}KEY   {PLAIN}  {BOLD}VALUE")


def test_a_line_in_colour_is_not_cut() -> None:
    line = Painted("not a row of a table", RED)

    assert laid_out([line], 8, colour=True) == [f"{RED}not a row of a table{PLAIN}"]
    assert laid_out([line], 8, colour=False) == ["not a row of a table"]


def test_a_line_of_text_is_not_cut_and_ends_the_table_before_it() -> None:
    lines: list[Line] = [("a", "b"), "between them, which is long", ("wider", "b")]

    assert laid_out(lines, 12, colour=False) == ["a  b", "between them, which is long", "wider  b"]


def test_without_lines_there_is_no_output() -> None:
    assert laid_out([], 80, colour=False) == []


def test_rows_of_different_lengths_are_a_mistake_in_the_program() -> None:
    with pytest.raises(ValueError, match="zip"):
        laid_out([("a", "b"), ("c",)], None, colour=False)


def test_control_characters_are_escaped_in_cells_and_lines() -> None:
    lines: list[Line] = [("a\x1b[2J", "\n"), "b\rc"]

    assert laid_out(lines, None, colour=False) == [r"a\x1b[2J  \n", r"b\rc"]


@given(
    rows=st.lists(st.tuples(st.text(), st.text()), min_size=1),
    width=st.integers(20, 120),
)
def test_no_row_is_wider_than_the_terminal_or_moves_the_cursor(
    rows: list[Line],
    width: int,
) -> None:
    lines = laid_out(rows, width, colour=False)

    assert len(lines) == len(rows)
    for line in lines:
        assert line.isprintable()
        assert 0 <= wcswidth(line) <= width
