"""Targets and checks that exist are offered behind TAB."""

from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool


@pytest.mark.parametrize(("command", "names"), [("build", "report\nraw\n"), ("test", "fits\n")])
def test_declared_names_are_offered(tool: Tool, workspace: Path, command: str, names: str) -> None:
    jobs = "".join(
        f'[{kind}]\nrun = ["true"]\noutputs = ["{kind}"]\n'
        for kind in ("target.report", "target.raw")
    )
    (workspace / "tool.toml").write_text(f'{jobs}[check.fits]\nrun = ["true"]\n')

    ran = tool(_TOOL_COMPLETE="complete_bash", COMP_WORDS=f"tool {command} ", COMP_CWORD="2")

    assert (ran.status, ran.stderr, sorted(ran.text.split())) == (0, b"", sorted(names.split()))
