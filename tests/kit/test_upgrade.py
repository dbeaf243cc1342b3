"""kit/upgrade.py: a newer kit replaces the whole older one, and git can undo that."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.trees import commit, copy_template, copy_tree, write_checksums
from sampletool.kit.testing.waiting import wait_until

_MAKEFILE = "check:\n\t@test ! -e broken\n\t@echo checked >> made\n"
_UPGRADE = f"{PACKAGE}.kit.upgrade"
_REVISION = 1000
"""The revision of the older kit. The newer one has the next revision."""


def git(tree: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *args]
    ran = subprocess.run(command, cwd=tree, check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout


def commit_all(tree: Path) -> None:
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "Edit")


@pytest.fixture
def project(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project that has taken the kit, with code of its own."""
    return copy_template(_project(tmp_path_factory.getbasetemp()), tmp_path / "project")


@pytest.fixture
def newer(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout of a project with a newer kit."""
    return copy_template(_newer(tmp_path_factory.getbasetemp()), tmp_path / "newer")


@cache
def _project(directory: Path) -> Path:
    # It is created once, because it takes a second.
    tree = directory / "upgrade" / "project"
    whole = copy_tree(ROOT, tree.with_name("whole"))
    paths = ("kit", "__init__.py", "__main__.py")
    for path in (*(f"{PACKAGE}/{path}" for path in paths), "pyproject.toml", "constraints.txt"):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (whole / path).rename(tree / path)
    (tree / "Makefile").write_text(_MAKEFILE)
    (tree / ".gitignore").write_text("__pycache__/\nmade\nbroken\n")
    (tree / PACKAGE / "own").mkdir()
    (tree / PACKAGE / "own" / "__init__.py").write_text('"""Code of its own."""\n')
    set_revision(tree, _REVISION)
    write_checksums(tree)
    commit(tree)
    return tree


@cache
def _newer(directory: Path) -> Path:
    tree = copy_tree(_project(directory), directory / "upgrade" / "newer")
    kit = tree / PACKAGE / "kit"
    (kit / "CHECKSUMS").unlink()
    set_revision(tree, _REVISION + 1)
    changelog = kit / "CHANGELOG.md"
    news = "## 99.1.0\n\n* Faster than before.\n\n## "
    changelog.write_text(changelog.read_text().replace("## ", news, 1))
    (kit / "extras.py").unlink()
    (kit / "fresh.py").write_text('"""New."""\n')
    needs = kit / "NEEDS.toml"
    needs.write_text(needs.read_text().replace('"ruff>=0.14"', '"ruff>=0.99"'))
    commit(tree)
    return tree


def set_revision(tree: Path, revision: int) -> None:
    (tree / PACKAGE / "kit" / "REVISION").write_text(f"{revision}\n")


def run(tree: Path, module: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the tree. In a new interpreter: a forked one has loaded our kit."""
    return subprocess.run(
        [sys.executable, "-m", module, *args],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )


def upgrade(tree: Path, source: Path | str) -> subprocess.CompletedProcess[str]:
    return run(tree, _UPGRADE, str(source))


def works(tree: Path) -> bool:
    """Return whether the commands of the project work."""
    return run(tree, PACKAGE, "lock", "list").returncode == 0


def kit_of(tree: Path) -> dict[str, bytes]:
    """Return the files of the kit without its checksums."""
    kit = tree / PACKAGE / "kit"
    contents = {}
    for path in kit.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.name != "CHECKSUMS":
            contents[str(path.relative_to(kit))] = path.read_bytes()
    return contents


def assert_unchanged(tree: Path) -> None:
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "stash", "list") == ""


def test_the_whole_kit_is_replaced_and_everything_else_is_left(project: Path, newer: Path) -> None:
    ran = upgrade(project, newer)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert kit_of(project) == kit_of(newer)
    assert run(project, f"{PACKAGE}.kit.checksums").returncode == 0
    assert (project / "made").read_text() == "checked\n"
    assert sorted(path.name for path in (project / PACKAGE).iterdir() if path.is_dir()) == [
        "__pycache__",
        "kit",
        "own",
    ]
    assert works(project)


def test_the_user_sees_the_revisions_the_news_and_what_the_kit_needs(
    project: Path,
    newer: Path,
) -> None:
    ran = upgrade(project, newer)

    lines = ran.stdout.splitlines()
    assert lines[0] == f"The kit was upgraded from revision {_REVISION} to {_REVISION + 1}."
    assert "pyproject.toml: added ruff>=0.99" in lines
    assert "constraints.txt: removed the pin of ruff" in lines
    assert "* Faster than before." in lines
    assert "What a project that carries this kit notices when it takes a newer one." not in lines
    assert lines[-1] == "make check passes with the newer kit. Next: make test, then commit."
    assert '"ruff>=0.99"' in (project / "pyproject.toml").read_text()
    assert "\nruff==" not in (project / "constraints.txt").read_text()


def test_a_file_that_does_not_change_is_not_written(project: Path, newer: Path) -> None:
    shutil.copy(project / PACKAGE / "kit" / "NEEDS.toml", newer / PACKAGE / "kit" / "NEEDS.toml")
    files = [project / "pyproject.toml", project / "constraints.txt"]
    before = [file.stat().st_mtime_ns for file in files]

    upgrade(project, newer)

    assert [file.stat().st_mtime_ns for file in files] == before


def test_if_make_check_fails_the_user_can_choose(project: Path, newer: Path) -> None:
    (project / "broken").touch()

    ran = upgrade(project, newer)

    assert ran.returncode == 1
    assert "make check fails with the newer kit" in ran.stdout
    assert f"To undo the upgrade: python -m {_UPGRADE} --restore" in ran.stdout
    assert kit_of(project) == kit_of(newer)


_UNDO_LINES = ("To undo the upgrade: python", "The same without the kit: ")


def run_printed_command(project: Path, printed: str, first_words: str) -> None:
    """Run the command in the printed line that begins with these words."""
    (line,) = [line for line in printed.splitlines() if line.startswith(first_words)]
    command = line.partition(": ")[2]
    if command.startswith("python "):
        command = f"{sys.executable} {command.removeprefix('python ')}"
    subprocess.run(["sh", "-c", command], cwd=project, check=True)


@pytest.mark.parametrize("first_words", _UNDO_LINES)
def test_each_printed_command_undoes_the_upgrade(
    project: Path,
    newer: Path,
    first_words: str,
) -> None:
    before = git(project, "rev-parse", "HEAD:")
    printed = upgrade(project, newer).stdout

    run_printed_command(project, printed, first_words)

    git(project, "add", "-A")
    assert git(project, "write-tree") == before
    assert works(project)
    assert upgrade(project, newer).returncode == 0


@pytest.mark.parametrize("first_words", _UNDO_LINES)
def test_each_printed_command_removes_new_files_that_git_ignores(
    project: Path,
    newer: Path,
    first_words: str,
) -> None:
    with (project / ".gitignore").open("a") as file:
        file.write("fresh*\n")
    commit_all(project)
    printed = upgrade(project, newer).stdout
    ignored_file = project / PACKAGE / "kit" / "fresh.py"
    assert ignored_file.exists()

    run_printed_command(project, printed, first_words)

    assert not ignored_file.exists()
    assert run(project, f"{PACKAGE}.kit.checksums").returncode == 0


def test_restoring_keeps_in_the_stash_what_was_edited_since(project: Path, newer: Path) -> None:
    upgrade(project, newer)
    (project / "pyproject.toml").write_text("edited since")
    (project / PACKAGE / "kit" / "mine.py").write_text("new since")

    ran = run(project, _UPGRADE, "--restore")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("The kit is as it was in the last commit.\n")
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "show", "stash@{0}:pyproject.toml") == "edited since"
    assert git(project, "show", f"stash@{{0}}^3:{PACKAGE}/kit/mine.py") == "new since"


def test_restoring_leaves_other_changes_alone(project: Path, newer: Path) -> None:
    upgrade(project, newer)
    (project / PACKAGE / "own" / "__init__.py").write_text("edited since")

    run(project, _UPGRADE, "--restore")

    assert (project / PACKAGE / "own" / "__init__.py").read_text() == "edited since"


def test_if_there_is_nothing_to_restore_the_command_says_so(project: Path) -> None:
    ran = run(project, _UPGRADE, "--restore")

    assert ran.returncode == 0
    assert f"nothing to restore: the kit, revision {_REVISION}, is as it was" in ran.stdout
    assert_unchanged(project)


def test_after_a_commit_restoring_says_how_to_undo_it(project: Path, newer: Path) -> None:
    upgrade(project, newer)
    commit_all(project)

    ran = run(project, _UPGRADE, "--restore")

    assert f"nothing to restore: the kit, revision {_REVISION + 1}, is as it was" in ran.stdout
    assert "git revert" in ran.stdout
    assert kit_of(project) == kit_of(newer)


def test_the_same_revision_is_not_taken_again(project: Path, newer: Path) -> None:
    set_revision(newer, _REVISION)

    ran = upgrade(project, newer)

    assert ran.returncode == 0
    assert ran.stdout == f"The kit already has revision {_REVISION}. Nothing was changed.\n"
    assert_unchanged(project)


def test_all_problems_are_reported_at_once(project: Path, newer: Path) -> None:
    set_revision(newer, _REVISION - 1)
    with (project / PACKAGE / "kit" / "app.py").open("a") as file:
        file.write("\n# mine\n")
    with (project / "pyproject.toml").open("a") as file:
        file.write("\n# mine\n")

    ran = upgrade(project, newer)

    assert (ran.returncode, ran.stdout) == (1, "")
    problems = ran.stderr.splitlines()
    assert problems[0] == f"The kit has revision {_REVISION}. Revision {_REVISION - 1} is older."
    assert problems[1].startswith("Files differ from the last commit.")
    assert problems[2].startswith("The kit was edited: kit/app.py. ")
    assert problems[3] == "Nothing was changed."
    assert (project / PACKAGE / "kit" / "app.py").read_text().endswith("# mine\n")


def test_an_edit_of_the_kit_that_was_committed_is_refused_too(project: Path, newer: Path) -> None:
    with (project / PACKAGE / "kit" / "app.py").open("a") as file:
        file.write("\n# mine\n")
    commit_all(project)

    ran = upgrade(project, newer)

    assert ran.stderr.startswith("The kit was edited: kit/app.py. ")
    assert_unchanged(project)


def test_a_kit_that_was_edited_where_it_comes_from_is_refused(project: Path, newer: Path) -> None:
    write_checksums(newer)
    (newer / PACKAGE / "kit" / "fresh.py").write_text("edited there")
    commit_all(newer)

    ran = upgrade(project, newer)

    assert "has a kit that was edited: kit/fresh.py." in ran.stderr
    assert_unchanged(project)


def test_where_the_kit_is_developed_nothing_is_replaced(newer: Path, project: Path) -> None:
    set_revision(project, _REVISION + 2)

    ran = upgrade(newer, project)

    assert "This project develops the kit itself" in ran.stderr


def delete_needs(newer: Path) -> str:
    (newer / PACKAGE / "kit" / "NEEDS.toml").unlink()
    return "The newer kit has no NEEDS.toml."


def spoil_revision(newer: Path) -> str:
    (newer / PACKAGE / "kit" / "REVISION").write_text("new")
    return "has a kit whose REVISION is not a number."


def spoil_needs(newer: Path) -> str:
    (newer / PACKAGE / "kit" / "NEEDS.toml").write_text("[project]\n")
    return "NEEDS.toml of the newer kit is wrong (KeyError('dependencies')). Nothing was changed."


def spoil_news(newer: Path) -> str:
    (newer / PACKAGE / "kit" / "CHANGELOG.md").write_bytes(b"\xff")
    return "CHANGELOG.md of the newer kit is not text. Nothing was changed."


def spoil_checksums(newer: Path) -> str:
    (newer / PACKAGE / "kit" / "CHECKSUMS").write_bytes(b"\xff")
    return "has a kit that was edited: "


_SPOILED = [
    delete_needs,
    spoil_revision,
    spoil_needs,
    spoil_news,
    spoil_checksums,
]


@pytest.mark.parametrize("spoil", _SPOILED)
def test_a_kit_that_is_not_complete_is_refused_in_a_sentence(
    project: Path,
    newer: Path,
    spoil: Callable[[Path], str],
) -> None:
    message = spoil(newer)
    commit_all(newer)

    ran = upgrade(project, newer)

    assert ran.returncode == 1
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert_unchanged(project)


@pytest.mark.parametrize("args", [[], ["a", "b"], ["--help"], ["-x"]])
def test_a_wrong_command_line_shows_the_usage(project: Path, args: list[str]) -> None:
    ran = run(project, _UPGRADE, *args)

    assert ran.returncode == 1
    assert ran.stderr.startswith(f"Usage: python -m {_UPGRADE} FROM\n")


def test_a_program_that_depends_on_the_kit_upgrades_a_package(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    names = 'PROGRAM = "ledger"\n__version__ = "1"\n'
    (tmp_path / "ledger" / "__init__.py").write_text(names)
    environ = {**os.environ, "KIT_PACKAGE": "ledger", "PYTHONPATH": f"{tmp_path}:{ROOT}"}

    command = [sys.executable, "-m", _UPGRADE, "somewhere"]
    ran = subprocess.run(command, cwd=tmp_path, env=environ, stderr=subprocess.PIPE, check=False)

    assert ran.returncode == 1
    assert f"it is in the package {PACKAGE}. Upgrade that package".encode() in ran.stderr


_PAUSE = """
import os, runpy, sys
package, module, source, point, ready, go = sys.argv[1:]
from importlib import import_module
upgrade = import_module(module)
unpaused = getattr(upgrade, point)

def pause(*args):
    open(ready, "w").close()
    open(go).close()
    return unpaused(*args)

setattr(upgrade, point, pause)
sys.exit(upgrade.main([source]))
"""


class PausedUpgrade:
    """An upgrade that waits before it calls one of its functions."""

    def __init__(self, project: Path, newer: Path, point: str) -> None:
        ready, self._go = project.with_name("ready"), project.with_name("go")
        os.mkfifo(ready)
        os.mkfifo(self._go)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PAUSE, PACKAGE, _UPGRADE, newer, point, ready, self._go],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(project)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # Opening the FIFO waits until the other process has opened it, too.
        ready.open().close()

    def finish(self) -> str:
        """Let the upgrade continue, unless it has exited, and return what it has printed."""
        wait_until(lambda: self._continues() or self.process.poll() is not None)
        return self.process.communicate()[0]

    def _continues(self) -> bool:
        """Tell the upgrade to continue. Return False if it is not waiting yet."""
        try:
            os.close(os.open(self._go, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_of_two_upgrades_at_the_same_time_the_second_is_refused(project: Path, newer: Path) -> None:
    first = PausedUpgrade(project, newer, "_write_new_kit_folder")

    second = upgrade(project, newer)
    restore = run(project, _UPGRADE, "--restore")
    printed = first.finish()

    refusal = "Another upgrade of this project is running. Wait until it has ended.\n"
    assert (second.stderr, restore.stderr) == (refusal, refusal)
    assert first.process.returncode == 0, printed


def test_a_killed_upgrade_does_not_block_the_next_one(project: Path, newer: Path) -> None:
    PausedUpgrade(project, newer, "_put_new_kit_in_place").kill()

    ran = upgrade(project, newer)

    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_exchange_leaves_everything_as_it_was(
    project: Path,
    newer: Path,
    number: int,
) -> None:
    paused = PausedUpgrade(project, newer, "_signals_blocked")

    paused.process.send_signal(number)
    printed = paused.process.communicate()[0]

    assert (paused.process.returncode, printed) == (-number, "")
    assert_unchanged(project)


def test_a_signal_during_the_exchange_waits_until_it_is_complete(
    project: Path,
    newer: Path,
) -> None:
    paused = PausedUpgrade(project, newer, "_write_requirements")

    paused.process.send_signal(signal.SIGTERM)
    paused.finish()

    assert paused.process.returncode == -signal.SIGTERM
    assert kit_of(project) == kit_of(newer)
    assert '"ruff>=0.99"' in (project / "pyproject.toml").read_text()
    assert not (project / "made").exists()


_KILL_BEFORE = """
import os, signal, sys
from importlib import import_module
module, source, which = sys.argv[1:]
upgrade = import_module(module)
events = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "ctypes.dlopen")
count = 0

def watch(event, args):
    global count
    if event not in events or (event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR)):
        return
    count += 1
    if event in ("ctypes.dlopen", "os.rename") or count == int(which):
        os.write(3, f"{event} {count}\\n".encode())
    if count == int(which):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
upgrade.main([source])
"""


def upgrade_killed_before(project: Path, newer: Path, change: int, log: Path) -> int:
    """Kill an upgrade before its nth change of the file system. Return its exit code."""
    with log.open("wb") as file:
        program = [sys.executable, "-B", "-c", _KILL_BEFORE, _UPGRADE, str(newer), str(change)]
        completed = subprocess.run(
            ["sh", "-c", 'exec 3>>"$0"; exec "$@"', str(log), *program],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(project)},
            stdout=subprocess.DEVNULL,
            stderr=file,
            check=False,
        )
    return completed.returncode


def test_after_kill_9_at_any_change_commands_work_and_restoring_brings_everything_back(
    project: Path,
    newer: Path,
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    whole_run = upgrade_killed_before(copy_template(project, tmp_path / "copy"), newer, 0, log)
    exchange = int(re.findall(r"^(?:ctypes.dlopen|os.rename) (\d+)$", log.read_text(), re.M)[0])
    changes = [1, exchange // 2, exchange, exchange + 1, exchange + 2, exchange + 3, exchange + 50]
    before = git(project, "rev-parse", "HEAD:")
    revisions = []

    for change in changes:
        exit_code = upgrade_killed_before(project, newer, change, log)
        assert exit_code == -signal.SIGKILL, f"change {change}: {log.read_text()}"
        assert works(project), f"killed before change {change}"
        revisions.append(int((project / PACKAGE / "kit" / "REVISION").read_text()))

        restored = run(project, _UPGRADE, "--restore")
        assert restored.returncode == 0, restored.stderr
        git(project, "add", "-A")
        assert git(project, "write-tree") == before, f"killed before change {change}"

    assert whole_run == 0
    # The kit is the older one before the exchange, and the newer one after it.
    assert revisions == sorted(revisions)
    assert {revisions[0], revisions[-1]} == {_REVISION, _REVISION + 1}


def test_restoring_deletes_what_a_killed_upgrade_has_left(project: Path, newer: Path) -> None:
    PausedUpgrade(project, newer, "_put_new_kit_in_place").kill()
    assert "?? " in git(project, "status", "--porcelain")

    ran = run(project, _UPGRADE, "--restore")

    assert "What a killed upgrade had left was deleted." in ran.stdout
    assert_unchanged(project)


def test_commands_work_during_upgrades(project: Path, newer: Path, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    log = tmp_path / "log"
    loop = f'while [ ! -e "$0" ]; do "$@" > /dev/null 2>> {log} || echo failed >> {log}; done'
    command = [sys.executable, "-B", "-m", PACKAGE, "config", "get", "jobs"]
    environ = {**os.environ, "PYTHONPATH": str(project)}
    commands = subprocess.Popen(["sh", "-c", loop, str(stop), *command], cwd=project, env=environ)

    try:
        for revision in range(_REVISION + 1, _REVISION + 4):
            set_revision(newer, revision)
            ran = upgrade(project, newer)
            assert ran.returncode == 0, ran.stderr
            commit_all(project)
    finally:
        stop.touch()
        commands.wait()

    assert not log.exists() or log.read_text() == ""


def test_a_file_system_that_cannot_exchange_folders_gets_two_renames(
    project: Path,
    newer: Path,
) -> None:
    code = f"""
import sys
from {PACKAGE}.kit import upgrade

def exchange(first, second):
    raise upgrade.ExchangeUnsupported("not here")

upgrade.exchange = exchange
sys.exit(upgrade.main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", code, str(newer)]
    environ = {**os.environ, "PYTHONPATH": str(project)}
    ran = subprocess.run(command, cwd=project, env=environ, check=False, stdout=subprocess.DEVNULL)

    assert ran.returncode == 0
    assert kit_of(project) == kit_of(newer)
    assert [path.name for path in (project / PACKAGE).glob(".*")] == []


_KILL_BETWEEN_RENAMES = f"""
import os, signal, sys
from {PACKAGE}.kit import upgrade

def exchange(first, second):
    raise upgrade.ExchangeUnsupported("not here")

def watch(event, args):
    if event == "os.rename" and os.fspath(args[0]).endswith(".new-kit"):
        os.kill(os.getpid(), signal.SIGKILL)

upgrade.exchange = exchange
sys.addaudithook(watch)
upgrade.main(sys.argv[1:])
"""


def test_git_brings_the_kit_back_after_kill_9_between_the_two_renames(
    project: Path,
    newer: Path,
) -> None:
    command = [sys.executable, "-B", "-c", _KILL_BETWEEN_RENAMES, str(newer)]
    environ = {**os.environ, "PYTHONPATH": str(project)}
    killed = subprocess.run(command, cwd=project, env=environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not works(project)

    git(project, "restore", ".")

    assert works(project)
    restored = run(project, _UPGRADE, "--restore")
    assert "What a killed upgrade had left was deleted." in restored.stdout
    assert_unchanged(project)


def test_an_error_of_the_file_system_is_reported_in_a_sentence(project: Path, newer: Path) -> None:
    # No file can be written below a path that is a file.
    (project / PACKAGE / ".new-kit").touch()

    ran = upgrade(project, newer)

    assert ran.returncode == 1
    assert ran.stderr.startswith("The upgrade failed: Not a directory: ")
    assert "If the kit was replaced already, this undoes the upgrade: python" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_error_without_a_path_is_reported_in_a_sentence(project: Path, newer: Path) -> None:
    # No file can be longer than 32 KiB, as on a disk that is nearly full. README.md of the kit is.
    limited = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh"]
    command = [*limited, sys.executable, "-B", "-m", _UPGRADE, str(newer)]
    environ = {**os.environ, "PYTHONPATH": str(project)}

    ran = subprocess.run(
        command,
        cwd=project,
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert ran.stderr.startswith("The upgrade failed: File too large. If the kit was replaced")
    assert_unchanged(project)


def test_what_git_cannot_undo_is_refused(project: Path, newer: Path, tmp_path: Path) -> None:
    # The project is a folder of another repository, which does not know it.
    shutil.rmtree(project / ".git")
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Begin")
    kit_before = kit_of(project)

    upgraded = upgrade(project, newer)
    restored = run(project, _UPGRADE, "--restore")

    assert upgraded.stderr.startswith("git does not track constraints.txt, so it could not undo")
    assert restored.stderr.startswith("git does not track the kit, so it cannot restore it.")
    assert kit_of(project) == kit_before
    assert (project / "pyproject.toml").exists()


def test_restoring_nothing_leaves_changes_of_the_user(project: Path) -> None:
    edited = (project / "pyproject.toml").read_text() + "\n# mine\n"
    (project / "pyproject.toml").write_text(edited)

    ran = run(project, _UPGRADE, "--restore")

    assert ran.stdout.startswith("There was nothing to restore")
    assert (project / "pyproject.toml").read_text() == edited


def test_without_git_the_upgrade_is_refused(project: Path, newer: Path) -> None:
    shutil.rmtree(project / ".git")

    ran = upgrade(project, newer)

    assert ran.returncode == 1
    assert "git status failed" in ran.stderr
    assert kit_of(project) != kit_of(newer)


def test_the_lock_is_released_when_the_upgrade_has_ended(project: Path, newer: Path) -> None:
    first = PausedUpgrade(project, newer, "_check_project")
    first.finish()

    wait_until(lambda: first.process.returncode is not None)

    assert run(project, _UPGRADE, "--restore").returncode == 0
