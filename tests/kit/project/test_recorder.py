"""The recorder finds the functions that a test runs, even in processes that are killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.project import ROOT
from sampletool.kit.stepping.fork_server import ForkServer
from tests.kit.mutants import recorder
from tests.kit.mutants.coverage_by_test import CoverageByTest, combined, mirror_files
from tests.kit.mutants.recorded_code import compile_recorded
from tests.kit.mutants.source import Mutant
from tests.kit.mutants.trial_plugin import TestOutcome, TestRun

_PROGRAM = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
from watched import small

def in_child():
    os.environ["HOME"] = sys.argv[2]
    small.Box().first()
    os.kill(os.getpid(), signal.SIGKILL)

small.Box().first()
thread = threading.Thread(target=small.second)
thread.start()
thread.join()
child = os.fork()
if child == 0:
    in_child()
os.waitpid(child, 0)
print("done", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
_SERVER_SETUP = """
import os
from watched import small

# The fork server forks a process, which runs this first. Then it closes all descriptors, and
# changes its environment.
os.register_at_fork(after_in_child=lambda: small.Box().first())
"""
_WATCHED = """
class Box:
    def first(self):
        return [each for each in (lambda: [1])()]

def second():
    def inner():
        pass
    inner()

def never():
    pass
"""


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    """Return a directory with a recorded module, and a program that runs its functions."""
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched" / "small.py").write_text(_WATCHED)
    compile_recorded(tmp_path / "watched" / "small.py", "small.py")
    (tmp_path / "program.py").write_text(f"{_start_recorder(tmp_path)}\n{_PROGRAM}")
    return tmp_path


def _start_recorder(directory: Path) -> str:
    """Return the source that starts a recorder, with a log in this directory."""
    return f"import recorder; recorder.start({str(directory / 'log')!r})"


def _recorded(directory: Path) -> set[tuple[str, ...]]:
    """Return the fields of each line of the log."""
    lines = (directory / "log").read_text().splitlines()
    return {tuple(line.split("\t")) for line in lines}


def test_a_killed_process_has_recorded_the_functions_that_it_ran(watched: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(recorder.__file__).parent)}
    command = [sys.executable, str(watched / "program.py"), str(watched), "/other/home"]

    ran = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=False)

    assert ran.returncode == -signal.SIGKILL
    assert ran.stdout == b"done\n"
    assert _recorded(watched) == {
        ("ran", os.environ["HOME"], "small.py:Box.first"),
        ("ran", os.environ["HOME"], "small.py:second"),
        ("ran", "/other/home", "small.py:Box.first"),
    }


def test_a_process_of_the_fork_server_has_recorded_the_functions_that_it_ran(
    watched: Path,
) -> None:
    (watched / "server_setup.py").write_text(f"{_start_recorder(watched)}\n{_SERVER_SETUP}")
    module_directories = [str(ROOT), str(watched), str(Path(recorder.__file__).parent)]
    server_env = {**os.environ, "PYTHONPATH": os.pathsep.join(module_directories)}
    server_home = os.environ["HOME"]
    child_home = f"{server_home}/of-another-test"

    with ForkServer(["server_setup"], server_env) as fork_server:
        child_env = {**server_env, "HOME": child_home}
        program = ["-c", "from watched import small; small.second()"]
        with fork_server.start(program, env=child_env, cwd=watched) as process:
            process.communicate()

    assert process.returncode == 0
    assert _recorded(watched) == {
        # This function runs before the process gets its home. It belongs to that home as well.
        ("ran", server_home, "small.py:Box.first"),
        ("ran", child_home, "small.py:Box.first"),
        ("ran", child_home, "small.py:second"),
    }


def test_a_function_belongs_to_the_test_whose_home_the_process_has() -> None:
    runs = [
        TestRun("a", TestOutcome.PASSED, 1.0),
        TestRun("b", TestOutcome.PASSED, 2.0),
        TestRun("c", TestOutcome.PASSED, 2.0),
        TestRun("c", TestOutcome.EXCEPTION, 2.0, "broken"),
    ]
    lines = [
        "ran\t/t/a0/home/home\tkit/small.py:first",
        "ran\ta\tkit/small.py:second",
        "ran\tc\tkit/small.py:second",
        "ran\t/root\tkit/small.py:second",
        "owner\t/t/a0\ta",
        "owner\t/t/b0\tb",
        "ran\t/t/b0/home/home\tkit/small.py:first",
        "ran\t/t/b0/ho",
    ]

    coverage = combined(runs, lines)

    assert coverage == CoverageByTest(
        seconds={"a": 1.0, "b": 2.0},
        failed={"c": "broken"},
        functions={"kit/small.py:first": ["a", "b"], "kit/small.py:second": ["a"]},
    )


def mutant(function: str, file: str = "kit/safety/lock.py") -> Mutant:
    return Mutant(file, function, 1, "drop call", "a()", "pass", "")


def test_the_tests_of_the_file_come_first_and_slow_ones_last() -> None:
    own = "tests/kit/safety/test_lock.py::a"
    narrow = "tests/b.py::narrow"
    broad = "tests/b.py::broad"
    slow = "c"
    other = "tests/kit/safety/test_flock.py::a"
    far = "tests/sample/test_x.py::a"
    coverage = CoverageByTest(
        seconds={slow: 9.0, broad: 1.0, narrow: 1.0, own: 1.0, other: 1.0, far: 1.0},
        functions={
            "kit/safety/lock.py:Lock._take": [slow, broad, narrow],
            "kit/app.py:main": [slow, broad],
            "kit/app.py:root": [slow, broad],
        },
    )

    assert coverage.tests_for(mutant("Lock._take"), ROOT) == [own, narrow, broad, slow]
    assert coverage.tests_for(mutant("Lock"), ROOT) == [own, narrow, broad, slow]
    assert coverage.tests_for(mutant("Lock.unknown"), ROOT) == [own, other]
    assert coverage.tests_for(mutant("main", "kit/safety/gone.py"), ROOT) == [other, own]


def test_a_file_is_mirrored_by_the_tests_of_its_name() -> None:
    mirrors = mirror_files("kit/commands/config/set.py", ROOT)

    assert mirrors == ["tests/kit/commands/test_config_set.py", "tests/kit/commands/test_config.py"]


def test_of_the_tests_that_run_a_function_the_most_promising_ones_are_tried() -> None:
    own = "tests/kit/safety/test_lock.py::a"
    elsewhere = [f"tests/b.py::test_{number}" for number in range(1000)]
    coverage = CoverageByTest(
        seconds=dict.fromkeys([*elsewhere, own], 1.0),
        functions={"kit/safety/lock.py:Lock._take": [*elsewhere, own]},
    )

    tests = coverage.tests_for(mutant("Lock._take"), ROOT)

    assert len(tests) == 500
    assert tests[0] == own
