"""With another name everything works, and nothing says the old one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.rename import COMMAND, PACKAGE, refusal, rename
from tests.house.test_forks import NEVER, copy_of_the_tree, run
from tests.support.scale import SOAK

_ROOT = Path(__file__).parents[2]
_NEW, _CALL = ("new_name", "new-call")
_OLD = re.compile(rf"{PACKAGE}|\b{COMMAND}[.]toml|(?<!\w)[.]{COMMAND}\b|[\"`]{COMMAND} |(?<![A-Z]){COMMAND.upper()}_")


@pytest.mark.timeout(900)
def test_under_another_name_everything_works_and_nothing_says_the_old_one(tmp_path: Path) -> None:
    """With large counts its own tests too; else they are only collected."""
    copy = copy_of_the_tree(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()

    rename(copy, _NEW, _CALL)

    def says(*args: str, **environ: str) -> str:
        call = [sys.executable, "-m", _NEW, *args]
        environ = {**os.environ, "PYTHONPATH": str(copy), **environ}
        return subprocess.run(call, cwd=empty, env=environ, capture_output=True, text=True, check=False).stdout

    assert says("--help").startswith(f"Usage: {_CALL} ")
    assert re.fullmatch(r"[\d.]+\n", says("--version"))
    assert '"NEW_CALL_JOBS"' in says("config", "explain", "jobs", NEW_CALL_JOBS="3")
    assert "config" in says(_NEW_CALL_COMPLETE="complete_bash", COMP_WORDS=f"{_CALL} con", COMP_CWORD="1")
    (empty / f"{_CALL}.toml").touch()
    assert f"{_CALL}.toml" in says("config", "set", "a", "1")
    assert sorted(os.listdir(empty)) == [f".{_CALL}", f"{_CALL}.toml"]
    for answer in (says("manifest"), says("build", "no-such-target"), says("config", "get", "no.such.key")):
        assert _OLD.findall(answer) == []
    assert not (copy / PACKAGE).exists()
    for path in copy.rglob("*"):
        assert not path.is_file() or not re.search(rf"\b{PACKAGE}\b".encode(), path.read_bytes()), path

    run(copy, "ruff", "check", "--no-cache", ".")
    run(copy, "ruff", "format", "--no-cache", "--check", ".")
    run(copy, "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests/house/test_forks.py", "-k", "of_a_forks_own")
    if SOAK:
        run(copy, "mypy", "--cache-dir", str(tmp_path / "types"))
        run(copy, "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests", *NEVER)
    else:
        run(copy, "pytest", "-q", "-p", "no:cacheprovider", "-n0", "--collect-only", "tests")


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("2fast", "ok"),
        ("class", "ok"),
        ("json", "ok"),
        ("typer", "ok"),
        ("wiring", "ok"),
        ("ok", "Ok"),
        ("ok", "-x"),
        ("ok", "o k"),
    ],
)
def test_a_name_that_cannot_be_is_refused(package: str, command: str) -> None:
    assert refusal(_ROOT, package, command)
    assert refusal(_ROOT, "some_package", "some-command") is None
