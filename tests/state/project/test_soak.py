"""The page docs/state/soak.md is what tests/state/soak.py wrote after a run without violations."""

import re

from sampletool.kit.project import ROOT
from tests.state.soak import BACKENDS, MINUTES, Row, page

PAGE = ROOT / "docs" / "state" / "soak.md"


def rows_of(text: str) -> list[Row]:
    """Return the rows of the table on the page."""
    rows = []
    for line in text.splitlines():
        is_row = re.match(r"\| \w+ \| \d+ s \|", line)
        if is_row:
            rows.append(_row_of(line))
    return rows


def _row_of(line: str) -> Row:
    backend, *cells = [cell.strip() for cell in line.strip("|").split("|")]
    numbers = [int(cell.removesuffix(" s").replace(",", "")) for cell in cells]
    (
        seconds,
        rounds,
        calls,
        maybe,
        clients_killed,
        servers_killed,
        objects,
        unknown,
        claims,
        violations,
    ) = numbers
    return Row(
        backend=backend,
        seconds=seconds,
        rounds=rounds,
        calls=calls,
        maybe=maybe,
        clients_killed=clients_killed,
        servers_killed=servers_killed,
        objects=objects,
        unknown=unknown,
        claims=claims,
        violations=violations,
    )


def test_the_page_is_what_the_soak_writes_of_its_figures() -> None:
    text = PAGE.read_text()
    (processors,) = re.findall(r"on (\d+) processors", text)

    written = page(rows_of(text), int(processors))

    assert without_minutes(written) == without_minutes(text)


def without_minutes(text: str) -> str:
    """Return the page without its sum of seconds, because the table shows rounded seconds."""
    return re.sub(r"took [\d.]+ minutes", "", text)


def test_the_page_is_about_a_run_on_all_backends_without_violations() -> None:
    text = PAGE.read_text()

    rows = rows_of(text)

    assert [row.backend for row in rows] == list(BACKENDS)
    assert sum(row.violations for row in rows) == 0
    assert all(row.calls > 0 for row in rows)
    assert all(row.clients_killed > 0 for row in rows)


def test_the_page_says_how_long_the_run_took_and_how_long_a_whole_run_is() -> None:
    short_run = Row(backend="sqlite", seconds=90, rounds=12, calls=7000, clients_killed=72)

    text = page([short_run], 2)

    assert "This run took 1.5 minutes on 2 processors. It killed 72 clients" in text
    assert f"for {MINUTES:.0f} minutes" in text
    assert rows_of(text) == [short_run]
