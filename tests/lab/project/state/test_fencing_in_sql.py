"""The general form of fencing on the pages: the statement rejects a late worker."""

import re
import sqlite3

import pytest

from docs.lab.generate import LABS

_PAGES = ("learn/state/6-paused-not-dead.md", "state/zombie-worker.md")


@pytest.mark.parametrize("page", _PAGES)
@pytest.mark.parametrize(("newest_fence", "updated_rows"), [(0, 1), (1, 1), (2, 0)])
def test_the_statement_updates_no_row_after_a_later_claim(
    page: str, newest_fence: int, updated_rows: int
) -> None:
    (statement,) = re.findall(r"```sql\n(UPDATE .*?)```", (LABS / page).read_text(), re.DOTALL)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE results (job TEXT, value TEXT, fence INTEGER)")
    database.execute("INSERT INTO results VALUES ('ann', 'of another worker', ?)", (newest_fence,))

    assert database.execute(statement).rowcount == updated_rows
