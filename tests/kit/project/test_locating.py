"""A mechanism is found by its function and its syntax, wherever it is and however it is formatted."""

from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from tests.kit.mutants.guarantees import Mechanism
from tests.kit.mutants.source import PatternError

_CODE = """
LIMIT = 3


class Lock:
    LIMIT = 4

    def take(self, path):
        if (self.is_free(path,
                         3)  # first
                and self.mine):
            self.count += 1
            path.write("a")
            path.flush()

    def leave(self, path):
        with path:
            path.write("a")
            path.close()

    def show(self):
        def inner(name):
            return name.upper()
        return inner(f"{self.mine + 1}")
"""


def mechanism(function: str, pattern: str, instead: str, file: str = "small.py") -> Mechanism:
    return Mechanism(
        f"{file}:{function}", pattern, instead, "m", "g", ("tests/test_small.py::test_any",)
    )


def without(tree: Path, entry: Mechanism, text: str = _CODE) -> str:
    (tree / PACKAGE).mkdir(exist_ok=True)
    (tree / PACKAGE / entry.file).write_text(text)
    return entry.mutant(tree).content


@pytest.mark.parametrize(
    ("function", "pattern", "instead", "old", "new"),
    [
        ("", "LIMIT = 3", "LIMIT = 5", "\nLIMIT = 3\n", "\nLIMIT = 5\n"),
        ("Lock", "LIMIT = 4", "LIMIT = 5", "    LIMIT = 4\n", "    LIMIT = 5\n"),
        ("Lock.take", "path.flush()", "", "path.flush()", "pass"),
        (
            "Lock.take",
            'path.write( "a" )\npath.flush()',
            "path.flush()",
            'path.write("a")\n            ',
            "",
        ),
        ("Lock.show", "name.upper()", "name", "name.upper()", "name"),
        ("Lock.leave", "with path:\n    ...", "if True:\n    ...", "with path:", "if True:"),
    ],
)
def test_a_pattern_is_replaced_and_all_other_text_stays(
    function: str, pattern: str, instead: str, old: str, new: str, tmp_path: Path
) -> None:
    assert _CODE.count(old) == 1 or function == "Lock.take"

    changed = without(tmp_path, mechanism(function, pattern, instead))

    if "..." in pattern:  # statements inside are written anew
        assert changed == _CODE.replace(old, new).replace(
            'path.write("a")\n            path.close', "path.write('a')\n            path.close"
        )
    else:
        assert changed == _CODE.replace(old, new, 1)


def test_line_breaks_and_comments_of_the_code_do_not_matter(tmp_path: Path) -> None:
    entry = mechanism("Lock.take", "self.is_free(path, 3) and self.mine", "self.mine")

    assert "if (self.mine):" in without(tmp_path, entry)


@pytest.mark.parametrize(
    ("function", "pattern", "reason"),
    [
        ("Lock.take", "path.close()", "the pattern is in Lock.take 0 times"),
        ("Lock", 'path.write("a")', "the pattern is in Lock 2 times"),
        ("Lock.gone", "path.close()", "there is no Lock.gone"),
        ("Lock.show", "self.mine + 1", "the pattern is in Lock.show 0 times"),
        ("Lock.take", "path.close(", "not Python"),
    ],
)
def test_a_pattern_has_to_match_exactly_once(
    function: str, pattern: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(PatternError, match=reason):
        without(tmp_path, mechanism(function, pattern, "pass"))


def test_a_missing_file_or_test_is_a_fault(tmp_path: Path) -> None:
    entry = mechanism("", "LIMIT = 3", "LIMIT = 4")
    missing_file = entry.fault(tmp_path)
    without(tmp_path, entry)
    missing_test = entry.fault(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_small.py").write_text("def test_any():\n    pass\n")

    assert missing_file == "there is no small.py"
    assert missing_test == "there is no test tests/test_small.py::test_any"
    assert entry.fault(tmp_path) == ""


_SCRIPT = """
local function held(id)
  if task.a ~= id then
    lost(task)
  end
end

function verbs.run(id)
  lost(task)
end
"""


def test_in_a_script_that_is_not_python_white_space_does_not_matter(tmp_path: Path) -> None:
    entry = mechanism("held", "if task.a ~= id then lost(task) end", "", file="small.lua")

    assert "if task.a" not in without(tmp_path, entry, _SCRIPT)
    with pytest.raises(PatternError, match="2 times"):
        without(tmp_path, mechanism("", "lost(task)", "", file="small.lua"), _SCRIPT)
    assert (
        without(
            tmp_path, mechanism("verbs.run", "lost(task)", "", file="small.lua"), _SCRIPT
        ).count("lost")
        == 1
    )
