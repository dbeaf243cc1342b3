"""docs/state/soak.md: the page is the one that tests/state/soak.py writes, of a whole run without losses."""

import re

from tests.kit.trees import ROOT
from tests.state.soak import KILLS, SERVER_KILLS, Row, page

PAGE = ROOT / "docs" / "state" / "soak.md"


def rows_of(text: str) -> list[Row]:
    """Read back the rows of its table."""
    rows = []
    for line in text.splitlines():
        if not re.search(r"\d \|$", line):
            continue
        backend, *numbers = (cell.strip() for cell in line.strip("|").split("|"))
        kills, server_kills, acknowledged, found, lost, twice, seconds = (int(n.replace("-", "0")) for n in numbers)
        assert found == acknowledged - lost
        rows.append(Row(backend, kills, server_kills, acknowledged, lost, twice, seconds))
    return rows


def test_the_page_is_what_the_soak_writes_of_its_numbers() -> None:
    text = PAGE.read_text()
    (processors,) = re.findall(r"on (\d+) processors", text)

    assert page(rows_of(text), int(processors)) == text


def test_the_page_tells_of_a_whole_run_that_lost_nothing() -> None:
    rows = rows_of(PAGE.read_text())

    assert (sum(row.kills for row in rows), sum(row.server_kills for row in rows)) == (KILLS, SERVER_KILLS)
    assert [(row.backend, row.lost, row.twice) for row in rows if row.lost or row.twice] == []
    assert "all of it" in PAGE.read_text()


def test_a_page_of_a_part_of_a_run_says_so() -> None:
    text = page([Row("sqlite", 4, 0, 17, 2, 1, 1.4)], 2)

    assert f"a part of it: `make soak` kills {KILLS:,} clients and {SERVER_KILLS} servers" in text
    assert text.splitlines()[-1] == "| sqlite | 4 | - | 17 | 15 | 2 | 1 | 1 |"
