"""A newer kit takes the place of an older one: as a whole, from any form it comes in, or not at all."""

import io
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from sampletool.kit import upgrade
from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.trees import commit, copy_template, copy_tree, write_checksums
from sampletool.kit.testing.waiting import wait_until

_MAKEFILE = "check test:\n\t@test ! -e broken\n\t@{python} -m {package}.kit.checksums && echo $@ >> made\n"
_BESIDE = ("pyproject.toml", "constraints.txt", "docs/index.md", "tests/__init__.py", "tests/conftest.py")


def git(tree: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=tree, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def older(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has taken the kit, with work of its own."""
    return copy_template(_older(tmp_path_factory.getbasetemp()), tmp_path / "older")


@pytest.fixture
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of a newer version, which tests only read: a file is changed, one is new, one gone, it needs more."""
    return _newer(tmp_path_factory.getbasetemp())


@pytest.fixture
def own_newer(newer: Path, tmp_path: Path) -> Path:
    """The same for a test that changes it, or puts an archive beside it. The copy costs a tenth of a second."""
    return copy_template(newer, tmp_path / "newer")


@cache
def _older(directory: Path) -> Path:
    """Made once, as it takes a second."""
    tree = directory / "upgrade" / "older"
    whole = copy_tree(ROOT, tree.with_name("whole"))
    for path in (
        f"{PACKAGE}/kit",
        "tests/kit",
        "docs/kit",
        f"{PACKAGE}/__init__.py",
        f"{PACKAGE}/__main__.py",
        *_BESIDE,
    ):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (whole / path).rename(tree / path)
    (tree / "Makefile").write_text(_MAKEFILE.format(python=sys.executable, package=PACKAGE))
    (tree / ".gitignore").write_text("__pycache__/\nmade\nbroken\n")
    (tree / PACKAGE / "own").mkdir()
    (tree / PACKAGE / "own" / "__init__.py").write_text('"""Work of its own."""\n')
    write_checksums(tree)
    commit(tree)
    return tree


@cache
def _newer(directory: Path) -> Path:
    tree = copy_tree(_older(directory), directory / "upgrade" / "newer")
    (tree / PACKAGE / "kit" / "CHECKSUMS").unlink()
    changelog = tree / PACKAGE / "kit" / "CHANGELOG.md"
    text = changelog.read_text()
    changelog.write_text(text.replace("## ", "## 99.1.0\n\n* Faster than before.\n\n## ", 1))
    (tree / PACKAGE / "kit" / "extras.py").unlink()
    (tree / PACKAGE / "kit" / "fresh.py").write_text('"""New."""\n')
    (tree / "tests" / "kit" / "test_fresh.py").write_text('"""New."""\n')
    (tree / "docs" / "kit" / "fresh.md").write_text("# Fresh\n")
    needs = tree / PACKAGE / "kit" / "NEEDS.toml"
    needs.write_text(
        re.sub(r'"platformdirs[^"]*"', '"platformdirs>=4.15,<5", "brand-new>=1"', needs.read_text()).replace(
            '"ruff>=0.14"', '"ruff>=0.99"'
        )
    )
    pins = tree / "constraints.txt"
    pins.write_text(
        re.sub(r"^platformdirs==.*$", "platformdirs==4.15.1", pins.read_text(), flags=re.M) + "brand-new==1.2\n"
    )
    commit(tree)
    return tree


def as_wheel(tree: Path) -> Path:
    wheel = tree.with_name("newer-99.whl")
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in git(tree, "ls-files").split():
            place = name if name.startswith(f"{PACKAGE}/") else f"{PACKAGE}/part/carried/{name}"
            archive.write(tree / name, place)
    return wheel


def as_sdist(tree: Path) -> Path:
    sdist = tree.with_name("newer-99.tar.gz")
    with tarfile.open(sdist, "w:gz") as archive:
        for name in git(tree, "ls-files").split():
            archive.add(tree / name, f"newer-99/{name}")
    return sdist


def in_tree(tree: Path, module: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the tree. In a fresh interpreter: a forked one has loaded ours, which would change our tree."""
    environ = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", module, *args]
    return subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)


def upgraded(tree: Path, source: Path | str) -> subprocess.CompletedProcess[str]:
    return in_tree(tree, f"{PACKAGE}.kit.upgrade", str(source))


@pytest.mark.parametrize("form", [lambda tree: tree, as_wheel, as_sdist], ids=["checkout", "wheel", "sdist"])
def test_the_kit_is_replaced_as_a_whole_and_the_rest_is_left(
    older: Path, own_newer: Path, form: Callable[[Path], Path]
) -> None:
    (own_newer / PACKAGE / "kit" / "untracked.py").touch()

    ran = upgraded(older, form(own_newer))

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (older / "made").read_text() == "check\ntest\n"
    for folder in (f"{PACKAGE}/kit", "tests/kit", "docs/kit"):
        files = {path.removeprefix(f"{folder}/") for path in git(own_newer, "ls-files", folder).split()}
        found = {path for path in (older / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
        assert {path.relative_to(older / folder).as_posix() for path in found} - {"CHECKSUMS"} == files
        assert all((older / folder / path).read_bytes() == (own_newer / folder / path).read_bytes() for path in files)
    assert [path.name for path in older.glob("*/.kit.*")] == []
    assert (older / PACKAGE / "own" / "__init__.py").read_text() == '"""Work of its own."""\n'
    assert "* [Fresh](kit/fresh.md)\n" in (older / "docs" / "index.md").read_text()


def test_what_is_new_is_shown_and_what_it_needs_is_raised(older: Path, newer: Path) -> None:
    ran = upgraded(older, newer)

    assert ran.stdout.startswith("## 99.1.0\n")
    assert "* Faster than before.\n" in ran.stdout
    assert "The first version that is a folder of its own" not in ran.stdout
    project = (older / "pyproject.toml").read_text()
    for requirement in ("platformdirs>=4.15,<5", "brand-new>=1", "ruff>=0.99"):
        assert re.findall(rf'"{requirement.partition(">=")[0]}>[^"]*"', project) == [f'"{requirement}"']
        assert f"pyproject.toml: {requirement}\n" in ran.stdout
    pins = (older / "constraints.txt").read_text().splitlines()
    assert {"platformdirs==4.15.1", "brand-new==1.2"} <= {*pins}
    assert len([pin for pin in pins if pin.startswith("platformdirs")]) == 1


def test_everything_can_be_put_back_and_what_was_changed_since_is_kept(older: Path, newer: Path) -> None:
    before = git(older, "rev-parse", "HEAD:")
    upgraded(older, newer)
    (older / "pyproject.toml").write_text("edited since")
    (older / "tests" / "kit" / "test_mine.py").write_text("new since")

    ran = upgraded(older, "--restore")

    assert ran.returncode == 0, ran.stderr
    git(older, "add", "-A")
    assert git(older, "write-tree") == before
    assert git(older, "show", "stash@{0}:pyproject.toml") == "edited since"
    assert git(older, "show", "stash@{0}^3:tests/kit/test_mine.py") == "new since"
    assert upgraded(older, newer).returncode == 0


@pytest.mark.parametrize("folder", ["tests", "docs"])
def test_what_an_upgrade_that_was_killed_left_is_removed_by_a_restore(older: Path, newer: Path, folder: str) -> None:
    (older / folder / "kit").rename(older / folder / ".kit.old")
    for left in (f"{PACKAGE}/.kit.new", f"{folder}/.kit.new"):
        (older / left / "deep").mkdir(parents=True)
        (older / left / "deep" / "app.py").touch()

    refused = upgraded(older, newer)
    ran = upgraded(older, "--restore")

    assert "undo an upgrade with --restore" in refused.stderr
    assert ran.returncode == 0, ran.stderr
    assert git(older, "status", "--porcelain") == ""


@pytest.fixture
def paused(older: Path, own_newer: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """An upgrade whose other process is about to replace the kit: with its pid, and a pipe that ends with it."""
    (tmp_path / "scratch").mkdir()
    for name in ("here", "go"):
        os.mkfifo(tmp_path / name)
    program = own_newer / PACKAGE / "kit" / "rename.py"
    pause = f"""
import os
unpaused = rename_files
def rename_files(*args):
    here = os.open({str(tmp_path / "here")!r}, os.O_WRONLY)
    os.write(here, b"%d" % os.getpid())
    open({str(tmp_path / "go")!r}).close()
    return unpaused(*args)
"""
    program.write_text(f"{program.read_text()}\n{pause}")
    environ = {**os.environ, "PYTHONPATH": str(older), "TMPDIR": str(tmp_path / "scratch")}
    command = [sys.executable, "-m", f"{PACKAGE}.kit.upgrade", str(own_newer)]
    with subprocess.Popen(command, cwd=older, env=environ, stderr=subprocess.PIPE, text=True) as parent:
        here = os.open(tmp_path / "here", os.O_RDONLY)
        child = int(os.read(here, 100))
        try:
            yield parent, child, here
        finally:
            parent.kill()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.close(here)


def all_stopped(pid: int) -> bool:
    """All threads of it: on a busy machine the signal has reached one of them and another one goes on for a while."""
    states = [path.read_text().rpartition(") ")[2][0] for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return {*states} == {"T"}


def has_ended(pipe: int, seconds: float) -> bool:
    return select.select([pipe], [], [], seconds)[0] == [pipe]


def test_of_two_upgrades_at_once_one_is_refused_also_when_the_first_one_s_caller_is_dead(
    older: Path, paused: tuple[subprocess.Popen[str], int, int]
) -> None:
    parent, child, pipe = paused

    second = upgraded(older, "nowhere")
    os.kill(child, signal.SIGSTOP)
    wait_until(lambda: all_stopped(child))
    parent.kill()
    parent.wait()
    restore = upgraded(older, "--restore")
    os.kill(child, signal.SIGCONT)

    assert ["Another upgrade" in other.stderr for other in (second, restore)] == [True, True]
    assert has_ended(pipe, 10), "its stdin has ended"
    assert git(older, "status", "--porcelain") == ""


def test_a_signal_is_obeyed_when_everything_is_put_back(
    older: Path, tmp_path: Path, paused: tuple[subprocess.Popen[str], int, int]
) -> None:
    parent, _, _ = paused
    (blocked,) = re.findall(r"SigBlk:\s*(\w+)", Path(f"/proc/{parent.pid}/status").read_text())
    assert int(blocked, 16) & 1 << (signal.SIGTERM - 1)

    parent.send_signal(signal.SIGTERM)
    (tmp_path / "go").open("w").close()
    _, said = parent.communicate()

    assert parent.returncode == -signal.SIGTERM
    assert said == f"{tmp_path / 'newer'} is not taken: interrupted. Everything is as it was.\n"
    assert git(older, "status", "--porcelain") == ""
    assert [*(tmp_path / "scratch").iterdir()] == []


def test_a_failure_is_said_and_can_be_undone(older: Path, newer: Path) -> None:
    (older / "broken").touch()

    ran = upgraded(older, newer)

    assert ran.returncode != 0
    assert "Something fails with the new kit" in ran.stdout
    assert f"python -m {PACKAGE}.kit.upgrade --restore" in ran.stdout


@pytest.mark.parametrize("path", [f"{PACKAGE}/kit/app.py", "tests/kit/test_app.py", "docs/kit/mine.md"])
def test_a_kit_that_was_edited_is_refused_by_name(older: Path, newer: Path, path: str) -> None:
    with (older / path).open("a") as file:
        file.write("\n# mine\n")
    commit_all(older)

    ran = upgraded(older, newer)

    assert ran.returncode == 1
    assert f": {path.removeprefix(f'{PACKAGE}/')}. " in ran.stderr
    assert git(older, "status", "--porcelain") == ""


def commit_all(tree: Path) -> None:
    git(tree, "add", "-A")
    git(tree, "-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "Edit")


def test_a_tree_that_differs_from_the_last_commit_is_refused(older: Path, newer: Path) -> None:
    (older / "pyproject.toml").write_text("edited")

    ran = upgraded(older, newer)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "Commit them first" in ran.stderr
    assert (older / "pyproject.toml").read_text() == "edited"


def test_an_older_kit_is_refused(older: Path, newer: Path) -> None:
    changelog = older / PACKAGE / "kit" / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## ", "## 99.2.0\n\n* Newer than both.\n\n## ", 1))
    write_checksums(older)
    commit_all(older)

    assert "has an older kit" in upgraded(older, newer).stderr
    assert git(older, "status", "--porcelain") == ""


def test_the_kit_of_another_project_is_taken_only_as_that_has_taken_it(older: Path, own_newer: Path) -> None:
    write_checksums(own_newer)
    (own_newer / PACKAGE / "kit" / "fresh.py").write_text("edited there")
    commit_all(own_newer)

    assert "has a kit that was edited" in upgraded(older, own_newer).stderr


def test_an_interrupt_ends_it_without_a_traceback() -> None:
    code = f"""
import os, signal
from {PACKAGE}.kit import upgrade
upgrade.upgrade = lambda source: os.kill(os.getpid(), signal.SIGINT)
upgrade.main(["newer"])
"""
    ran = run_python("-c", code, check=False)

    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, "")


def test_where_the_kit_is_developed_nothing_is_replaced(own_newer: Path) -> None:
    assert "There is no CHECKSUMS" in upgraded(own_newer, own_newer).stderr


@pytest.mark.parametrize("source", ["nowhere", "Makefile", "docs"])
def test_what_carries_no_kit_is_refused(older: Path, source: str) -> None:
    ran = upgraded(older, source)

    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert git(older, "status", "--porcelain") == ""


def test_a_kit_that_cannot_be_put_in_place_is_refused_in_a_sentence(older: Path, own_newer: Path) -> None:
    (own_newer / PACKAGE / "kit" / "NEEDS.toml").unlink()

    ran = upgraded(older, own_newer)

    assert ran.returncode == 1
    assert re.fullmatch(r".* is not taken: .*NEEDS\.toml'\. Everything is as it was\.\n", ran.stderr)
    assert git(older, "status", "--porcelain") == git(older, "stash", "list") == ""


@pytest.mark.parametrize("damage", ["half an sdist", "a wheel with other bytes", "a file that is also a folder"])
def test_a_damaged_source_is_refused_in_a_sentence(older: Path, own_newer: Path, damage: str) -> None:
    if damage == "half an sdist":
        source = as_sdist(own_newer)
        source.write_bytes(source.read_bytes()[: source.stat().st_size // 2])
    elif damage == "a wheel with other bytes":
        source = as_wheel(own_newer)
        source.write_bytes(source.read_bytes().replace(b"# Changes", b"# CHANGES"))
    else:
        source = as_wheel(own_newer)
        with zipfile.ZipFile(source, "a") as archive:
            archive.writestr(f"{PACKAGE}/kit/app.py/more.py", "")

    ran = upgraded(older, source)

    assert "Traceback" not in ran.stderr
    assert f"{source} cannot be read: " in ran.stderr
    assert git(older, "status", "--porcelain") == ""


def tar(path: Path, name: str, **kind: object) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        for key, value in kind.items():
            setattr(info, key, value)
        archive.addfile(info, io.BytesIO(b"x" * info.size))
    return path


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/out", "a\\..\\out", "a\n", "\u202e"])
def test_no_file_of_an_archive_leads_out_of_it(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr(name, "x")

    for source in (tmp_path / "a.whl", tar(tmp_path / "a.tar.gz", name)):
        with pytest.raises(SystemExit, match="is not taken"):
            upgrade.read(source)


@pytest.mark.parametrize("link", ["docs/kit/link", "docs/kit"])
def test_a_link_in_the_kit_of_a_checkout_is_not_taken(tmp_path: Path, link: str) -> None:
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    for directory in (checkout / "docs" / "kit", elsewhere):
        directory.mkdir(parents=True)
        (directory / "page").write_text("mine")
    (checkout / "LINK").symlink_to("docs/kit/page")
    commit(checkout)
    assert upgrade.read(checkout) == {"docs/kit/page": b"mine"}

    shutil.rmtree(checkout / "docs" / "kit")
    (checkout / link).parent.mkdir(exist_ok=True)
    (checkout / link).symlink_to(elsewhere if link == "docs/kit" else elsewhere / "page")
    git(checkout, "add", "docs/kit/link") if link != "docs/kit" else None

    with pytest.raises(SystemExit, match="is not taken"):
        upgrade.read(checkout)


@pytest.mark.timeout(10)
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(SystemExit, match="neither a checkout"):
        upgrade.read(tmp_path / "pipe")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_nothing_but_files_is_taken_from_an_archive(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(SystemExit, match="is not taken"):
        upgrade.read(tar(tmp_path / "a.tar.gz", "a/link", type=kind, linkname="/etc/passwd"))


def test_a_link_in_a_wheel_is_not_taken(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("a/link")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr(info, "/etc/passwd")

    with pytest.raises(SystemExit, match="is not taken"):
        upgrade.read(tmp_path / "a.whl")


def test_an_archive_that_is_too_large_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "_LARGEST_BYTES", 1000)

    assert upgrade.read(tar(tmp_path / "a.tar.gz", "a", size=1000)) == {"a": b"x" * 1000}
    with pytest.raises(SystemExit, match="is not taken"):
        upgrade.read(tar(tmp_path / "a.tar.gz", "a", size=1001))
