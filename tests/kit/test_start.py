"""The console script makes the process safe to work in before anything of ours is imported."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool import PROGRAM, __version__
from sampletool.kit.safety.signals import HANDLED
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.tool import COMMAND, Tool, ended
from tests.kit.added_command import start_added
from tests.kit.waiting import wait_until


def test_the_version_is_printed_after_the_name_of_the_tool_in_every_format(tool: Tool) -> None:
    assert tool("--version").text == tool("--json", "--version").text == f"{PROGRAM} {__version__}\n"


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_descriptors_do_no_harm(tool: Tool, workspace: Path, closed: tuple[int, ...]) -> None:
    closing = (
        "import os, sys\nfor fd in map(int, sys.argv[1].split(',')): os.close(fd)\nos.execv(sys.argv[2], sys.argv[2:])"
    )
    names = ",".join(map(str, closed))
    before = (workspace / "tool.toml").read_text()
    program = [sys.executable, "-c", closing, names, *COMMAND]
    # A fresh interpreter: it is the one that finds the descriptors closed.
    ran = ended(tool.start_fresh("config", "set", "a", "1", program=program))

    assert ran.status == 0, ran
    assert (workspace / "tool.toml").read_text() == before + "a = 1\n"
    assert ran.answer["ok"] if 1 not in closed else ran.stdout == b""


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_no_file_that_is_opened_later_becomes_a_standard_descriptor(tool: Tool, closed: tuple[int, ...]) -> None:
    code = f"""
import os, sys
for descriptor in {closed}:
    os.close(descriptor)
sys.version_info = (3, 10)  # it opens nothing else then
from sampletool.kit.start import main
main()
os._exit(os.open(os.devnull, os.O_RDONLY))
"""

    assert run_python("-c", code, env=tool.environ, check=False).returncode == 3


def test_an_old_python_is_refused_in_one_line_of_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sampletool.kit import start

    monkeypatch.setattr(sys, "version_info", (3, 8, 10))
    monkeypatch.setattr(sys, "argv", ["tool", "config", "list"])
    monkeypatch.setattr(os, "_exit", sys.exit)
    sigint = signal.getsignal(signal.SIGINT)

    status = start.main()

    said = capsys.readouterr().out
    assert '"PYTHON_TOO_OLD"' in said
    answer = json.loads(said)
    assert status == answer["error"]["exit_code"] == 4
    signal.signal(signal.SIGINT, sigint)


def test_ctrl_c_prints_no_traceback_of_ours_however_early_it_comes(tool: Tool) -> None:
    """Before the first line of the kit runs, an interrupt is Python's own: it says KeyboardInterrupt, or ignores it."""
    process = tool.start_fresh("config", "list")  # in a forked process everything is imported before it starts
    process.send_signal(signal.SIGINT)
    ran = ended(process)

    assert b"sampletool/kit/" not in ran.stderr
    assert ran.status in (-signal.SIGINT, 130) or b"KeyboardInterrupt" in ran.stderr


def test_an_interrupt_while_the_kit_is_imported_ends_the_call_without_a_word(tool: Tool) -> None:
    code = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "sampletool.kit.app": os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from sampletool.kit.start import main
main()
"""
    # A fresh interpreter: a forked one has imported the kit.
    ran = ended(tool.start_fresh(program=[sys.executable, "-c", code]))

    assert (ran.status, ran.stderr) == (-signal.SIGINT, b"")


_BLOCK_SIGNALS = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT,
                                          signal.SIGTERM, signal.SIGCHLD})
"""
"""What a parent does before it starts the tool. The tool leaves SIGUSR1 as it is."""


@pytest.mark.parametrize("number", HANDLED, ids=lambda number: signal.Signals(number).name)
def test_a_signal_that_the_parent_has_blocked_ends_the_command(
    tool: Tool, workspace: Path, number: signal.Signals
) -> None:
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        # A fresh interpreter, started by a real parent. It waits for the value on stdin.
        process = tool.start_fresh("config", "set", "key", "-")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
    # The handler of SIGTERM is installed last. For SIGINT, Python has a handler of its own before.
    wait_until(lambda: _has_handler(process.pid, signal.SIGTERM))

    process.send_signal(number)
    ran = ended(process)

    assert (ran.status, ran.code) == (-number, "INTERRUPTED")


def _has_handler(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    (caught_signals,) = re.findall(r"SigCgt:\s*(\w+)", status)
    return bool(int(caught_signals, 16) & 1 << (number - 1))


def test_children_do_not_inherit_the_signals_that_the_parent_has_blocked(tool: Tool) -> None:
    body = """
with Children(context.signals) as children:
    children.start("status", ["grep", "SigBlk", "/proc/self/status"], cwd=Path("/"), env=os.environ)
    ended = children.next_exit()
return Result(ended.output_tail)
"""
    process = start_added(tool, body, before=_BLOCK_SIGNALS)

    ran = ended(process)

    only_usr1 = 1 << (signal.SIGUSR1 - 1)
    (blocked_signals,) = re.findall(r"SigBlk:\s*(\w+)", ran.data["said"])
    assert int(blocked_signals, 16) == only_usr1


_CHILD_THAT_REPORTS_SIGTERM = r"""
import os, signal, time

def report(number, frame):
    os.write(1, b"terminated\n")
    os._exit(0)

signal.signal(signal.SIGTERM, report)
os.write(1, b"ready\n")
while True:
    time.sleep(0.01)
"""
"""Not a shell script: some shells unblock the signals that they inherited as blocked."""


def test_at_the_deadline_a_child_gets_the_sigterm_that_the_parent_has_blocked(tool: Tool, tmp_path: Path) -> None:
    """A child that does not get it is killed after 5 s, so `--timeout 500ms` would take 5.5 s."""
    log = tmp_path / "log"
    body = f"""
log = Path({str(log)!r})
program = [sys.executable, "-S", "-c", {_CHILD_THAT_REPORTS_SIGTERM!r}]
with Children(context.signals) as children:
    children.start("child", program, cwd=Path("/"), env=os.environ, make_log_path=lambda: log)
    while not (log.exists() and "ready" in log.read_text()):
        children.next_exit(within_seconds=0.01)
    context.signals.limit(0)
    children.next_exit()
"""
    process = start_added(tool, body, before=_BLOCK_SIGNALS)

    ran = ended(process)

    assert ran.code == "TIMEOUT"
    assert log.read_text() == "ready\nterminated\n"


def test_a_thread_that_is_left_behind_does_not_keep_the_call_from_ending(tool: Tool) -> None:
    body = """
import sys, threading
sys.stderr.write("half a line")
threading.Thread(target=threading.Event().wait).start()
return Result("done")
"""
    ran = ended(start_added(tool, body))

    assert (ran.data, ran.stderr) == ({"said": "done"}, b"half a line")


def test_it_runs_as_a_module_and_as_a_script() -> None:
    script = Path(sys.executable).with_name("tool")
    if not script.exists():
        pytest.skip("the package is not installed here")

    for command in ([str(script)], COMMAND):  # the entry points themselves, so no forked process
        ran = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, env=dict(os.environ))
        assert ran.stdout == f"{PROGRAM} {__version__}\n"
