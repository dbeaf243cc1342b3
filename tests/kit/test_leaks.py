"""kit/testing/leaks.py: a test that leaves something behind fails.

The test here runs pytest once, with a test for each kind of leak, a marked test and clean tests.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.testing.trees import FEW_PLUGINS

_TESTS = """
import os, pathlib, subprocess, tempfile, threading, time
import pytest
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing import leaks
from sampletool.kit.testing.leaks import outlives_the_test

leaks.EXIT_SECONDS = 0.5
KEPT = []

def litter(directory):
    (directory / "deep").mkdir()
    (directory / "deep" / ".tool.toml.12-0123abcd.tmp").touch()

def test_descriptor():
    KEPT.append(os.open(__file__, os.O_RDONLY))

def test_descriptor_with_a_number_that_was_in_use():
    with open(os.devnull) as null:
        os.dup2(null.fileno(), KEPT[0])

def test_child():
    KEPT.append(subprocess.Popen(["sleep", "600"]))

def test_child_that_was_not_waited_for():
    child = subprocess.Popen(["sleep", "600"])
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    KEPT.append(child)

def test_orphan():
    subprocess.run(["sh", "-c", "sleep 600 &"], check=True)

def test_orphan_of_a_forked_process():
    run_python("-c", "import os, time\\nif os.fork() == 0: time.sleep(600)")

def test_thread():
    KEPT.append(threading.Event())
    threading.Thread(target=KEPT[-1].wait, name="left behind", daemon=True).start()

def test_file(tmp_path):
    litter(tmp_path)

def test_file_in_the_temporary_directory():
    (pathlib.Path(tempfile.gettempdir()) / "any name").touch()

def test_file_in_a_temporary_directory_of_all():
    tempfile.mkdtemp(dir=pathlib.Path(__file__).parent, prefix="elsewhere-")

@pytest.fixture
def closed_later():
    descriptor = os.open(__file__, os.O_RDONLY)
    yield
    os.close(descriptor)

def test_clean_closed_by_a_fixture(closed_later, monkeypatch):
    monkeypatch.setattr(os, "readlink", None)

def test_clean_where_a_process_and_a_thread_are_just_ending():
    leaks.EXIT_SECONDS = 60.0  # on a busy machine, too
    subprocess.run(["sh", "-c", "sleep 0.2 &"], check=True)
    threading.Thread(target=time.sleep, args=(0.2,)).start()

@pytest.fixture(scope="module")
def made_for_more_than_one_test():
    descriptor = os.open(__file__, os.O_RDONLY)
    yield
    os.close(descriptor)

def test_clean_with_what_a_wider_fixture_has_made(request):
    request.getfixturevalue("made_for_more_than_one_test")

def test_clean_with_what_outlives_it():
    with outlives_the_test():
        KEPT.append(os.open(__file__, os.O_RDONLY))

@pytest.mark.leaves_litter
def test_clean_with_a_mark(tmp_path):
    litter(tmp_path)
"""

_FORKED = "started by the fork server (see sampletool/kit/testing/forked.py)"
_EXPECTED = {
    "test_descriptor": "descriptor N is still open: PROJECT/test_it.py",
    "test_descriptor_with_a_number_that_was_in_use": "descriptor N is still open: /dev/null",
    "test_child": "child process N is still running: sleep N",
    "test_child_that_was_not_waited_for": (
        "child process N has exited, and nobody has waited for it"
    ),
    "test_orphan": "process N, whose parent has exited, is still running: sleep N",
    "test_orphan_of_a_forked_process": (
        f"process N, whose parent has exited, is still running: {_FORKED}"
    ),
    "test_thread": "thread N is still running: left behind",
    "test_file": "file TEST/deep/.tool.toml.N-Nabcd.tmp is still there",
    "test_file_in_the_temporary_directory": "file TEST/home/tmpdir/any name is still there",
    "test_file_in_a_temporary_directory_of_all": "file PROJECT/elsewhere-",
}


@pytest.mark.leaves_litter
def test_each_leak_fails_its_test_and_names_it_unless_the_test_is_marked(
    tmp_path: Path,
) -> None:
    """The inner run kills the processes that its tests leave. Otherwise, this test would fail."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["sampletool.kit.testing.plugin"]\n')
    (tmp_path / "test_it.py").write_text(_TESTS)
    pytest_here = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *FEW_PLUGINS]
    options = [
        "--rootdir",
        str(tmp_path),
        "--basetemp",
        str(tmp_path / "inner"),
        "-o",
        "markers=leaves_litter: a mark",
    ]

    ran = subprocess.run(
        [*pytest_here, *options, "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    said = re.sub(rf"{re.escape(str(tmp_path))}/inner/\w+", "TEST", ran.stdout)
    said = re.sub("[0-9]+", "N", said.replace(str(tmp_path), "PROJECT"))
    assert [
        name
        for name, leak in _EXPECTED.items()
        if f"\n{name} leaves something behind:\n{leak}" not in said
    ] == []
    assert re.findall(r"^ERROR test_it.py::(\w+)", said, re.MULTILINE) == [*_EXPECTED]
    assert f"{_TESTS.count('def test_')} passed, {len(_EXPECTED)} errors" in ran.stdout
