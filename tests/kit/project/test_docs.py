"""The pages show what really happens, and lead nowhere that is not there."""

import re
import sys
from pathlib import Path

import pytest

from docs.kit.generate import index, made
from sampletool.kit.program import PACKAGE
from sampletool.kit.testing.console import Terminal, commands_of, matches

_ROOT = Path(__file__).parents[3]
_NAMED = r"`((?:sampletool|tests|docs)/[\w./-]+)`"
_FILE = re.compile(r"^\*\*([\w.]+)\*\*\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A program with its name above it: the commands of the page expect it in their directory."""
_PAGES = sorted([_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")])
_KIT_README = _ROOT / PACKAGE / "kit" / "README.md"
"""Its code and its commands are about a part that does not exist. test_how_to.py builds this part."""


_SHOWING = [path for path in _PAGES if "```console" in path.read_text()]


@pytest.mark.parametrize("path", _SHOWING, ids=lambda path: str(path.relative_to(_ROOT)))
def test_every_console_block_prints_what_it_says(path: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    for name, content in _FILE.findall(path.read_text()):
        terminal.run(f"cat > {name} << 'END'\n{content}END")

    for command in commands_of(path.read_text()):
        actual = terminal.run(command.text)
        assert matches(command.expected, actual), (
            f"{path.name}:{command.line}: $ {command.text}\nprinted:\n{actual}"
        )


def test_every_link_inside_the_project_leads_somewhere() -> None:
    broken = []
    for path in (*_PAGES, _KIT_README):
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text()):
            if not (path.parent / link).exists():
                broken.append(f"{path}: {link}")

    assert broken == []


def test_no_name_with_underscores_is_shown_as_bold_text() -> None:
    """A reader sees `**a/__init__.py**` as a/init.py. File names must be in backticks."""
    markdown_it = pytest.importorskip(
        "markdown_it", reason="markdown-it-py is missing: make .venv/.testable"
    )
    lost = []
    for path in (*_PAGES, _KIT_README):
        for block in markdown_it.MarkdownIt("commonmark").parse(path.read_text()):
            for part in block.children or ():
                if part.type in ("strong_open", "em_open") and part.markup.startswith("_"):
                    lost.append(f"{path}, line {block.map[0] + 1}: {block.content[:60]}")

    assert lost == [], "write these names in backticks"


def test_every_file_that_is_named_exists() -> None:
    named = [(path, name) for path in _PAGES for name in re.findall(_NAMED, path.read_text())]

    assert [f"{path}: {name}" for path, name in named if not (_ROOT / name).exists()] == []


def test_the_list_of_all_pages_is_current() -> None:
    assert (_ROOT / "docs" / "index.md").read_text() == index()


def test_what_is_made_from_the_code_is_current() -> None:
    stale = [
        str(path.relative_to(_ROOT))
        for path, content in made().items()
        if path.read_text() != content
    ]

    assert stale == [], "run make pages"


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


def test_the_loop_for_agents_understands_the_answer_whatever_form_a_project_has_set(
    tmp_path: Path,
) -> None:
    (loop,) = re.findall(r"^```python\n(.*?)^```$", (_ROOT / "AGENTS.md").read_text(), re.M | re.S)
    (tmp_path / "loop.py").write_text(f"{loop}\nprint(response['data']['changes'])\n")
    terminal = Terminal(tmp_path)
    terminal.run("echo '[settings]' > tool.toml && tool config set format text")

    assert "'created'" in terminal.run(f"{sys.executable} {tmp_path}/loop.py")
