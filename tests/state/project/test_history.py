"""The page docs/state/history.md lists the promises and the removed checks that there are."""

import re
from collections import defaultdict

from sampletool.kit.project import ROOT
from tests.state.history.linearizable import MOST_PLACES
from tests.state.history.tasks import CHECKERS, TOLERANCE_NS
from tests.state.project.removed_checks import read_removed_checks
from tests.state.project.test_removed_checks import MOST_ROUNDS

PAGE = ROOT / "docs" / "state" / "history.md"


def rows_of(text: str, columns: int) -> list[list[str]]:
    """Return the rows of all tables on the page that have this number of columns."""
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        is_head = set(line) <= set("| -")
        if line.startswith("|") and len(cells) == columns and not is_head:
            rows.append(cells)
    return rows


def test_the_page_lists_every_check_that_the_tests_remove() -> None:
    backends_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for check in read_removed_checks():
        backends_of[check.name, check.refused_by] += check.backends

    listed = {}
    _head, *rows = rows_of(PAGE.read_text(), columns=3)
    for name, backends, promise in rows:
        listed[name, promise.strip("`")] = backends.split(", ")

    assert listed == backends_of


def test_the_page_lists_every_promise_about_tasks() -> None:
    names = [checker.__name__ for checker in CHECKERS]

    _head, *rows = rows_of(PAGE.read_text(), columns=2)

    promises = [name.strip("`") for name, _ in rows]
    assert [f"check_{promise.replace('-', '_')}" for promise in promises] == names


def test_the_page_names_the_bounds_of_the_code() -> None:
    text = PAGE.read_text()

    assert f"After {MOST_PLACES:,} steps" in text
    assert f"shorter than {TOLERANCE_NS // 1_000_000} ms" in text
    assert re.search(rf"at most {MOST_ROUNDS} times", text)
