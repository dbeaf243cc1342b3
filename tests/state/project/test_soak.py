"""The page docs/state/soak.md is what tests/state/soak.py wrote after a full run without losses."""

import re

from sampletool.kit.project import ROOT
from tests.state.soak import KILLS, SERVER_KILLS, Row, page

PAGE = ROOT / "docs" / "state" / "soak.md"


def rows_of(text: str) -> list[Row]:
    """Return the rows of the table on the page."""
    rows = []
    for line in text.splitlines():
        ends_with_number = re.search(r"\d \|$", line)
        if ends_with_number:
            rows.append(_row_of(line))
    return rows


def _row_of(line: str) -> Row:
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    # A dash stands for zero.
    numbers = [int(cell.replace("-", "0")) for cell in cells[1:]]
    kills, server_kills, acknowledged, found, lost, twice, seconds = numbers
    assert found == acknowledged - lost
    return Row(cells[0], kills, server_kills, acknowledged, lost, twice, seconds)


def test_the_page_is_what_the_soak_writes_of_its_numbers() -> None:
    text = PAGE.read_text()
    (processors,) = re.findall(r"on (\d+) processors", text)

    assert page(rows_of(text), int(processors)) == text


def test_the_page_tells_of_a_whole_run_that_lost_nothing() -> None:
    text = PAGE.read_text()

    rows = rows_of(text)

    assert sum(row.kills for row in rows) == KILLS
    assert sum(row.server_kills for row in rows) == SERVER_KILLS
    assert sum(row.lost + row.twice for row in rows) == 0
    assert "all of it" in text


def test_a_page_of_a_part_of_a_run_says_so() -> None:
    part_of_a_run = Row("sqlite", 4, 0, 17, 2, 1, 1.4)

    text = page([part_of_a_run], 2)

    full_run = f"`make soak` kills {KILLS:,} clients and {SERVER_KILLS} servers"
    assert f"a part of it: {full_run}" in text
    assert text.splitlines()[-1] == "| sqlite | 4 | - | 17 | 15 | 2 | 1 | 1 |"
