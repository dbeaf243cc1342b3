"""The how-to, and the loop for agents. The other pages are checked by a rule: rules/test_pages.py.

The commands of the how-to are about a part that does not exist. test_how_to.py builds this part.
"""

import re
import sys
from pathlib import Path

from sampletool.kit.program import KIT_DIRECTORY
from sampletool.kit.project import ROOT
from sampletool.kit.testing.console import Terminal, commands_of, matches
from sampletool.kit.testing.rules.test_pages import broken_links, lost_underscores

_HOW_TO = Path(KIT_DIRECTORY, "README.md")


def test_each_link_of_the_how_to_leads_to_a_file() -> None:
    assert list(broken_links(_HOW_TO)) == []


def test_the_how_to_has_no_name_with_underscores_as_bold_text() -> None:
    assert list(lost_underscores(_HOW_TO)) == []


def test_a_wrong_block_is_noticed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    (command,) = commands_of("```console\n$ echo right\nwrong\n```\n")

    assert not matches(command.expected, terminal.run(command.text))
    assert matches("ri...", terminal.run(command.text))


def test_dots_on_a_line_of_their_own_stand_for_any_lines() -> None:
    assert matches("one\n...\nfour\n", "one\ntwo\nthree\nfour\n")
    assert matches("one\n...\n", "one\n")
    assert not matches("one\n...\nfour\n", "one\ntwo\nthree\n")


def test_a_command_of_several_lines_is_one_command(tmp_path: Path) -> None:
    (command,) = commands_of("```console\n$ cat << END\n> one\n>\n> two\n> END\none\n\ntwo\n```\n")

    assert matches(command.expected, Terminal(tmp_path).run(command.text))


def test_the_loop_for_agents_reads_json_even_if_a_workspace_chooses_text(
    tmp_path: Path,
) -> None:
    (loop,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "AGENTS.md").read_text(), re.M | re.S)
    (tmp_path / "loop.py").write_text(f"{loop}\nprint(response['data']['changes'])\n")
    terminal = Terminal(tmp_path)
    terminal.run("echo '[settings]' > tool.toml && tool config set format text")

    assert "'created'" in terminal.run(f"{sys.executable} {tmp_path}/loop.py")
