"""Each block of the library page is a program of its own that prints what the page says."""

import re
from pathlib import Path

import pytest

from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.tool import Tool
from tests.kit.trees import ROOT

_BLOCK = re.compile(r"^## (.*?)\n.*?^```python\n(.*?)^```\n\n```output\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BLOCKS = _BLOCK.findall((ROOT / "docs" / "kit" / "library.md").read_text())


@pytest.mark.parametrize(("title", "program", "output"), _BLOCKS, ids=[title for title, *_ in _BLOCKS])
def test_a_block_prints_what_stands_below_it(title: str, program: str, output: str, tool: Tool, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(program)

    ran = run_python(script, cwd=tool.cwd, env=tool.environ, check=False)

    assert (ran.stdout, ran.stderr) == (output, ""), title


def test_every_block_was_found() -> None:
    assert len(_BLOCKS) == (ROOT / "docs" / "kit" / "library.md").read_text().count("```python") == 5
