"""Every file of the package is small enough to read, says what it promises, and has a name that says what it owns."""

from sampletool.kit.program import PACKAGE
from tests.kit.trees import ROOT

_PACKAGE = ROOT / PACKAGE
_LONGEST_FILE = 290


def test_no_file_holds_a_second_idea() -> None:
    long = {str(file.relative_to(_PACKAGE)): len(file.read_text().splitlines()) for file in _PACKAGE.rglob("*.py")}

    assert {name: lines for name, lines in long.items() if lines > _LONGEST_FILE} == {}


def test_there_is_no_drawer_for_everything() -> None:
    names = {file.stem for file in _PACKAGE.rglob("*.py")}

    assert not names & {"utils", "helpers", "common", "misc"}


def test_every_file_says_what_it_promises() -> None:
    silent = [file for file in _PACKAGE.rglob("*.py") if not file.read_text().startswith('"""')]

    assert silent == []
