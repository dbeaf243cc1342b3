"""sampletool/kit/testing/console.py: the commands of a page are found, run and compared."""

import os
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PROGRAM, __version__
from sampletool.kit.project import ROOT
from sampletool.kit.testing.console import Command, Terminal, commands_of, matches, on_terminal

_PAGE = """# Title

Text with `$ no command`.

```console
$ one
first
second
$ two
```

```python
$ no command either
```

```console
A line before the first prompt.
$ cat <<END
> a
>   b
> END
a
> not a continuation
```
"""


def test_the_commands_of_a_page_have_their_lines_and_outputs() -> None:
    assert list(commands_of(_PAGE)) == [
        Command(line=6, text="one", expected="first\nsecond\n"),
        Command(line=9, text="two", expected=""),
        Command(
            line=18,
            text="cat <<END\na\n  b\nEND",
            expected="a\n> not a continuation\n",
        ),
    ]


def test_a_page_without_console_blocks_has_no_commands() -> None:
    assert list(commands_of("# Title\n\n$ one\n")) == []


@pytest.mark.parametrize(
    ("expected", "actual", "is_match"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a", True),
        ("a", "a\n\n", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
        ("pid ... runs\n", "pid 77 runs\n", True),
        ("pid ... runs\n", "pid 7\n7 runs\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("a\n...\nd\n", "a\nb\n", False),
        ("a\n...\n", "a\n", True),
        ("...\nd\n", "a\nb\nd\n", True),
        ("...\nd\n", "d\n", True),
        ("...\nd\n", "a\nb\n", False),
        ("... of 2\n", "a\n1 of 2\n", False),
        ("a\n... of 2\n", "a\nb\n1 of 2\n", False),
        ("", "", True),
        ("", "a\n", False),
    ],
)
def test_three_dots_stand_for_any_text_or_any_lines(
    expected: str,
    actual: str,
    is_match: bool,
) -> None:
    assert matches(expected, actual) is is_match


def test_a_command_sees_a_terminal_and_its_own_directory(tmp_path: Path) -> None:
    code = "import os; print(os.isatty(1), os.isatty(0), os.getcwd(), os.environ['X'])"

    output = on_terminal([sys.executable, "-c", code], tmp_path, {**os.environ, "X": "y"})

    assert output == f"True False {tmp_path} y\n"


@pytest.mark.parametrize(("stderr_too", "expected"), [(True, "shown\n"), (False, "")])
def test_stderr_is_shown_only_on_request(tmp_path: Path, stderr_too: bool, expected: str) -> None:
    code = "import sys; sys.stderr.write('shown\\n')"

    output = on_terminal([sys.executable, "-c", code], tmp_path, os.environ, stderr_too=stderr_too)

    assert output == expected


def test_all_of_a_long_output_is_read(tmp_path: Path) -> None:
    output = on_terminal([sys.executable, "-c", "print('x' * 300_000)"], tmp_path, os.environ)

    assert len(output) == 300_001


def test_the_commands_of_a_page_run_at_home_as_a_reader_would_run_them(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)

    assert terminal.run("pwd") == "~/work\n"
    assert terminal.run("mkdir inner; cd inner; pwd") == "~/work/inner\n"
    assert terminal.run("pwd; echo wrong >&2") == "~/work/inner\nwrong\n"
    assert terminal.run("cd; pwd; ls -A") == "~\n"
    assert terminal.run(f"{PROGRAM} --version") == f"{PROGRAM} {__version__}\n"


def test_the_environment_of_a_page_is_the_same_everywhere(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)

    shown = terminal.run('echo "$TERM $LC_ALL $COLUMNS $TMPDIR $TOOL_CEILING_DIRECTORIES"')

    assert shown == f"dumb C.UTF-8 100 ~ {tmp_path}\n"
    # The tool of this tree, even if another one is installed.
    assert terminal.run('echo "$PYTHONPATH"') == f"{ROOT}\n"
    assert terminal.run("false") == ""
    assert not os.path.exists(tmp_path / "terminal" / "home" / "work")
