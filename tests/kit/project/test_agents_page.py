"""The table of known failure modes names tests that there are, and counts them right."""

import re

from tests.kit.trees import ROOT

_PAGE = ROOT / "docs" / "kit" / "agents.md"
_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_every_failure_mode_has_a_test_that_is_there_or_a_reason() -> None:
    page = _PAGE.read_text()
    rows = _ROW.findall(page)
    tests = {
        name
        for file in (ROOT / "tests" / "kit").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }
    named = [test.strip("`") for _, _, _, test in rows if test != "—"]

    assert [int(number) for number, *_ in rows] == [*range(1, 78)]
    assert [name for name in named if name not in tests] == []
    assert all((here.startswith("— ")) == (test == "—") for _, _, here, test in rows)
    assert f" {len(named)} have\none." in page
