"""The pages show what really happens, and lead nowhere that is not there."""

import re
import sys
from pathlib import Path

import pytest

from tests.house.test_forks import copy_of_the_tree, run
from tests.support.console import Terminal, commands_of, matches
from tests.support.tool import Tool

_ROOT = Path(__file__).parents[2]
_PAGES = sorted([_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_every_console_block_prints_what_it_says(path: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)

    for command in commands_of(path.read_text()):
        actual = terminal.run(command.text)
        assert matches(command.expected, actual), f"{path.name}:{command.line}: $ {command.text}\nprinted:\n{actual}"


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_every_link_inside_the_project_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_every_file_that_is_named_exists(path: Path) -> None:
    for name in re.findall(r"`((?:sampletool|tests|docs)/[\w./-]+)`", path.read_text()):
        assert (_ROOT / name).exists(), f"{path.name} names {name}"


def test_a_wrong_block_is_noticed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    (command,) = commands_of("```console\n$ echo right\nwrong\n```\n")

    assert not matches(command.expected, terminal.run(command.text))
    assert matches("ri...", terminal.run(command.text))


def test_the_loop_for_agents_understands_the_answer_whatever_form_a_project_has_set(tmp_path: Path) -> None:
    (loop,) = re.findall(r"^```python\n(.*?)^```$", (_ROOT / "AGENTS.md").read_text(), re.M | re.S)
    (tmp_path / "loop.py").write_text(f"{loop}\nprint(answer['data']['changes'])\n")
    terminal = Terminal(tmp_path)
    terminal.run("echo '[settings]' > tool.toml && tool config set format text")

    assert "'created'" in terminal.run(f"{sys.executable} {tmp_path}/loop.py")


def test_the_command_of_the_architecture_page_works_as_it_stands_and_so_does_its_test(
    tool: Tool, tmp_path: Path
) -> None:
    code, test = re.findall(r"^```python\n(.*?)^```$", (_ROOT / "docs" / "architecture.md").read_text(), re.M | re.S)
    directory = copy_of_the_tree(tmp_path)
    hello = directory / "sampletool" / "commands" / "hello.py"
    hello.write_text(code)
    (directory / "tests" / "commands" / "test_hello.py").write_text(test)
    copy = Tool({**tool.environ, "PYTHONPATH": str(directory)}, tool.cwd)

    run(directory, "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests/commands/test_hello.py")
    assert "tool hello Ada" in copy("hello", "--help").text

    hello.write_text(code.replace("promise = ", "promised = "))
    assert copy("hello", "Ada").code == "COMMAND_INCOMPLETE"
    assert copy("config", "list").status == 0
