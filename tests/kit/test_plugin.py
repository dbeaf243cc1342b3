"""What every test gets, however the suite was started and however the test ends."""

import re
import subprocess
import sys
from pathlib import Path

from sampletool.kit.safety.processes import is_running
from sampletool.kit.testing.trees import FEW_PLUGINS

_TESTS = """
import pathlib, signal, subprocess

def test_what_it_starts_obeys_signals():
    child = subprocess.Popen(["sleep", "600"])
    child.send_signal(signal.SIGINT)
    assert child.wait(20) == -signal.SIGINT

def test_that_fails():
    child = subprocess.Popen(["sleep", "600"])
    child.send_signal(signal.SIGSTOP)
    pathlib.Path(__file__).with_name("left").write_text(str(child.pid))
    assert False
"""


def test_a_suite_that_ignores_signals_tests_as_any_other_and_a_test_that_fails_leaves_no_process(
    tmp_path: Path,
) -> None:
    """As with nohup or `&`: naive is that all that the suite starts ignores them too."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["sampletool.kit.testing.plugin"]\n')
    (tmp_path / "test_it.py").write_text(_TESTS)
    pytest_here = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *FEW_PLUGINS]
    ignoring = ["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh"]

    ran = subprocess.run(
        [*ignoring, *pytest_here, "--rootdir", str(tmp_path), "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "1 failed, 1 passed" in ran.stdout
    assert re.search(r"slowest tests .*\n +\d+\.\d\d s  test_it.py::test_", ran.stdout)
    assert re.search(
        r"^2 tests took \d+ s, and \d+ s of processor time\.$", ran.stdout, re.MULTILINE
    )
    assert "test_that_fails" in ran.stdout
    assert not is_running(int((tmp_path / "left").read_text()))
