"""sampletool/kit/start.py: it makes the process safe before the rest of the tool is imported."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool import PROGRAM, __version__
from sampletool.kit import start
from sampletool.kit.program import PACKAGE
from sampletool.kit.safety.signals import HANDLED
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.probe import start_probe
from sampletool.kit.testing.schema import problems_of
from sampletool.kit.testing.tool import COMMAND, Tool, ended
from sampletool.kit.testing.waiting import wait_until

# Standard descriptors that are closed


def test_the_version_is_printed_after_the_name_of_the_tool_in_every_format(tool: Tool) -> None:
    assert tool("--version").text == f"{PROGRAM} {__version__}\n"
    assert tool("--json", "--version").text == f"{PROGRAM} {__version__}\n"


_CLOSE_AND_EXECUTE = """
import os, sys
for descriptor in map(int, sys.argv[1].split(",")):
    os.close(descriptor)
os.execv(sys.argv[2], sys.argv[2:])
"""

_CLOSED = [(0,), (1,), (2,), (0, 1, 2)]


@pytest.mark.parametrize("closed", _CLOSED)
def test_a_command_does_its_work_although_standard_descriptors_are_closed(
    tool: Tool,
    workspace: Path,
    closed: tuple[int, ...],
) -> None:
    before = (workspace / "tool.toml").read_text()
    names = ",".join(str(descriptor) for descriptor in closed)
    program = [sys.executable, "-c", _CLOSE_AND_EXECUTE, names, *COMMAND]

    # A fresh interpreter, which finds the descriptors closed.
    ran = ended(tool.start_fresh("config", "set", "a", "1", program=program))

    assert ran.status == 0, ran
    assert (workspace / "tool.toml").read_text() == before + "a = 1\n"
    if 1 in closed:
        assert ran.stdout == b""
    else:
        assert ran.response["ok"]


@pytest.mark.parametrize("closed", _CLOSED)
def test_no_file_that_is_opened_later_becomes_a_standard_descriptor(
    tool: Tool,
    closed: tuple[int, ...],
) -> None:
    # With an old Python, start.py opens no other file.
    program = f"""
import os, sys
for descriptor in {closed}:
    os.close(descriptor)
sys.version_info = (3, 10)
from sampletool.kit.start import main
main("sampletool")
os._exit(os.open(os.devnull, os.O_RDONLY))
"""

    completed = run_python("-c", program, env=tool.environ, check=False)

    first_free_descriptor = 3
    assert completed.returncode == first_free_descriptor


def test_children_inherit_the_descriptors_that_were_opened() -> None:
    program = """
import os
from sampletool.kit import start
os.close(0)
start._open_closed_descriptors()
print(os.get_inheritable(0), os.path.samefile("/dev/fd/0", os.devnull))
"""

    assert run_python("-c", program).stdout == "True True\n"


class _BrokenStream:
    """A stream that cannot be flushed."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def flush(self) -> None:
        """Fail."""
        raise self._error


class _FlushedStream:
    """A stream that knows whether it was flushed."""

    is_flushed = False

    def flush(self) -> None:
        """Remember it."""
        self.is_flushed = True


@pytest.mark.parametrize("broken", ["stdout", "stderr"])
@pytest.mark.parametrize("error", [None, OSError(), ValueError()], ids=repr)
def test_a_stream_that_cannot_be_flushed_does_not_change_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
    error: Exception | None,
) -> None:
    """If the error is None, the stream is None: its descriptor was closed before the start."""
    flushed = _FlushedStream()
    exit_codes: list[int] = []
    problem = None
    with monkeypatch.context() as patched:
        patched.setattr(os, "_exit", exit_codes.append)
        patched.setattr(sys, "stdout", flushed)
        patched.setattr(sys, "stderr", flushed)
        patched.setattr(sys, broken, None if error is None else _BrokenStream(error))

        try:
            start._end_process(3)
        except Exception as raised:
            problem = raised

    assert problem is None
    assert exit_codes == [3]
    assert flushed.is_flushed


# Where the tool cannot run

_WITH_OLD_PYTHON = """
import sys
sys.version_info = (3, 10, 9)
sys.argv = ["tool", "config", "list"]
from sampletool.kit.start import main
sys.exit(main("sampletool"))
"""


def test_an_old_python_is_refused_in_one_line_of_json(tool: Tool) -> None:
    completed = run_python("-c", _WITH_OLD_PYTHON, env=tool.environ, check=False)

    assert completed.stderr == ""
    assert completed.stdout.endswith("\n")
    (line,) = completed.stdout.splitlines()
    answer = json.loads(line)
    assert not answer["ok"]
    error = answer["error"]
    assert error["code"] == "PYTHON_TOO_OLD"
    assert error["message"] == "The tool needs Python 3.11 or newer. This is Python 3.10.9."
    assert error["context"] == {"found": "3.10.9", "required": ">=3.11"}
    assert error["suggestion"] == "Install the tool with a newer Python."
    assert error["retryable"] is False
    assert (answer["data"], answer["warnings"]) == (None, [])
    assert answer["meta"]["exit_code"] == 4
    assert completed.returncode == error["exit_code"] == 4


def test_windows_is_refused_before_anything_else_is_tried(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(start, "_reset_signals", lambda: pytest.fail("signals do not exist there"))

    exit_code = start.main(PACKAGE)

    error = json.loads(capfd.readouterr().out)["error"]
    assert exit_code == error["exit_code"] == 4
    assert error["code"] == "PLATFORM_NOT_SUPPORTED"
    assert error["message"] == "The tool needs Linux or macOS. This is Windows."
    assert error["suggestion"].startswith("Run the tool in WSL")
    assert error["context"] == {"found": "Windows", "required": "Linux or macOS"}


def test_the_error_for_an_old_python_has_the_members_of_every_error(tool: Tool) -> None:
    completed = run_python("-c", _WITH_OLD_PYTHON, env=tool.environ, check=False)

    ordinary = tool("config", "get", "no-such-key").response
    answer = json.loads(completed.stdout)
    assert answer.keys() == ordinary.keys()
    # The ordinary error has a hint that is a command.
    assert answer["error"].keys() == ordinary["error"].keys() - {"fix_command"}
    assert problems_of(answer) == []


def test_the_error_for_an_old_python_is_about_the_same_tool_and_schema(tool: Tool) -> None:
    completed = run_python("-c", _WITH_OLD_PYTHON, env=tool.environ, check=False)

    meta = json.loads(completed.stdout)["meta"]
    ordinary = tool("config", "list").meta
    shared = ("schema_version", "tool_version")
    assert [meta[name] for name in shared] == [ordinary[name] for name in shared]
    assert len(meta["request_id"]) == len(ordinary["request_id"])


# Signals


def test_ctrl_c_prints_no_traceback_of_ours_however_early_it_comes(tool: Tool) -> None:
    """Before the first line of the kit runs, Python itself handles the interrupt.

    It prints KeyboardInterrupt, or ignores the signal.
    """
    # A fresh interpreter: a forked one has imported everything before it starts.
    process = tool.start_fresh("config", "list")
    process.send_signal(signal.SIGINT)
    ran = ended(process)

    assert b"sampletool/kit/" not in ran.stderr
    assert ran.status in (-signal.SIGINT, 130) or b"KeyboardInterrupt" in ran.stderr


_INTERRUPT_ITS_FIRST_IMPORT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name not in ("sampletool", "sampletool.kit", "sampletool.kit.start", "gc"):
            os.kill(os.getpid(), signal.SIGINT)

# These would be found in the list of imported modules.
for name in ("enum", "signal", "contextlib", "json"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Interrupting())
from sampletool.kit.start import main
main("sampletool")
"""


def test_an_interrupt_while_the_kit_is_imported_ends_the_command_without_a_traceback(
    tool: Tool,
) -> None:
    """The interrupt comes with the first file that start.py imports, directly or not."""
    # A fresh interpreter: a forked one has imported the kit.
    program = [sys.executable, "-c", _INTERRUPT_ITS_FIRST_IMPORT]

    ran = ended(tool.start_fresh(program=program))

    assert (ran.status, ran.stderr) == (-signal.SIGINT, b"")


def test_an_interrupt_that_the_parent_ignores_stays_ignored(tool: Tool) -> None:
    """So a command that was started with `nohup` or `&` is not ended by Ctrl-C."""
    body = "return Result(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"

    ran = ended(start_probe(tool, body, before=ignore))

    assert ran.data == {"said": True}


_BLOCK_SIGNALS = """
import signal
names = ["SIGUSR1", "SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGCHLD"]
signal.pthread_sigmask(signal.SIG_BLOCK, [getattr(signal, name) for name in names])
"""
"""What a parent does before it starts the tool. The tool leaves SIGUSR1 as it is."""


@pytest.mark.parametrize("number", HANDLED, ids=lambda number: signal.Signals(number).name)
def test_a_signal_that_the_parent_has_blocked_ends_the_command(
    tool: Tool,
    workspace: Path,
    number: signal.Signals,
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
    process = start_probe(tool, body, before=_BLOCK_SIGNALS)

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


def test_at_the_deadline_a_child_gets_the_sigterm_that_the_parent_has_blocked(
    tool: Tool,
    tmp_path: Path,
) -> None:
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
    process = start_probe(tool, body, before=_BLOCK_SIGNALS)

    ran = ended(process)

    assert ran.code == "TIMEOUT"
    assert log.read_text() == "ready\nterminated\n"


# The end of the process


def test_a_thread_that_is_left_behind_does_not_keep_the_process_running(tool: Tool) -> None:
    body = """
import sys, threading
sys.stderr.write("half a line")
threading.Thread(target=threading.Event().wait).start()
return Result("done")
"""

    ran = ended(start_probe(tool, body))

    assert (ran.data, ran.stderr) == ({"said": "done"}, b"half a line")


# The entry points


def test_the_tool_runs_as_a_module_and_as_a_script() -> None:
    script = Path(sys.executable).with_name("tool")
    if not script.exists():
        pytest.skip("the package is not installed here")

    # No forked process, because this is about the entry points themselves.
    for command in ([str(script)], COMMAND):
        completed = subprocess.run(
            [*command, "--version"],
            capture_output=True,
            text=True,
            check=True,
            env=dict(os.environ),
        )
        assert completed.stdout == f"{PROGRAM} {__version__}\n"
