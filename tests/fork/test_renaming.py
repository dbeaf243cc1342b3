"""sampletool/fork/renaming.py: copied files get the names of the new project."""

import pytest

from sampletool.fork.renaming import Names, Renaming, command_words, rename_files

OLD = Names(package="old", command="prog", kit="old.kit")
NEW = Names(package="new", command="n-t", kit="new.kit")
COMMANDS = ("config", "lock")


def renamed(text: str, new: Names = NEW) -> str:
    return Renaming(OLD, new, COMMANDS).rename_content(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from old.kit.testing.tool import Tool", "from new.kit.testing.tool import Tool"),
        ("from ..kit.context import Context", "from ..kit.context import Context"),
        ('prog = "old.__main__:main"', 'n-t = "new.__main__:main"'),
        ('(workspace / "prog.toml"), `.prog/locks`', '(workspace / "n-t.toml"), `.n-t/locks`'),
        (".prog.toml.*.tmp <b>.prog</b> a.prog.toml", ".n-t.toml.*.tmp <b>.n-t</b> a.prog.toml"),
        ("PROG_JOBS=2 prog config get _PROG_COMPLETE", "N_T_JOBS=2 n-t config get _N_T_COMPLETE"),
        (
            "`prog --version`, `prog`, Usage: prog [OPTIONS]",
            "`n-t --version`, `n-t`, Usage: n-t [OPTIONS]",
        ),
        ('f"prog-{number}"', 'f"n-t-{number}"'),
    ],
)
def test_names_are_replaced(text: str, expected: str) -> None:
    assert renamed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[prog.ruff] a prog of your own; def x(prog: Prog)",
        "prog(*call); prog.cwd; ran = prog('config')",
        "PROGS_OF older MYPROG_X oldest_one",
        "my-prog --version",
    ],
)
def test_ordinary_words_are_not_replaced(text: str) -> None:
    assert renamed(text) == text


@pytest.mark.parametrize(
    ("package", "command"),
    [("new", "my-prog"), ("prog", "old"), ("old_prog", "prog")],
)
def test_a_new_name_can_contain_an_old_one(package: str, command: str) -> None:
    text = 'prog = "old.__main__:main"; "old"; `prog config get`; .prog/; "prog.toml"; PROG_JOBS'
    new = Names(package=package, command=command, kit=f"{package}.kit")

    assert renamed(text, new) == (
        f'{command} = "{package}.__main__:main"; "{package}"; `{command} config get`; '
        f'.{command}/; "{command}.toml"; {new.variable_prefix}JOBS'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from ..kit.context import Context", "from old.kit.context import Context"),
        ("from ....kit import program", "from old.kit import program"),
        ("    from .kit.start import main", "    from old.kit.start import main"),
        ("from old.kit.testing.tool import Tool", "from old.kit.testing.tool import Tool"),
        ("from old.state.errors import Missing", "from new.state.errors import Missing"),
        ("from ..kitchen import stove", "from ..kitchen import stove"),
        ("from ...stock import counts", "from ...stock import counts"),
    ],
)
def test_a_kit_outside_of_the_project_is_imported_from_its_package(
    text: str,
    expected: str,
) -> None:
    depending = Names(package="new", command="n-t", kit="old.kit")

    assert renamed(text, depending) == expected


def test_paths_are_renamed_and_files_that_are_not_text_keep_their_content() -> None:
    files = {
        "old/a/commands/lock.py": b"import old",
        ".prog/prog.toml": b"`prog`",
        "tests/a/prog.toml": b"",
        "old/picture.png": b"old \xff",
    }

    assert rename_files(files, Renaming(OLD, NEW, COMMANDS)) == {
        "new/a/commands/lock.py": b"import new",
        ".n-t/n-t.toml": b"`n-t`",
        "tests/a/n-t.toml": b"",
        "new/picture.png": b"old \xff",
    }


def test_files_and_folders_of_commands_are_words_that_follow_the_program() -> None:
    paths = ["old/a/commands/weigh_it.py", "old/b/commands/task/add.py", "old/a/commands/_x.py"]

    words = command_words(paths, "old")

    assert words == {"weigh_it", "task"}
    text = "prog weigh-it, prog task add, prog heavy"
    replaced = Renaming(OLD, NEW, words).rename_content(text.encode())
    assert replaced == b"n-t weigh-it, n-t task add, prog heavy"
