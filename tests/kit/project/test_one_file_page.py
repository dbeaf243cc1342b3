"""The page "Write a safe command in one file" shows the program that its tests run."""

import re

from sampletool.kit.project import ROOT

_PAGE = ROOT / "docs" / "kit" / "one-file.md"
_PROGRAM = ROOT / "docs" / "kit" / "one_file" / "stock.py"


def test_the_page_shows_the_program_that_is_tested() -> None:
    shown = re.findall(r"^```python\n(.*?)^```$", _PAGE.read_text(), re.MULTILINE | re.DOTALL)

    assert shown == [_PROGRAM.read_text()], f"copy {_PROGRAM.name} into {_PAGE.name}"
