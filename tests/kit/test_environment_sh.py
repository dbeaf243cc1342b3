"""kit/environment.sh: the old environment works until a new one is complete."""

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sampletool.kit.program import KIT_DIRECTORY
from sampletool.kit.testing.waiting import wait_until

_SCRIPT = Path(KIT_DIRECTORY) / "environment.sh"
_PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "prog"
version = "1"
requires-python = ">=3.11"
dependencies = []

[project.scripts]
prog = "prog:main"
"""
_INTERPRETER = """#!/bin/sh
# Create environments that see the packages of the one that runs the tests: nothing is downloaded.
if [ "$1 $2" = "-m venv" ]; then
  if [ -e quick-python ]; then
    mkdir -p "$3"/bin "$3"/site
    cp quick-python "$3"/bin/python
    if [ -e sitecustomize.py ]; then cp sitecustomize.py "$3"/site; fi
  else
    {python} -m venv --without-pip "$3" || exit 1
    echo {packages} > "$3"/{site_packages}/packages.pth
  fi
  if [ -e ready ]; then : > ready; : < go; fi
  exit 0
fi
exec {python} "$@"
"""
_QUICK_PYTHON = """#!/bin/sh
# The interpreter of an environment whose pip only writes the console script.
binaries=$(dirname "$0")
if [ "$1 $2" != "-m pip" ]; then
  PYTHONPATH="$binaries"/../site exec {python} "$@"
fi
if [ -e broken ]; then exit 1; fi
printf '#!/bin/sh\\necho it works\\n' > "$binaries"/prog
chmod +x "$binaries"/prog
"""

_PAUSE_AFTER_REPLACING = """
import atexit, sys

def pause():
    open("replaced", "w").close()
    open("go").close()

if "os.replace" in " ".join(sys.orig_argv):
    atexit.register(pause)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a console script, and an interpreter for its environment.

    Its environments have a pip that installs nothing, because the real one takes more than 1 s of
    processor time. After `use_real_pip`, they have the real one.
    """
    (tmp_path / "prog").mkdir()
    (tmp_path / "prog" / "__init__.py").write_text("def main():\n    print('it works')\n")
    (tmp_path / "pyproject.toml").write_text(_PYPROJECT)
    (tmp_path / "constraints.txt").touch()
    interpreter = tmp_path / "python"
    packages = Path(sysconfig.get_path("purelib"))
    text = _INTERPRETER.format(
        python=sys.executable,
        packages=packages,
        site_packages=packages.relative_to(sys.prefix),
    )
    interpreter.write_text(text)
    interpreter.chmod(0o755)
    quick_python = tmp_path / "quick-python"
    quick_python.write_text(_QUICK_PYTHON.format(python=sys.executable))
    quick_python.chmod(0o755)
    return tmp_path


def use_real_pip(project: Path) -> None:
    """Let the next build install the project. Skip the test if that is impossible here."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: make .venv/.testable")
    pytest.importorskip("pip", reason="the environment of the tests has no pip")
    (project / "quick-python").unlink()


def start_build(project: Path, **variables: str) -> subprocess.Popen[str]:
    environ = {
        **os.environ,
        "PYTHON": str(project / "python"),
        "UV": "",
        "PACKAGE": "prog",
        # Nothing in this test may wait for a package index.
        "PIP_NO_INDEX": "1",
        **variables,
    }
    command = ["sh", str(_SCRIPT), "--no-build-isolation", "."]
    # A session of its own, so that a test can kill the script with its children.
    return subprocess.Popen(
        command,
        cwd=project,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def build(project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    process = start_build(project, **variables)
    printed, _ = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, printed)


def start_paused_build(project: Path) -> subprocess.Popen[str]:
    """Start a build, and wait until its folder exists. It continues if `go` is opened."""
    os.mkfifo(project / "ready")
    os.mkfifo(project / "go")
    process = start_build(project)
    (project / "ready").open().close()
    return process


def continue_build(project: Path) -> None:
    (project / "go").open("w").close()
    (project / "ready").unlink()


def works(project: Path) -> bool:
    """Return whether the console script in the environment works."""
    script = str(project / ".venv" / "bin" / "prog")
    ran = subprocess.run([script], capture_output=True, text=True, check=False)
    return ran.stdout == "it works\n"


def folders(project: Path) -> list[str]:
    """Return the names of everything that belongs to environments."""
    return sorted(path.name for path in project.glob(".venv*"))


def test_an_environment_is_built_and_replaces_the_one_before(project: Path) -> None:
    first = build(project)
    first_target = (project / ".venv").readlink()
    use_real_pip(project)
    second = build(project)

    assert (first.returncode, second.returncode) == (0, 0), first.stdout + second.stdout
    assert (project / ".venv").readlink() != first_target
    assert folders(project) == [".venv", str((project / ".venv").readlink())]
    assert (project / ".venv" / ".ready").exists()
    assert works(project)


def test_if_a_package_cannot_be_installed_the_old_environment_is_left_and_works(
    project: Path,
) -> None:
    build(project)
    before = folders(project)
    wrong = _PYPROJECT.replace("dependencies = []", 'dependencies = ["no-such-package>=9"]')
    (project / "pyproject.toml").write_text(wrong)
    use_real_pip(project)

    ran = build(project)

    assert ran.returncode != 0
    assert "no-such-package" in ran.stdout
    message = " ".join(ran.stdout.split())
    assert "The new environment could not be built: see above." in message
    assert "Run make again when the packages can be downloaded." in message
    assert "use the old one directly, for example .venv/bin/python -m pytest." in message
    assert folders(project) == before
    assert works(project)


def test_if_the_first_environment_cannot_be_built_nothing_is_left(project: Path) -> None:
    (project / "broken").touch()

    ran = build(project)

    assert ran.returncode != 0
    assert "The old one" not in ran.stdout
    assert folders(project) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_old_environment_and_nothing_else(project: Path, number: int) -> None:
    build(project)
    before = folders(project)
    process = start_paused_build(project)

    os.killpg(process.pid, number)
    process.communicate()

    assert process.returncode == 128 + number
    assert folders(project) == before
    assert works(project)


def test_after_kill_9_the_old_environment_works_and_the_next_build_succeeds(project: Path) -> None:
    build(project)
    process = start_paused_build(project)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (left_folder,) = set(folders(project)) - {".venv", str((project / ".venv").readlink())}
    (project / "ready").unlink()

    assert works(project)
    os.utime(project / left_folder, (0, 0))
    ran = build(project)

    assert ran.returncode == 0, ran.stdout
    assert folders(project) == [".venv", str((project / ".venv").readlink())]
    assert works(project)


def test_two_builds_at_the_same_time_do_not_disturb_each_other(project: Path) -> None:
    first = start_paused_build(project)
    (project / "ready").rename(project / "ready of the first one")
    second = build(project)
    target_of_second = (project / ".venv").readlink()

    (project / "ready of the first one").rename(project / "ready")
    continue_build(project)
    first.communicate()

    assert (first.returncode, second.returncode) == (0, 0)
    assert (project / ".venv").readlink() != target_of_second
    assert works(project)


def test_a_signal_after_the_replacement_leaves_the_new_environment(project: Path) -> None:
    (project / "sitecustomize.py").write_text(_PAUSE_AFTER_REPLACING)
    os.mkfifo(project / "replaced")
    os.mkfifo(project / "go")
    process = start_build(project)
    (project / "replaced").open().close()

    os.killpg(process.pid, signal.SIGINT)
    process.communicate()

    assert process.returncode == 128 + signal.SIGINT
    assert works(project)


def test_a_build_with_the_process_id_of_an_earlier_one_leaves_its_folder_alone(
    project: Path,
) -> None:
    """In containers, two builds often have the same process id."""
    command = f'mkdir .venv-$$; ln -s .venv-$$ .venv; exec sh {_SCRIPT} "$@"'
    environ = {**os.environ, "PYTHON": str(project / "python"), "UV": "", "PACKAGE": "prog"}

    subprocess.run(
        ["sh", "-c", command, "sh", "--no-build-isolation", "."],
        cwd=project,
        env={**environ, "PIP_NO_INDEX": "1"},
        check=True,
    )

    assert works(project)
    assert len(folders(project)) == 2


def test_an_environment_of_the_developer_is_left_alone(project: Path) -> None:
    (project / ".venv-3.12").mkdir()
    os.utime(project / ".venv-3.12", (0, 0))

    ran = build(project)

    assert ran.returncode == 0, ran.stdout
    assert ".venv-3.12" in folders(project)


def test_a_failure_to_replace_a_folder_leaves_the_folder(project: Path) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "prog").write_text("#!/bin/sh\necho it works\n")
    (project / ".venv" / "bin" / "prog").chmod(0o755)
    # The replacement of .venv is done by Python, which fails here.
    (project / "sitecustomize.py").write_text(
        "import os, sys\nif 'os.replace' in ' '.join(sys.orig_argv):\n    os._exit(1)\n"
    )

    ran = build(project)

    assert ran.returncode == 1
    assert folders(project) == [".venv"]
    assert works(project)


def test_an_environment_that_is_a_folder_is_replaced_too(project: Path) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)

    ran = build(project)

    assert ran.returncode == 0, ran.stdout
    assert (project / ".venv").is_symlink()
    assert len(folders(project)) == 2
    assert works(project)


def test_an_interpreter_that_is_missing_or_too_old_is_named(project: Path) -> None:
    old = project / "old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n')
    old.chmod(0o755)

    missing = build(project, PYTHON="python-that-is-missing")
    too_old = build(project, PYTHON=str(old))

    assert "python-that-is-missing is not on the PATH" in missing.stdout
    assert f"{old} is Python 3.9.2." in too_old.stdout
    assert "make PYTHON=python3.12" in too_old.stdout
    assert folders(project) == []


def test_make_builds_again_until_it_succeeds(project: Path) -> None:
    """The old environment is older than pyproject.toml, so the next make tries again."""
    build(project)
    (project / "pyproject.toml").touch()
    (project / "broken").touch()
    ran = build(project)

    assert ran.returncode != 0
    newest = (project / "pyproject.toml").stat().st_mtime_ns
    wait_until(lambda: (project / ".venv" / ".ready").stat().st_mtime_ns <= newest)
