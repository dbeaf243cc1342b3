"""A forked process is like one that subprocess starts, except for what fork_server.py lists."""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.project import ROOT
from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.kit.stepping.forked_process import FILE, ForkedProcess
from sampletool.kit.testing.forked import function_program, run_python, start_python
from sampletool.kit.testing.waiting import wait_until

_LONGEST_SECONDS = 60
_LOST_OUTPUT = 120

_DESCRIBE = """
import gc, json, logging, os, random, signal, sys, threading, time, warnings
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "argv": sys.argv,
    "cwd": os.getcwd(),
    "environ": sorted(os.environ.items()),
    "first place of modules": sys.path[0],
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1],
    "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "masks": [status[name] for name in ("SigBlk", "SigIgn", "SigCgt", "ShdPnd")],
    "wakeup": signal.set_wakeup_fd(-1),
    "threads": [thread.name for thread in threading.enumerate()],
    "tasks": len(os.listdir("/proc/self/task")),
    "gc": gc.isenabled(),
    "handlers": [str(handler) for handler in logging.root.handlers],
    "name": __name__,
    "zone": time.strftime("%Z", time.localtime(0)),
    "streams": [[stream.isatty(), stream.line_buffering, stream.encoding, stream.errors]
                for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "stdin": sys.stdin.read(),
}))
"""
"""The last of the descriptors is that of the listing itself."""


@pytest.fixture(scope="module")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """One that has loaded nothing, with a zone, a home and arguments of its own."""
    # The interpreter reads LC_ALL before it runs anything: it is the same for all processes here.
    environ = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "TZ": "Asia/Tokyo",
        "ONLY_THE_SERVER_S": "1",
    }
    environ["PYTHONPATH"] = str(ROOT)
    with ForkServer(["logging", "random"], environ) as server:
        yield server


@pytest.mark.parametrize("form", ["-m", "-c", "script"])
def test_what_a_program_sees_is_what_it_sees_in_a_fresh_process(
    fork_server: ForkServer, tmp_path: Path, form: str
) -> None:
    (tmp_path / "describe.py").write_text(_DESCRIBE)
    words = {
        "-m": ["-m", "describe"],
        "-c": ["-c", _DESCRIBE],
        "script": [str(tmp_path / "describe.py")],
    }[form]
    environ = {
        **fork_server.env,
        "HOME": os.environ["HOME"],
        "TZ": "America/Lima",
        "ONLY_ITS_OWN": "é\udcff",
    }
    del environ["ONLY_THE_SERVER_S"]
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)

    with (
        subprocess.Popen(
            [sys.executable, *words, "word", ""],
            env=environ,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as fresh,
        fork_server.start(
            [*words, "word", ""], env=environ, cwd=tmp_path, stdin=subprocess.PIPE
        ) as forked,
    ):
        expected = fresh.communicate(b"given", _LONGEST_SECONDS)[0]
        seen = forked.communicate(b"given", _LONGEST_SECONDS)

    os.close(reading)
    os.close(writing)
    assert json.loads(seen[0]) == json.loads(expected)


_ENDS = {
    "at its end": "print('said', end='')",
    "exit without a code": "import sys; sys.exit()",
    "a code": "import sys; sys.exit(300)",
    "a text": "import sys; sys.exit('why')",
    "an error": "1 / 0",
    "an interrupt": (
        "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
    ),
    "a signal": "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "a thread": (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()"
    ),
    "a function for the end": "import atexit; atexit.register(print, 'at the end')",
    "an output that it has closed": "import sys; print('said'); sys.stdout.close()",
    "an output that is full": "import sys; sys.stdout = open('/dev/full', 'w'); print('lost')",
    "a closed pipe": "import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')",
}


@pytest.mark.parametrize("source", _ENDS.values(), ids=_ENDS)
def test_it_exits_as_a_fresh_process_does(fork_server: ForkServer, source: str) -> None:
    fresh = subprocess.run([sys.executable, "-c", source], capture_output=True, check=False)
    with fork_server.start(["-c", source], env=os.environ) as forked:
        stdout, stderr = forked.communicate(timeout=_LONGEST_SECONDS)

    assert (forked.returncode, stdout) == (fresh.returncode, fresh.stdout)
    if fresh.returncode != _LOST_OUTPUT:  # what is said of that differs with the version of Python
        assert frames_and_error(stderr) == frames_and_error(fresh.stderr)


def frames_and_error(text: bytes) -> list[bytes]:
    """Return the lines of a traceback without the source, which some versions of Python show."""
    return [line for line in text.splitlines() if not line.startswith(b"    ")]


def start(fork_server: ForkServer, source: str, *words: str, **how: Any) -> ForkedProcess:
    return fork_server.start(["-c", source, *words], **how)


def test_two_processes_draw_different_random_numbers(fork_server: ForkServer) -> None:
    source = "import random; print(random.random())"
    drawn = [start(fork_server, source).communicate(timeout=_LONGEST_SECONDS)[0] for _ in range(2)]

    assert drawn[0] != drawn[1]


def test_any_length_of_input_and_output_is_passed_on_at_the_same_time(
    fork_server: ForkServer,
) -> None:
    echo = (
        "import sys\n"
        "for line in sys.stdin.buffer:\n"
        "    sys.stdout.buffer.write(line)\n"
        "    sys.stderr.buffer.write(line)\n"
    )
    given = b"x" * 999 + b"\n"

    process = start(fork_server, echo, stdin=subprocess.PIPE)
    stdout, stderr = process.communicate(given * 1000, _LONGEST_SECONDS)

    assert stdout == stderr == given * 1000


def test_an_output_into_a_file_needs_no_reader_and_waits_for_no_child(
    fork_server: ForkServer,
) -> None:
    source = (
        "import subprocess, sys\n"
        "print('x' * 500_000, flush=True)\n"
        "subprocess.Popen(['sleep', '60'])\n"
    )

    process = start(fork_server, source, stdout=FILE, stderr=FILE, new_group=True)
    process.wait(_LONGEST_SECONDS)
    stdout, _ = process.communicate(timeout=_LONGEST_SECONDS)
    os.killpg(process.pid, signal.SIGKILL)

    assert stdout == b"x" * 500_000 + b"\n"


def test_at_a_terminal_a_line_is_written_when_it_is_complete(fork_server: ForkServer) -> None:
    """The streams of the server have looked at its own descriptors, which are no terminal."""
    ours, terminal = os.openpty()
    source = "import sys; print('one'); sys.stdin.read()"

    process = start(fork_server, source, stdin=subprocess.PIPE, stdout=terminal)
    os.close(terminal)
    is_written = bool(select.select([ours], [], [], _LONGEST_SECONDS)[0]) and process.poll() is None
    process.communicate(timeout=_LONGEST_SECONDS)
    os.close(ours)

    assert is_written


@pytest.mark.parametrize("target", [subprocess.PIPE, FILE])
def test_who_asks_again_gets_the_same_and_a_stream_may_be_closed_before(
    fork_server: ForkServer, target: int
) -> None:
    process = start(fork_server, "print('said')", stdout=target)
    assert process.stderr is not None
    process.stderr.close()

    answers = [process.communicate(timeout=_LONGEST_SECONDS) for _ in range(2)]

    assert answers == [(b"said\n", b"")] * 2


def test_both_outputs_may_be_one(fork_server: ForkServer) -> None:
    source = "import os; os.write(1, b'a'); os.write(2, b'b'); os.write(1, b'c')"

    process = start(fork_server, source, stderr=subprocess.STDOUT)

    assert process.communicate(timeout=_LONGEST_SECONDS) == (b"abc", b"")


def test_a_reader_who_stops_waiting_can_go_on_and_has_lost_nothing(fork_server: ForkServer) -> None:
    source = "import sys; print('one', flush=True); sys.stdin.read(1); print('two')"
    going, goes = os.pipe()
    process = start(fork_server, source, stdin=going)
    os.close(going)

    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=0.5)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    assert process.poll() is None
    os.close(goes)

    assert process.communicate(timeout=_LONGEST_SECONDS) == (b"one\ntwo\n", b"")
    assert process.poll() == 0


def test_the_end_of_a_pipe_is_seen_while_a_later_process_runs(fork_server: ForkServer) -> None:
    """A later one that had inherited our end of the pipe would keep it open."""
    wait = "import sys; sys.stdin.read()"
    with (
        start(fork_server, wait, stdin=subprocess.PIPE) as early,
        start(fork_server, wait, stdin=subprocess.PIPE) as late,
    ):
        assert early.stdin is not None
        early.stdin.close()

        assert early.wait(_LONGEST_SECONDS) == 0
        assert late.poll() is None


def test_descriptors_keep_their_numbers_also_where_the_server_has_others(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    with (tmp_path / "one").open("w") as one, (tmp_path / "other").open("w") as other:
        numbers = []
        for _ in range(12):
            # Enough of them to meet the numbers under which the server receives the others.
            numbers += [fcntl.fcntl(file.fileno(), fcntl.F_DUPFD, 10) for file in (one, other)]
        source = (
            "import os, sys\n"
            "for fd in sys.argv[1:]:\n"
            "    os.write(int(fd), os.readlink(f'/proc/self/fd/{fd}').encode())\n"
        )

        words = [str(number) for number in numbers]
        process = start(fork_server, source, *words, pass_fds=numbers)
        _, stderr = process.communicate(timeout=_LONGEST_SECONDS)
        for number in numbers:
            os.close(number)

    assert (process.returncode, stderr) == (0, b"")
    for name in ("one", "other"):
        assert (tmp_path / name).read_text() == str(tmp_path / name) * 12


@pytest.mark.parametrize("how", ["new_group", "new_session"])
def test_it_has_its_group_and_its_directory_when_start_returns(
    fork_server: ForkServer, tmp_path: Path, how: str
) -> None:
    for _ in range(5):
        process = start(
            fork_server,
            "import sys; sys.stdin.read()",
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            **{how: True},
        )

        group, session = os.getpgid(process.pid), os.getsid(process.pid)
        directory = os.readlink(f"/proc/{process.pid}/cwd")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=_LONGEST_SECONDS)

        assert (group, directory) == (process.pid, str(tmp_path))
        assert (session == process.pid) == (how == "new_session")


def test_nobody_begins_before_the_gate_opens(fork_server: ForkServer, tmp_path: Path) -> None:
    gate, opener = os.pipe()
    begin = "import sys; open(sys.argv[1], 'w')"
    processes = [start(fork_server, begin, str(tmp_path / name), gate=gate) for name in "ab"]
    os.close(gate)
    for process in processes:
        wait_channel = Path(f"/proc/{process.pid}/wchan")
        wait_until(lambda file=wait_channel: "pipe" in file.read_text())  # type: ignore[misc]
    begun_before = [*tmp_path.glob("[ab]")]
    os.close(opener)
    exits = [process.wait(_LONGEST_SECONDS) for process in processes]
    for process in processes:
        process.communicate()

    assert begun_before == []
    assert exits == [0, 0]
    assert len([*tmp_path.glob("[ab]")]) == 2


def test_a_directory_that_does_not_exist_is_an_error_of_who_starts(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        start(fork_server, "", cwd=tmp_path / "nowhere")

    assert start(fork_server, "print(1)").communicate(timeout=_LONGEST_SECONDS) == (b"1\n", b"")


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    # ProcessLookupError: the process has been reaped between the opening and the reading.
    except (FileNotFoundError, ProcessLookupError):
        return "none"


def test_the_pid_is_its_own_until_somebody_has_waited(fork_server: ForkServer) -> None:
    process = start(fork_server, "")
    wait_until(lambda: state_of(process.pid) == "Z")
    process.send_signal(signal.SIGTERM)

    exit_code = process.wait(_LONGEST_SECONDS)

    assert exit_code == 0
    assert state_of(process.pid) == "none"
    process.communicate()


def test_after_the_wait_no_signal_goes_to_whoever_has_the_pid_then(fork_server: ForkServer) -> None:
    with (
        start(fork_server, "") as process,
        start(fork_server, "import sys; sys.stdin.read()", stdin=subprocess.PIPE) as other,
    ):
        process.wait(_LONGEST_SECONDS)
        process.pid = other.pid

        process.kill()

        assert other.communicate(timeout=_LONGEST_SECONDS) == (b"", b"")
        assert other.returncode == 0


def test_a_process_that_nobody_waits_for_is_no_zombie_for_long(fork_server: ForkServer) -> None:
    process = start(fork_server, "import sys; sys.stdin.read()", stdin=subprocess.PIPE)
    assert process.stdin is not None

    process.exit_socket.close()
    process.stdin.close()

    wait_until(lambda: state_of(process.pid) == "none")
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def test_a_module_that_is_loaded_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "counted.py").write_text(
        f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\ndef add(a, b): print(a + b)\n"
    )
    environ = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{tmp_path}"}

    with ForkServer([], environ) as fork_server:
        fork_server.load("counted")
        fork_server.load("counted")
        said = [
            start(fork_server, "import counted; counted.add(1, 2)").communicate()[0]
            for _ in range(2)
        ]

    assert said == [b"3\n", b"3\n"]
    assert (tmp_path / "runs").read_text() == "x"


def test_a_module_that_is_loaded_can_be_a_program(fork_server: ForkServer) -> None:
    """A fresh process has not imported it under its own name, of which runpy would warn."""
    fork_server.load("json.tool")

    with fork_server.start(["-m", "json.tool", "--compact"], stdin=subprocess.PIPE) as process:
        assert process.communicate(b"[1, 2]", _LONGEST_SECONDS) == (b"[1,2]\n", b"")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)", "changes signal handlers"),
        ("1 / 0", "ZeroDivision"),
    ],
)
def test_a_module_that_changes_the_process_or_fails_is_not_loaded(
    tmp_path: Path, source: str, why: str
) -> None:
    (tmp_path / "wrong.py").write_text(source)
    environ = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{tmp_path}"}

    with ForkServer([], environ) as fork_server, pytest.raises(OSError, match=why):
        fork_server.load("wrong")


def test_what_was_forked_runs_on_when_the_server_has_exited() -> None:
    with ForkServer([]) as fork_server:
        process = start(
            fork_server,
            "import sys; sys.stdin.read(); print('done')",
            stdin=subprocess.PIPE,
            stdout=FILE,
        )
    assert process.stdin is not None
    os.kill(process.pid, 0)

    process.stdin.close()

    wait_until(lambda: state_of(process.pid) in ("none", "Z"))
    assert process.communicate()[0] == b"done\n"
    assert process.returncode == -signal.SIGKILL, "nobody can tell how it exited"


def test_a_program_of_a_test_is_run_to_its_end() -> None:
    ran = run_python(
        "-c", "import sys; print(sys.argv[1], sys.stdin.read())", "word", stdin="given"
    )

    assert ran.stdout == "word given\n"
    with pytest.raises(subprocess.CalledProcessError):
        run_python("-c", "import sys; sys.exit(3)")


def test_a_function_is_called_by_its_name() -> None:
    with start_python(*function_program("json:dump", [1, "a"], None)) as process:
        _, stderr = process.communicate(timeout=_LONGEST_SECONDS)

    assert stderr.endswith(b"AttributeError: 'NoneType' object has no attribute 'write'\n")
