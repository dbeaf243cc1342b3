"""Rows are aligned, and cut only where the terminal is too narrow."""

from hypothesis import given
from hypothesis import strategies as st

from sampletool.kit.contract.table import Line, Painted, heads, laid_out
from sampletool.kit.contract.text import BOLD, PLAIN, RED

_ROWS: list[Line] = [heads("key", "value"), ("a", "1"), ("longer", "a value of some length")]


def test_columns_are_aligned_and_as_wide_as_their_longest_cell() -> None:
    assert laid_out(_ROWS, None, colour=False) == ["KEY     VALUE", "a       1", "longer  a value of some length"]


def test_what_does_not_fit_is_cut_in_the_widest_column_and_says_so() -> None:
    assert laid_out(_ROWS, 20, colour=False)[2] == "longer  a value of …"
    assert laid_out(_ROWS, 30, colour=False)[2] == "longer  a value of some length"


def test_colour_does_not_count_into_the_width() -> None:
    assert laid_out(_ROWS, 80, colour=True)[0].startswith(f"{BOLD}KEY   {PLAIN}  {BOLD}VALUE")


def test_a_line_that_is_painted_has_its_colour_and_is_not_cut() -> None:
    line = Painted("no row of a table", RED)

    assert laid_out([line], 8, colour=True) == [f"{RED}no row of a table{PLAIN}"]
    assert laid_out([line], 8, colour=False) == ["no row of a table"]


def test_text_between_rows_stays_as_it_is_and_begins_a_new_table() -> None:
    lines: list[Line] = [("a", "b"), "between them, which is long", ("wider", "b")]

    assert laid_out(lines, 12, colour=False) == ["a  b", "between them, which is long", "wider  b"]


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1), st.integers(20, 120))
def test_no_row_is_wider_than_the_terminal_or_moves_the_cursor(rows: list[Line], width: int) -> None:
    shown = laid_out(rows, width, colour=False)

    assert len(shown) == len(rows)
    assert all(len(line) <= width and (line.isprintable() or not line) for line in shown)
