"""`tool config edit`, at a terminal, with editors that are small scripts."""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.commands.config import edit
from sampletool.kit.commands.config._editor import run_editor
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.contract.text import MAX_SENTENCE_CHARACTERS
from sampletool.kit.program import PACKAGE, PROGRAM, WORKSPACE_FILE
from sampletool.kit.safety.errors import NotFlushed
from sampletool.kit.safety.processes import is_running
from sampletool.kit.safety.signals import Signals
from sampletool.kit.safety.toml_file import TomlText, read_toml
from sampletool.kit.settings.known import all_settings
from sampletool.kit.settings.precedence import Scope
from sampletool.kit.testing.forked import start_python
from sampletool.kit.testing.tool import Tool

_TOOL = f"{sys.executable} -m {PACKAGE}"

_TAKE_TERMINAL = f"""
import fcntl, runpy, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module({PACKAGE!r}, run_name="__main__", alter_sys=True)
"""
"""A program that makes its stdin its controlling terminal, and then runs the tool.

Without this, Ctrl-C would be a character, and not a signal to every process at the terminal.
"""

_BEFORE = "# A workspace.\n\n[settings]\n# how careful\nlevel = 1  # not more\n"


class Terminal:
    """A command that runs at a terminal of its own."""

    def __init__(self, tool: Tool, *arguments: str, **environ: str) -> None:
        self.master, slave = pty.openpty()
        self.process = start_python(
            "-c",
            _TAKE_TERMINAL,
            *arguments,
            env={**tool.environ, **environ},
            cwd=tool.cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            new_session=True,
        )
        os.close(slave)
        self.shown = ""

    def wait_for(self, text: str) -> None:
        """Read what is shown until the text is there."""
        while text not in self.shown:
            chunk = self._read()
            assert chunk, f"{text!r} is not in {self.shown!r}"

    def press(self, key: bytes) -> None:
        os.write(self.master, key)

    def finish(self) -> int:
        """Read everything that is shown, and return the exit code."""
        while self._read():
            pass
        return self.process.wait()

    def close(self) -> None:
        os.close(self.master)
        # The whole session, because the editor may still run after a test has failed.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _read(self) -> str:
        # Linux reports EIO when no process has the terminal open any more.
        with suppress(OSError):
            chunk = os.read(self.master, 65_536).decode().replace("\r\n", "\n")
            self.shown += chunk
            return chunk
        return ""


class Editing:
    """Runs `config edit` with an editor that is a shell script. Its `$1` is the file to edit."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._terminals: list[Terminal] = []

    def start(self, script: str, *arguments: str, **environ: str) -> Terminal:
        editor = self.tool.cwd.parent / "editor"
        editor.write_text(f"#!/bin/sh\nset -e\n{script}\n")
        editor.chmod(0o755)
        variables = {"VISUAL": str(editor), "TERM": "dumb", "COLUMNS": "1000", **environ}
        terminal = Terminal(self.tool, "config", "edit", *arguments, **variables)
        self._terminals.append(terminal)
        return terminal

    def run(self, script: str, *arguments: str, **environ: str) -> dict[str, Any]:
        """Run the command to its end, and return its response."""
        terminal = self.start(script, "--json", *arguments, **environ)
        exit_code = terminal.finish()
        (line,) = re.findall(r'^\{"ok".*\}$', terminal.shown, re.MULTILINE)
        response: dict[str, Any] = json.loads(line)
        assert exit_code == response["meta"]["exit_code"]
        return response

    def copies(self) -> list[Path]:
        """Return the copies that are left."""
        return list(Path(self.tool.environ["TMPDIR"]).glob(f"{PROGRAM}-edit-*/*"))

    def kept_copy(self) -> Path:
        """Return the copy. Fail unless there is exactly one."""
        copies = self.copies()
        assert len(copies) == 1, copies
        return copies[0]

    def close(self) -> None:
        for terminal in self._terminals:
            terminal.close()
        for directory in {copy.parent for copy in self.copies()}:
            shutil.rmtree(directory)


@pytest.fixture
def editing(tool: Tool) -> Iterator[Editing]:
    """Run editors at a terminal, in the directory of `tool`."""
    editing = Editing(tool)
    yield editing
    editing.close()


@pytest.fixture
def file(workspace: Path) -> Path:
    """Return the settings file of a workspace."""
    path = workspace / WORKSPACE_FILE
    path.write_text(_BEFORE)
    return path


def test_the_file_is_written_as_the_editor_saved_it_and_the_copy_is_removed(
    editing: Editing,
    file: Path,
) -> None:
    response = editing.run('echo "jobs = 3" >> "$1"')

    assert response["data"]["effect"] == "updated"
    assert response["data"]["path"] == str(file)
    assert file.read_text() == f"{_BEFORE}jobs = 3\n"
    assert response["data"]["version"] == editing.tool("config", "get", "jobs").data["version"]
    assert editing.copies() == []


def test_the_editor_gets_a_private_copy_at_the_terminal(editing: Editing, file: Path) -> None:
    response = editing.run('test -t 0; test -t 1; test -t 2; stat -c %a "$(dirname "$1")" >&2')

    assert response["data"]["effect"] == "unchanged"
    terminal = editing.start('stat -c "mode %a" "$(dirname "$1")"; basename "$1"')
    assert terminal.finish() == 0
    assert f"mode 700\n{WORKSPACE_FILE}\n" in terminal.shown
    assert file.read_text() == _BEFORE
    assert editing.copies() == []


def test_a_missing_file_is_created(editing: Editing, home: Path) -> None:
    response = editing.run('echo "jobs = 3" > "$1"', "--global")

    path = home / "xdg_config_home" / PACKAGE / "config.toml"
    assert response["data"]["effect"] == "created"
    assert path.read_text() == "jobs = 3\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_missing_file_stays_missing_if_nothing_is_written(editing: Editing, home: Path) -> None:
    response = editing.run("true", "--global")

    assert response["data"]["effect"] == "unchanged"
    assert not (home / "xdg_config_home" / PACKAGE / "config.toml").exists()


def test_all_problems_are_reported_at_once_and_the_copy_is_kept(
    editing: Editing,
    file: Path,
) -> None:
    response = editing.run('printf "jobs = 0\\nlock_timeout = 5\\n" >> "$1"')

    error = response["error"]
    copy = editing.kept_copy()
    assert error["code"] == "VALIDATION_ERROR"
    assert [mistake["param"] for mistake in error["errors"]] == ["jobs", "lock_timeout"]
    assert str(copy) in error["suggestion"]
    assert copy.read_text() == f"{_BEFORE}jobs = 0\nlock_timeout = 5\n"
    assert file.read_text() == _BEFORE


def test_a_text_that_is_not_toml_is_not_written_and_the_copy_is_kept(
    editing: Editing,
    file: Path,
) -> None:
    response = editing.run('echo "jobs =" >> "$1"')

    copy = editing.kept_copy()
    assert response["error"]["code"] == "INVALID_TOML"
    assert str(copy) in response["error"]["suggestion"]
    assert file.read_text() == _BEFORE


def test_a_file_that_is_not_toml_can_be_repaired(editing: Editing, file: Path) -> None:
    file.write_text("[settings]\njobs =\n")

    response = editing.run('printf "[settings]\\njobs = 2\\n" > "$1"')

    assert response["data"]["effect"] == "updated"
    assert file.read_text() == "[settings]\njobs = 2\n"


def test_a_change_of_another_process_is_never_overwritten(editing: Editing, file: Path) -> None:
    response = editing.run(f'{_TOOL} config set other 1 > set.json; echo "jobs = 3" >> "$1"')

    assert not response["ok"], "the change of the other process is lost"
    error = response["error"]
    copy = editing.kept_copy()
    assert json.loads((file.parent / "set.json").read_text())["ok"], "no lock is held meanwhile"
    assert (error["code"], error["exit_code"]) == ("VERSION_CONFLICT", 6)
    assert error["suggestion"].startswith(f"To see the difference, run `diff {file} {copy}`.")
    assert error["context"]["copy"] == str(copy)
    assert file.read_text() == f"{_BEFORE}other = 1\n"
    assert copy.read_text() == f"{_BEFORE}jobs = 3\n"


def test_a_file_that_another_process_creates_meanwhile_is_not_replaced(
    editing: Editing,
    home: Path,
) -> None:
    script = f'{_TOOL} config set --global other 1; echo "jobs = 3" > "$1"'

    terminal = editing.start(script, "--global")

    assert terminal.finish() == 6
    assert (home / "xdg_config_home" / PACKAGE / "config.toml").read_text() == "other = 1\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "exited with code 3"),
        ("kill -KILL $$", "was killed by signal 9"),
        ('rm "$1"', "removed the file"),
    ],
)
def test_if_the_editor_fails_nothing_changes(
    editing: Editing,
    file: Path,
    script: str,
    reason: str,
) -> None:
    response = editing.run(script)

    assert response["error"]["code"] == "EDITOR_FAILED"
    assert reason in response["error"]["message"]
    assert file.read_text() == _BEFORE
    assert editing.copies() == []


def test_what_was_typed_before_the_editor_failed_is_kept(editing: Editing, file: Path) -> None:
    response = editing.run('echo "jobs = 3" >> "$1"; exit 1')

    copy = editing.kept_copy()
    assert str(copy) in response["error"]["suggestion"]
    assert copy.read_text() == f"{_BEFORE}jobs = 3\n"
    assert file.read_text() == _BEFORE


@pytest.mark.parametrize(
    ("visual", "editor", "code", "part"),
    [
        ("", "", "NO_EDITOR", "neither VISUAL nor EDITOR is set"),
        (" ", "no-such-editor --wait", "EDITOR_FAILED", '"no-such-editor" cannot be started'),
        ("'", "true", "NO_EDITOR", "VISUAL cannot be split into words"),
    ],
)
@pytest.mark.usefixtures("file")
def test_an_editor_that_cannot_be_found_is_an_error_with_a_hint(
    editing: Editing,
    visual: str,
    editor: str,
    code: str,
    part: str,
) -> None:
    response = editing.run("exit 9", VISUAL=visual, EDITOR=editor)

    assert response["error"]["code"] == code
    assert part in response["error"]["message"]
    assert "VISUAL" in response["error"]["suggestion"]


def test_the_editor_may_have_arguments_and_no_shell_reads_them(
    editing: Editing,
    file: Path,
) -> None:
    visual = "sed -i 's/level = 1/level = 2; $(id)/' "

    response = editing.run("exit 9", VISUAL=visual.replace("; $(id)", ""), EDITOR="false")
    refused = editing.run("exit 9", VISUAL=visual)

    assert response["data"]["effect"] == "updated"
    assert "level = 2  # not more" in file.read_text()
    assert refused["data"]["effect"] == "unchanged"


def test_without_a_terminal_no_editor_is_opened(tool: Tool, workspace: Path) -> None:
    ran = tool("config", "edit", VISUAL=f"touch {workspace}/opened")

    assert (ran.status, ran.code) == (4, "NO_TERMINAL")
    assert "`tool config set KEY VALUE`" in ran.error["suggestion"]
    # `tool config set` would fail without arguments.
    assert "fix_command" not in ran.error
    assert not (workspace / "opened").exists()


def test_a_dry_run_checks_the_changes_and_discards_them(editing: Editing, file: Path) -> None:
    response = editing.run('echo "jobs = 3" >> "$1"', "--dry-run")

    assert (response["data"]["effect"], response["meta"]["dry_run"]) == ("updated", True)
    assert file.read_text() == _BEFORE
    assert editing.copies() == []


@pytest.mark.parametrize("key", [b"\x03", b"\x1c"], ids=["Ctrl-C", "Ctrl-backslash"])
def test_the_keyboard_belongs_to_the_editor(editing: Editing, file: Path, key: bytes) -> None:
    script = """
        trap 'echo interrupted' INT QUIT
        echo ready
        # The signal ends `read` with an error.
        read line || true
        echo "jobs = 3" >> "$1"
        """
    terminal = editing.start(script)
    terminal.wait_for("ready")

    terminal.press(key)
    terminal.wait_for("interrupted")
    terminal.press(b"\n")
    exit_code = terminal.finish()

    assert exit_code == 0, terminal.shown
    assert file.read_text() == f"{_BEFORE}jobs = 3\n"


def test_a_signal_to_the_command_alone_ends_the_editor_and_keeps_the_copy(
    editing: Editing,
    file: Path,
) -> None:
    terminal = editing.start('echo "jobs = 3" >> "$1"; echo ready; exec sleep 60')
    terminal.wait_for("ready")

    terminal.process.terminate()
    exit_code = terminal.finish()

    copy = editing.kept_copy()
    assert exit_code == -signal.SIGTERM
    assert str(copy) in terminal.shown
    assert file.read_text() == _BEFORE


def test_a_recovery_file_of_the_editor_is_kept(editing: Editing, file: Path) -> None:
    script = """
        trap 'echo typed > "$1.swp"; kill $!; exit 1' TERM
        echo ready
        sleep 60 &
        wait $!
        """
    terminal = editing.start(script)
    terminal.wait_for("ready")

    terminal.process.terminate()
    terminal.finish()

    kept = {copy.name for copy in editing.copies()}
    assert kept == {file.name, f"{file.name}.swp"}
    assert file.read_text() == _BEFORE


def test_an_editor_that_a_script_has_started_ends_too_and_can_save_a_recovery_file(
    editing: Editing,
    file: Path,
) -> None:
    # The `true` at the end keeps the script from becoming the second shell.
    script = """
        sh -c '
            trap "echo typed > $0.swp; exit 1" TERM
            echo "pid $$ ready"
            sleep 60 &
            wait $!
            ' "$1"
        true
        """
    terminal = editing.start(script)
    terminal.wait_for("ready")
    (pid,) = re.findall(r"pid (\d+) ready", terminal.shown)

    terminal.process.terminate()
    # Not finish(): it would wait for an editor that is left over.
    terminal.process.wait()

    assert not is_running(int(pid))
    kept = {copy.name: copy.read_text() for copy in editing.copies()}
    assert kept == {file.name: _BEFORE, f"{file.name}.swp": "typed\n"}


@pytest.mark.parametrize(
    "script",
    [
        'rm "$1"; mkfifo "$1"',
        'rm "$1"; mkdir "$1"; echo typed > "$1/a"',
        'rm "$1"; ln -s nowhere "$1"',
        'mv "$1" "$1.moved"',
    ],
    ids=["FIFO", "directory", "dangling link", "moved"],
)
def test_what_cannot_be_compared_is_kept_and_named(
    editing: Editing,
    file: Path,
    script: str,
) -> None:
    response = editing.run(script)

    directory = editing.kept_copy().parent
    assert f"Your version is in {directory}." in response["error"]["suggestion"]
    assert response["error"]["context"]["copy"] == str(directory)
    assert file.read_text() == _BEFORE


@pytest.mark.usefixtures("file")
def test_an_editor_that_removes_the_directory_of_the_copy_has_failed(editing: Editing) -> None:
    response = editing.run('rm -r "$(dirname "$1")"')

    assert response["error"]["code"] == "EDITOR_FAILED"
    assert "removed the file" in response["error"]["message"]


def test_a_copy_that_cannot_be_written_is_removed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    too_long = tmp_path / ("x" * 300)
    before = read_toml(tmp_path / "tool.toml")._replace(path=too_long)
    context = Context(Signals())

    with pytest.raises(OSError, match="too long"), edit._private_copy(before, context):
        pass

    assert list(tmp_path.glob(f"{PROGRAM}-edit-*")) == []


def test_a_copy_of_a_text_that_was_written_but_not_flushed_is_removed(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = Context(Signals())

    with pytest.raises(NotFlushed), edit._private_copy(read_toml(file), context) as copy:
        copy.write_text("jobs = 3\n")
        raise NotFlushed(str(file), "input/output error")

    assert list(tmp_path.glob(f"{PROGRAM}-edit-*")) == []


def test_a_file_that_was_saved_under_another_name_is_kept_and_named(
    editing: Editing,
    file: Path,
) -> None:
    response = editing.run('echo "jobs = 3" > "$(dirname "$1")/other.toml"')

    assert not response["ok"], "what was typed is lost"
    directory = Path(response["error"]["context"]["copy"])
    assert response["error"]["code"] == "EDITOR_FAILED"
    assert f"Your version is in {directory}." in response["error"]["suggestion"]
    assert (directory / "other.toml").read_text() == "jobs = 3\n"
    assert file.read_text() == _BEFORE


def test_backup_files_are_removed_after_the_changes_were_saved(
    editing: Editing,
    file: Path,
) -> None:
    response = editing.run('cp "$1" "$1~"; echo "jobs = 3" >> "$1"')

    assert response["data"]["effect"] == "updated"
    assert file.read_text() == f"{_BEFORE}jobs = 3\n"
    assert editing.copies() == []


def test_a_copy_that_cannot_be_removed_is_a_warning(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A test that runs as root cannot make a directory that rmtree() fails to remove.
    monkeypatch.setattr(shutil, "rmtree", _remove_nothing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = Context(Signals())

    with edit._private_copy(read_toml(tmp_path / "tool.toml"), context) as copy:
        pass

    (warning,) = context.warnings
    assert warning["code"] == "COPY_LEFT"
    assert str(copy.parent) in warning["message"]


def _remove_nothing(_directory: Path, ignore_errors: bool = False) -> None:
    if not ignore_errors:
        raise PermissionError


def test_the_commands_in_hints_can_be_run_if_a_path_has_spaces(
    editing: Editing,
    file: Path,
    tmp_path: Path,
) -> None:
    directory = tmp_path / "a b"
    directory.mkdir()

    response = editing.run('echo "jobs =" >> "$1"', TMPDIR=str(directory))

    (command_line,) = re.findall("run `(.*)`", response["error"]["suggestion"])
    copy = response["error"]["context"]["copy"]
    assert " " in copy
    assert shlex.split(command_line) == ["cp", copy, str(file)]


def test_the_path_of_a_kept_copy_is_whole_however_long_it_is(
    editing: Editing,
    file: Path,
    tmp_path: Path,
) -> None:
    directory = tmp_path.joinpath(*["d" * 200] * 6)
    directory.mkdir(parents=True)
    script = f'echo "jobs = 3" > "$1"; echo "x = 1" >> {shlex.quote(str(file))}'

    response = editing.run(script, TMPDIR=str(directory))

    error = response["error"]
    copy = error["context"]["copy"]
    assert len(copy) > MAX_SENTENCE_CHARACTERS
    assert copy.startswith(str(directory))
    assert error["suggestion"].endswith(f"Your version is in {copy}.")
    assert f"`{shlex.join(['diff', str(file), copy])}`" in error["suggestion"]


def test_the_editor_is_not_opened_if_the_file_is_read_only(editing: Editing, file: Path) -> None:
    opened = file.with_name("opened")
    file.chmod(0o444)

    response = editing.run(f"touch {shlex.quote(str(opened))}")

    assert response["error"]["code"] == "PERMISSION_DENIED"
    assert response["error"]["context"]["path"] == str(file)
    assert not opened.exists()
    assert editing.copies() == []


def test_the_difference_can_be_shown_if_a_path_has_spaces() -> None:
    conflict = edit.ChangedMeanwhile(path="/a b", copy="/c d", expected="1", actual="2")

    assert "`diff '/a b' '/c d'`" in conflict.suggestion


def test_the_editor_is_ended_if_no_thread_can_wait_for_it(tmp_path: Path) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    class WithoutThreads:
        signals = Signals()

        def blocking(self, wait: Any) -> int:
            processes.append(wait.__self__)
            raise BlockingIOError

    context: Any = WithoutThreads()

    with pytest.raises(BlockingIOError):
        run_editor(["sh", "-c", "exec sleep 60"], tmp_path / "file", context)

    assert processes[0].returncode == -signal.SIGTERM


# Parts of the command


def _text(path: Path, content: str | None) -> TomlText:
    """Return a settings file with this content. It is missing if the content is None."""
    if content is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(content)
    return read_toml(path)


@pytest.mark.parametrize(
    ("opened", "now", "is_refused"),
    [
        ("a = 1\n", "a = 1\n", False),
        ("a = 1\n", "a = 2\n", True),
        ("a = 1\n", None, True),
        (None, "a = 1\n", True),
        (None, "", True),
        (None, None, False),
    ],
)
def test_a_file_is_written_only_if_it_is_as_it_was_opened(
    tmp_path: Path,
    opened: str | None,
    now: str | None,
    is_refused: bool,
) -> None:
    path = tmp_path / "tool.toml"
    before = _text(path, opened)
    current = _text(path, now)
    refusal = None

    try:
        edit._refuse_if_changed(current, before, tmp_path / "copy")
    except edit.ChangedMeanwhile as error:
        refusal = error

    assert (refusal is not None) is is_refused


def test_a_file_that_was_missing_is_created_and_another_one_updated(tmp_path: Path) -> None:
    missing = _text(tmp_path / "tool.toml", None)
    existing = _text(tmp_path / "tool.toml", "")

    assert edit._effect_of_writing(missing) == "created"
    assert edit._effect_of_writing(existing) == "updated"


@pytest.mark.parametrize(("text", "is_valid"), [("threads = 0\n", False), ("threads = 1\n", True)])
def test_a_setting_is_checked_under_its_former_name_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    is_valid: bool,
) -> None:
    jobs: Any = {**all_settings()["jobs"], "former_names": ("threads",)}
    monkeypatch.setattr(edit, "all_settings", lambda: {"jobs": jobs})
    path = tmp_path / "config.toml"
    mistakes = []

    try:
        edit._check(Scope("user", path), _text(path, text))
    except InvalidValues as error:
        mistakes = [mistake.param for mistake in error.mistakes]

    assert mistakes == ([] if is_valid else ["jobs"])
