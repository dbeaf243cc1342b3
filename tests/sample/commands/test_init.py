"""tool init"""

import os
import pwd
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from sampletool.kit.context import Context
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Tool
from sampletool.sample.commands import build, init, test
from sampletool.sample.new_directory import refuse_wide_directory


def test_the_examples_of_build_and_test_work_in_a_new_workspace(tool: Tool) -> None:
    """This starts Python 7 times, because targets and checks of the workspace are scripts."""
    init_demo, *examples = (
        call for command in (init, build, test) for call in command.spec.examples
    )

    ran = tool(*shlex.split(init_demo), "--format", "text")

    assert "read TRY.md" in ran.text
    assert tomllib.loads((tool.cwd / "demo" / "tool.toml").read_text())["target"]
    demo = Tool(tool.environ, tool.cwd / "demo")
    assert {call: demo(*shlex.split(call)).status for call in examples} == dict.fromkeys(
        examples, 0
    )


def test_every_command_in_the_guide_of_the_workspace_works(tool: Tool) -> None:
    tool("init", "demo")
    demo = Tool(tool.environ, tool.cwd / "demo")
    guide = (tool.cwd / "demo" / "TRY.md").read_text()

    commands = re.findall(r"`tool ([^`]+)`", guide)
    results = {command: demo(*shlex.split(command)).status for command in commands}

    assert len(commands) >= 7
    assert "<!--" not in guide
    assert set(results.values()) == {0}, results


def test_it_never_overwrites_and_says_what_is_in_the_way(tool: Tool) -> None:
    (tool.cwd / "tool.toml").write_text("mine")

    ran = tool("init")

    assert (ran.status, ran.code) == (6, "OUTPUT_EXISTS")
    assert "tool.toml" in ran.error["message"]
    assert os.listdir(tool.cwd) == ["tool.toml"]
    assert (tool.cwd / "tool.toml").read_text() == "mine"


@pytest.mark.parametrize("place", ["demo/data", "demo"])
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_something_in_the_place_of_a_directory_is_reported_and_nothing_is_created(
    tool: Tool, place: str, kind: str
) -> None:
    path = tool.cwd / place
    path.parent.mkdir(exist_ok=True)
    path.touch() if kind == "file" else path.symlink_to("nowhere")

    ran = tool("init", "demo")

    assert (ran.status, ran.code) == (6, "OUTPUT_EXISTS")
    assert "is in the way" in ran.error["message"]
    assert len(list(tool.cwd.rglob("*"))) == len(path.relative_to(tool.cwd).parts)


@pytest.mark.parametrize("name", ["", "-x", "a\nb"])
def test_a_text_that_is_no_directory_name_is_refused(tool: Tool, name: str) -> None:
    assert tool("init", "--", name).code == "UNSAFE_PATH"
    assert os.listdir(tool.cwd) == []


def test_concurrent_commands_create_one_workspace(tool: Tool) -> None:
    results = tool.together([["init", "demo"]] * scale(2, 20))

    assert {ran.status for ran in results} == {0}
    assert not [path for path in tool.cwd.rglob("*") if path.name.endswith(".tmp")]
    assert Tool(tool.environ, tool.cwd / "demo")("build", "--dry-run").status == 0


def test_only_one_command_creates_a_workspace_at_a_time(tool: Tool) -> None:
    with tool.stepped("init", "demo", watch=tool.cwd / "demo") as first:
        first.run_until("os.link")
        second = tool("init", "demo", "--lock-timeout", "0")
        made = first.finish()

    assert second.code == "LOCK_HELD"
    assert made.status == 0


def test_a_dry_run_of_init_creates_nothing(tool: Tool) -> None:
    ran = tool("init", "demo", "--dry-run")

    assert "tool.toml" in ran.data["files"]
    assert os.listdir(tool.cwd) == []


@pytest.mark.parametrize(
    "name",
    [
        "file/x",
        "file/x/y",
        "x" * 300,
        f"missing/{'x' * 300}",
        "loop/x",
        "/dev/null/x",
        "/".join(["y" * 200] * 25),
    ],
)
def test_a_dry_run_fails_as_the_command_would(tool: Tool, name: str) -> None:
    (tool.cwd / "file").touch()
    (tool.cwd / "loop").symlink_to("loop")

    predicted = tool("init", name, "--dry-run")
    assert not (tool.cwd / "missing").exists()
    ran = tool("init", name)

    assert (predicted.status, predicted.code) == (ran.status, ran.code)
    assert predicted.status != 0
    assert predicted.error["message"] == ran.error["message"]


@pytest.mark.parametrize("name", [".", "missing/below"])
def test_a_dry_run_fails_if_the_nearest_directory_is_not_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    directory = tmp_path / name
    # For root, every directory is writable.
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)

    with pytest.raises(PermissionError) as denied:
        init.create_workspace(Context(Signals()), directory, dry_run=True)

    assert denied.value.filename == str(tmp_path)


def test_a_second_init_changes_nothing(tool: Tool) -> None:
    tool("init")
    before = {path: path.stat().st_mtime_ns for path in tool.cwd.rglob("*") if path.is_file()}

    assert tool("init").data["effect"] == "unchanged"

    assert {
        path: path.stat().st_mtime_ns for path in tool.cwd.rglob("*") if path.is_file()
    } == before


def test_init_that_was_killed_anywhere_can_be_run_again(tool: Tool) -> None:
    place, kills = 0, 0
    while True:
        directory = tool.cwd / f"demo-{place}"
        with tool.stepped("init", directory, watch=directory) as stepped:
            steps = 0
            while stepped.next_event is not None and steps < place:
                stepped.step()
                steps += 1
            has_ended = stepped.next_event is None

        ran = tool("init", directory)

        assert ran.data["effect"] in ("created", "unchanged")
        assert not [path for path in directory.rglob("*") if path.name.endswith(".tmp")]
        assert Tool(tool.environ, directory)("build", "--dry-run").status == 0
        if has_ended:
            break
        place, kills = place + scale(5, 1), kills + 1
    assert kills > 5


# The root directory and the home directory


@pytest.mark.parametrize("root", ["/", "//", "/usr/..", "link"])
def test_the_root_directory_is_refused_by_any_of_its_names(root: str, tmp_path: Path) -> None:
    """Only the function that decides is called: a mistake must not write to the root directory."""
    path = Path(root)
    if root == "link":
        path = tmp_path / "link"
        path.symlink_to("/")

    with pytest.raises(ToolError) as caught:
        refuse_wide_directory(path)

    assert caught.value.code == "UNSAFE_PATH"
    assert "root directory" in caught.value.message
    assert "--force" in caught.value.suggestion


@pytest.fixture
def user_home(tool: Tool) -> Path:
    """Return the home directory of the user."""
    return Path(tool.environ["HOME"])


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_the_home_directory_is_refused(tool: Tool, user_home: Path, options: list[str]) -> None:
    before = sorted(user_home.iterdir())

    ran = tool("init", user_home, *options)

    assert (ran.status, ran.code) == (2, "UNSAFE_PATH")
    assert "it is your home directory" in ran.error["message"]
    assert "--force" in ran.error["suggestion"]
    assert sorted(user_home.iterdir()) == before


def test_the_home_directory_is_refused_by_the_name_of_a_link_and_as_the_current_directory(
    tool: Tool, user_home: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(user_home)

    assert tool("init", link).code == "UNSAFE_PATH"
    assert tool("init", "-C", user_home).code == "UNSAFE_PATH"
    assert not (user_home / "tool.toml").exists()


@pytest.mark.homeless
def test_a_home_that_is_a_link_is_compared_by_its_real_path(tool: Tool, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "home-link").symlink_to(target)
    at_home = Tool({**tool.environ, "HOME": str(tmp_path / "home-link")}, tool.cwd)

    assert at_home("init", target).code == "UNSAFE_PATH"
    assert list(target.iterdir()) == []


def test_with_force_the_home_directory_becomes_a_workspace(tool: Tool, user_home: Path) -> None:
    ran = tool("init", user_home, "--force")

    assert ran.data["effect"] == "created"
    assert (user_home / "tool.toml").is_file()


def test_a_directory_in_the_home_directory_is_accepted(tool: Tool, user_home: Path) -> None:
    assert tool("init", user_home / "demo").data["effect"] == "created"


def test_an_empty_home_is_not_the_root_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As for a shell, an empty HOME is as none. The home directory is then in the user database."""
    monkeypatch.setenv("HOME", "")

    refuse_wide_directory(tmp_path)
    with pytest.raises(ToolError, match="home directory"):
        refuse_wide_directory(Path(pwd.getpwuid(os.geteuid()).pw_dir))


def test_without_any_home_only_the_root_directory_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)

    refuse_wide_directory(tmp_path)
    with pytest.raises(ToolError, match="root directory"):
        refuse_wide_directory(Path("/"))
