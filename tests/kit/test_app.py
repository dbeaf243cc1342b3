"""The door: one answer on stdout, whatever happens."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.app import main, run_in_process
from sampletool.kit.safety.signals import HANDLED, Signals
from sampletool.kit.testing import console
from sampletool.kit.testing.forked import run_python, start_python
from sampletool.kit.testing.tool import COMMAND, Process, Ran, Tool, check_envelope, ended
from tests.kit.added_command import start_added

_LONGEST_SECONDS = 45
_WITH_COMMAND = """
import sys, types
import sampletool.kit.command_folder as folder
from sampletool.kit.contract.command_spec import CommandSpec
from dataclasses import dataclass
import typer

@dataclass(frozen=True)
class Result:
    said: object
    def lines(self): return [str(self.said)]

def command(ctx: typer.Context) -> Result:
    {body}

module = types.ModuleType("sampletool.kit.commands.probe")
module.spec, module.command = CommandSpec(effect="nothing"), command
sys.modules["sampletool.kit.commands.probe"] = module
names = folder._names_in
own = ["probe"]
folder._names_in = lambda package: names(package) + own * (package == "sampletool.kit.commands")
from sampletool.kit.start import main
sys.argv = ["tool", "probe", *sys.argv[1:]]
sys.exit(main())
"""


_NOISE = "import os; print('noise'); os.write(1, b'more'); os.system('echo most'); return Result(1)"


def with_command(tool: Tool, body: str, *args: str, **options: object) -> Ran:
    """The tool with one command more, whose body this is."""
    return ended(tool.start(*args, program=["-c", _WITH_COMMAND.format(body=body)]))


def test_progress_is_a_line_of_its_own_in_jsonl_and_nothing_elsewhere(tool: Tool) -> None:
    body = "ctx.obj.emit({'event': 'half'}); return Result(1)"

    lines = with_command(tool, body, "--format", "jsonl").stdout.splitlines()
    alone = with_command(tool, body, "--format", "json").response

    assert [json.loads(line).get("event") for line in lines] == ["half", None]
    assert (json.loads(lines[-1])["ok"], alone["ok"]) == (True, True)


def test_a_command_tells_who_watches_what_its_lock_is_held_for(tool: Tool) -> None:
    body = (
        "from pathlib import Path; context = ctx.obj\n"
        "    with context.hold(Path('x.lock').absolute(), 'x', 'exclusive', 1.0) as hold:\n"
        "        context.progress(f'at work with {len(hold.descriptors)}')\n"
        "    return Result(1)"
    )

    watched, alone = with_command(tool, body, "--verbose"), with_command(tool, body)

    assert [line.partition(" by ")[0] for line in watched.stderr.decode().splitlines()] == [
        "lock x: asked for", "lock x: got", "at work with 1", "lock x: released",
    ]  # fmt: skip
    assert ("waited_ms" in watched.meta, alone.stderr) == (True, b"")


def run(tool: Tool, *args: str, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE) -> Ran:
    """Run the tool with the file descriptors of a test's choice."""
    words = [*COMMAND[1:], *args]
    process = start_python(*words, cwd=tool.cwd, env=tool.environ, stdout=stdout, stderr=stderr)
    output, errors = process.communicate(timeout=_LONGEST_SECONDS)
    return Ran(process.wait(), output, errors)


def run_fresh(tool: Tool, *args: str | bytes) -> "subprocess.CompletedProcess[bytes]":
    """Run a program in an interpreter of its own."""
    return subprocess.run(
        args, cwd=tool.cwd, env=tool.environ, capture_output=True, timeout=_LONGEST_SECONDS, check=False
    )


def test_stdout_carries_one_answer_even_if_a_library_prints(tool: Tool) -> None:
    ran = with_command(
        tool, "import os; print('noise'); os.write(1, b'more'); os.system('echo most'); return Result(1)"
    )

    assert ran.data == {"said": 1}
    assert all(word in ran.stderr for word in (b"noise", b"more", b"most"))


def test_a_command_that_takes_stdout_has_it_for_itself_and_its_answer_is_on_stderr(tool: Tool) -> None:
    ran = with_command(
        tool, "import os; os.write(ctx.obj.take_stdout(), b'mine'); os.write(1, b'noise'); return Result(1)"
    )

    assert (ran.status, ran.stdout) == (0, b"mine")
    assert b'noise{"ok":true' in ran.stderr


def test_a_surprise_is_one_calm_line_and_a_report(tool: Tool) -> None:
    ran = with_command(tool, "raise KeyError('postgresql://u:hunter2@h/d')")

    assert (ran.status, ran.code) == (1, "INTERNAL_ERROR")
    assert b"Traceback" not in ran.stderr
    report = Path(ran.error["context"]["report"])
    assert "KeyError" in report.read_text()
    assert "hunter2" not in report.read_text()
    assert report.stat().st_mode & 0o077 == 0 or report.parent.stat().st_mode & 0o077 == 0


def test_where_no_report_can_be_kept_it_is_on_stderr(tool: Tool) -> None:
    (Path(tool.environ["TMPDIR"]) / f"tool-{os.geteuid()}").write_text("in the way")

    ran = with_command(tool, "raise KeyError('x')")

    assert ran.code == "INTERNAL_ERROR"
    assert b"KeyError" in ran.stderr


@pytest.mark.parametrize(
    "body",
    ["return None", "raise SystemExit(0)", "raise RecursionError", "raise MemoryError", "return Result(float('nan'))"],
)
def test_whatever_a_command_does_there_is_an_answer(tool: Tool, body: str) -> None:
    ran = with_command(tool, body)

    assert (ran.code, ran.meta.get("command")) == ("INTERNAL_ERROR", "probe")


def test_a_closed_pipe_changes_nothing(tool: Tool, workspace: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = run(tool, "config", "set", "a", "1", stdout=write)
    os.close(write)

    assert (ran.status, ran.stderr) == (0, b"")
    assert "a = 1" in (workspace / "tool.toml").read_text()


def test_a_closed_stderr_does_not_stop_a_change(tool: Tool, workspace: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = run(tool, "config", "set", "a", "1", "-v", stderr=write)
    os.close(write)

    assert ran.status == 0
    check_envelope(json.loads(ran.stdout))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_answer_that_cannot_be_written_is_a_line_on_stderr_and_status_1(tool: Tool, workspace: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = run(tool, "config", "path", stdout=full)

    assert ran.status == 1
    assert ran.stderr.count(b"\n") == 1
    assert b"No space left" in ran.stderr


def test_bytes_that_are_not_utf_8_are_shown_escaped(tool: Tool) -> None:
    # A fresh interpreter: it is the one that decodes its arguments.
    ran = run_fresh(tool, *COMMAND, b"config", b"get", b"caf\xe9")

    message = json.loads(ran.stdout)["error"]["message"]
    assert "caf\\xe9" in message


def test_text_that_the_terminal_cannot_show_is_escaped_not_fatal(tool: Tool) -> None:
    tool("config", "set", "name", "☃\x1b[31m\u202e")

    ran = tool("config", "get", "name", "--format", "text", LC_ALL="C", PYTHONIOENCODING="ascii")

    assert ran.status == 0
    assert ran.stdout.decode() == "☃\\x1b[31m\\u202e\n"


def test_json_is_ascii_on_one_line(tool: Tool) -> None:
    tool("config", "set", "name", "☃\n☃")

    ran = tool("config", "get", "name")

    assert ran.stdout.isascii()
    assert ran.data["value"] == "☃\n☃"


def test_a_deleted_current_directory_is_reported(tool: Tool, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    code = "import os, sys; p, *rest = sys.argv[1:]; os.mkdir(p); os.chdir(p); os.rmdir(p); os.execv(rest[0], rest)"

    # A fresh interpreter: it starts in a directory that does not exist.
    ran = run_fresh(tool, sys.executable, "-c", code, str(gone), *COMMAND, "config", "set", "a", "1")

    answer = json.loads(ran.stdout)
    assert answer["error"]["code"] == "FILE_NOT_FOUND"
    assert "current directory" in answer["error"]["message"]
    assert answer["error"]["context"] == {}
    assert "cwd" not in answer["meta"]


def on_terminal(tool: Tool, *args: str, **environ: str) -> str:
    """What a person at a terminal would see on stdout."""
    return console.on_terminal([*COMMAND, *args], tool.cwd, tool.environ | environ, stderr_too=True)


def test_a_person_gets_text_and_a_program_gets_json(tool: Tool) -> None:
    assert on_terminal(tool, "config", "get", "jobs") == "auto\n"
    assert on_terminal(tool, "config", "get", "jobs", "--json").startswith('{"ok":true')
    assert on_terminal(tool, "config", "get", "jobs", CI="true") == "auto\n"
    assert on_terminal(tool, "config", "get", "jobs", TOOL_FORMAT="json").startswith('{"ok":true')
    assert tool("config", "get", "jobs", TOOL_FORMAT="text").text == "auto\n"
    assert tool("config", "get", "jobs", "--json", TOOL_FORMAT="text").data["value"] == "auto"


def test_colour_is_for_terminals_that_want_it(tool: Tool) -> None:
    assert "\x1b[31mError:" in on_terminal(tool, "config", "get", "nothing", TERM="xterm")
    for environ in ({"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal(tool, "config", "get", "nothing", **environ)
    assert b"\x1b[31m" in tool("config", "get", "nothing", "--format", "text", FORCE_COLOR="1").stderr
    assert "\x1b" not in on_terminal(tool, "config", "get", "nothing", FORCE_COLOR="0", TERM="xterm")


def test_help_is_text_and_creates_nothing(tool: Tool, home: Path) -> None:
    bare, asked = tool(), tool("--help")

    assert bare.status == asked.status == 0
    assert bare.text == asked.text
    assert "config" in bare.text
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_answers_tell_who_when_and_where(tool: Tool) -> None:
    meta = tool("config", "get", "jobs", "--session-id", "s-1", TOOL_TRACE_ID="t-9").meta

    assert (meta["command"], meta["session_id"], meta["trace_id"]) == ("config.get", "s-1", "t-9")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["timestamp"])


def test_the_same_state_gives_the_same_data(tool: Tool) -> None:
    assert tool("config", "list").data == tool("config", "list").data


def test_the_time_for_the_whole_call_is_kept(tool: Tool) -> None:
    ran = with_command(tool, "ctx.obj.signals.wait(30); ctx.obj.signals.check()", "--timeout", "200ms")

    assert (ran.status, ran.code) == (10, "TIMEOUT")


def test_no_time_at_all_is_refused_wherever_it_is_given(tool: Tool) -> None:
    assert tool("config", "list", "--timeout", "0").code == "USAGE_ERROR"
    assert tool("config", "list", TOOL_TIMEOUT="0").code == "VALIDATION_ERROR"


def test_a_directory_to_run_in_that_cannot_be_is_named_in_full(tool: Tool, workspace: Path) -> None:
    missing = tool("config", "list", "-C", "nope").error
    file = tool("config", "list", "-C", "tool.toml").error

    assert (missing["code"], missing["context"]["path"]) == ("FILE_NOT_FOUND", str(workspace / "nope"))
    assert (file["code"], file["suggestion"].partition(",")[0]) == ("UNSAFE_PATH", "Use another path")


def test_the_time_may_come_from_the_environment_and_is_checked(tool: Tool) -> None:
    assert tool("config", "list", TOOL_TIMEOUT="soon").code == "VALIDATION_ERROR"
    assert tool("config", "list", TOOL_TIMEOUT="5m").status == 0


def test_completion_offers_commands_and_keys_and_never_fails_loudly(tool: Tool, workspace: Path) -> None:
    def offered(words: str) -> str:
        ran = tool(_TOOL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split(" ")) - 1))
        assert ran.status == 0
        return ran.text

    assert "config" in offered("tool con")
    assert "lock_timeout" in offered("tool config get lock")
    assert "level" in offered("tool config get lev")
    (workspace / "tool.toml").write_text("[broken")
    assert offered("tool config get lock").strip() == ""


@pytest.mark.parametrize("call", [["--", "x"], ["--", "config", "list"], ["--"], ["config", "--"]])
def test_two_dashes_anywhere_get_an_answer(tool: Tool, call: list[str]) -> None:
    ran = tool(*call)

    assert b"Traceback" not in ran.stderr
    assert ran.text.startswith("Usage") or ran.response


_LIMIT_OPEN_FILES = """
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("limit", [5, 6])
def test_too_few_descriptors_are_reported_as_too_many_open_files(tool: Tool, limit: int) -> None:
    # A fresh interpreter: it has to open every file that it imports.
    command = [*COMMAND, "config", "list"]
    ran = run_fresh(tool, sys.executable, "-c", _LIMIT_OPEN_FILES, str(limit), *command)

    error = Ran(ran.returncode, ran.stdout, ran.stderr).error
    assert ran.returncode == 1
    assert (error["code"], error["context"]["reason"]) == ("IO_ERROR", "too many open files")
    assert "ulimit -n" in error["suggestion"]
    assert b"Traceback" not in ran.stderr


_FAIL_TO_MAKE_A_RESPONSE = """
from sampletool.kit import app

def fail(*args, **options):
    raise OSError(5, "nothing works")

app._run_and_respond = fail
raise SystemExit(app.main(["config", "list"]))
"""


def test_a_response_that_cannot_be_made_is_replaced_by_a_last_one(tool: Tool) -> None:
    ran = run_fresh(tool, sys.executable, "-c", _FAIL_TO_MAKE_A_RESPONSE)

    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["code"] == "INTERNAL_ERROR"
    assert b"nothing works" in ran.stderr


def test_a_session_that_is_removed_under_a_call_does_not_cost_its_answer(tool: Tool) -> None:
    body = "import shutil; shutil.rmtree(ctx.obj.session_directory); return Result('done')"

    assert with_command(tool, body).data == {"said": "done"}


@pytest.mark.parametrize("value", ["use --format text here", "a --raw b", "--format=text b"])
def test_a_value_that_speaks_of_a_form_does_not_choose_it(tool: Tool, workspace: Path, value: str) -> None:
    assert tool("config", "set", "--", "a", value).data["effect"] == "created"
    assert tool("config", "set", "b", f"x {value}").data["effect"] == "created"


@pytest.mark.parametrize("form", ["text", "json", ""])
def test_a_value_can_be_taken_into_a_variable_of_the_shell(tool: Tool, form: str) -> None:
    tool("config", "set", "greeting", "good  morning\n")

    found, missing = (tool("config", "get", key, "--raw", TOOL_FORMAT=form) for key in ("greeting", "nothing"))

    assert (found.stdout, found.stderr) == (b"good  morning\n\n", b"")
    assert (missing.status, missing.stdout) == (5, b"")
    assert b"KEY_NOT_FOUND" in missing.stderr


def test_in_text_warnings_and_errors_are_on_stderr(tool: Tool) -> None:
    warned = tool("config", "set", "jbos", "3", "--format", "text")
    failed = tool("config", "get", "nothing", "--format", "text", "--quiet")

    assert warned.text.startswith("jbos: created")
    assert failed.stdout == b""
    assert failed.stderr.startswith(b"Error: nothing is not set")


_MUCH = "return Result('x' * 1_000_000)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_reader_that_does_not_read_keeps_nobody_beyond_a_signal(tool: Tool, number: signal.Signals) -> None:
    process = start_added(tool, _MUCH)
    wait_until_the_pipe_is_full(process)

    process.send_signal(number)

    assert process.wait(30) == -number


def test_a_reader_that_does_not_read_keeps_nobody_beyond_the_timeout(tool: Tool) -> None:
    process = start_added(tool, f"context.signals.limit(2); {_MUCH}")

    assert process.wait(30) == 10
    assert process.stderr is not None
    assert process.stderr.read().count(b"\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, None])
def test_a_stderr_that_nobody_reads_keeps_nobody_beyond_a_signal_or_the_timeout(
    tool: Tool, number: signal.Signals | None
) -> None:
    """Naive: who writes to a pipe that is full waits in the kernel, with the lock, through every signal."""
    fill = "os.set_blocking(2, False); os.write(2, bytes(1_000_000)); os.set_blocking(2, True)"
    body = f"{fill}; context.notice('never read'); return Result('')"
    process = start_added(tool, body if number else f"context.signals.limit(2); {body}")
    if number:
        wait_until_the_pipe_is_full(process, "stderr")
        process.send_signal(number)

    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    assert process.poll() == (-number if number else 0)


def test_a_slow_reader_gets_all_of_an_answer_even_if_stdout_does_not_block(tool: Tool) -> None:
    process = start_added(tool, f"os.set_blocking(3, False); {_MUCH}", before="os.dup2(1, 3)")
    wait_until_the_pipe_is_full(process)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)

    stdout, _ = process.communicate(timeout=30)

    assert process.returncode == 0
    assert stdout.endswith(b"}\n")
    assert len(json.loads(stdout)["data"]["said"]) == 1_000_000


def test_a_signal_while_an_answer_is_read_changes_nothing(tool: Tool) -> None:
    process = start_added(tool, _MUCH)
    assert process.stdout is not None
    read = process.stdout.read(100_000)

    process.send_signal(signal.SIGTERM)
    read += process.stdout.read()

    assert process.wait(30) == 0
    assert json.loads(read)["ok"] is True


def wait_until_the_pipe_is_full(process: Process, name: str = "stdout") -> None:
    """Until it has written, and then nothing for a while: the size of what can be read stays."""
    pipe, before = getattr(process, name).fileno(), -1
    while before <= 0 or before != waiting(pipe):
        assert process.poll() is None
        before = waiting(pipe)
        time.sleep(0.05)


def waiting(descriptor: int) -> int:
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_a_signal_that_comes_at_the_end_is_the_answer(tool: Tool) -> None:
    process = start_added(tool, "os.kill(os.getpid(), signal.SIGTERM); return Result('done')")

    stdout, _ = process.communicate(timeout=30)

    assert process.returncode == -signal.SIGTERM
    answer = json.loads(stdout)
    assert (answer["error"]["code"], answer["data"]) == ("INTERRUPTED", {"said": "done"})
    assert "had already finished its work" in answer["error"]["message"]


def test_a_signal_after_the_deadline_does_not_hide_that_the_outcome_is_unknown(tool: Tool) -> None:
    body = """
from sampletool.kit.safety.errors import DeadlineExceeded
os.kill(os.getpid(), signal.SIGTERM)
raise DeadlineExceeded(1.0, uncertain_change="the order")
"""

    ran = ended(start_added(tool, body))

    assert (ran.status, ran.code) == (10, "TIMEOUT")
    assert ran.error["context"]["outcome"] == "unknown"


def test_what_cannot_be_given_back_is_the_answer_unless_there_was_a_failure_before(tool: Tool) -> None:
    fails = "def close(): raise OSError('cannot close')\n    ctx.obj.exit_stack.callback(close)\n    "

    assert with_command(tool, f"{fails}return Result(1)").code == "INTERNAL_ERROR"
    assert with_command(tool, f"{fails}ctx.obj.workspace").code == "NO_WORKSPACE"


def test_where_no_answer_can_be_made_there_is_one_all_the_same_and_no_password(tool: Tool) -> None:
    broken = "def fail(over): raise RuntimeError('postgresql://u:hunter2@h/d')"
    program = (
        f"import sys, sampletool.kit.app as app\n{broken}\napp.Stdout = fail\nsys.exit(app.main(['config', 'path']))"
    )

    ran = run_python("-c", program, cwd=tool.cwd, env=tool.environ, check=False)

    assert (ran.returncode, json.loads(ran.stdout)["error"]["code"]) == (1, "INTERNAL_ERROR")
    assert "RuntimeError" in ran.stderr
    assert "hunter2" not in ran.stderr


def test_a_call_inside_another_program_gives_everything_back(capfd: pytest.CaptureFixture[str], home: Path) -> None:
    def ours() -> tuple[object, ...]:
        return (*map(signal.getsignal, HANDLED), len(os.listdir("/proc/self/fd")))

    before = ours()
    main(["config", "path"])
    main(["config", "path"])

    assert ours() == before
    assert capfd.readouterr().out.count('"ok":true') == 2


def test_a_server_gets_the_answer_of_a_call_and_a_signal_that_it_sends_ends_it(home: Path) -> None:
    signals = Signals()

    answer = json.loads(run_in_process(["config", "get", "jobs"], signals))
    signals.receive(signal.SIGTERM)
    ended = json.loads(run_in_process(["config", "get", "jobs"], signals))

    check_envelope(answer)
    assert (answer["data"]["value"], answer["meta"]["command"]) == ("auto", "config.get")
    assert ended["error"]["code"] == "INTERRUPTED"


def test_a_line_for_people_cannot_move_the_cursor(tool: Tool) -> None:
    ran = ended(start_added(tool, r"context.notice('from \x1b[2J elsewhere'); return Result(1)"))

    assert ran.stderr == rb"from \x1b[2J elsewhere" + b"\n"


def test_a_reader_that_has_gone_keeps_no_version(tool: Tool) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = run(tool, "--version", stdout=write)
    os.close(write)

    assert (ran.status, ran.stderr) == (0, b"")


@pytest.mark.parametrize(("setting", "expected"), [("3", 3), ("auto", os.cpu_count())])
def test_a_command_may_run_as_many_jobs_at_once_as_are_set(tool: Tool, setting: str, expected: int) -> None:
    tool.environ["TOOL_JOBS"] = setting

    stdout, _ = start_added(tool, "return Result(context.jobs())").communicate(timeout=60)

    assert f'"said":{expected}' in stdout.decode()


# What a person sees although a program is served


def test_an_error_is_also_on_stderr_if_json_was_not_chosen(tool: Tool) -> None:
    ran = tool("config", "get", "nothing")

    assert ran.code == "KEY_NOT_FOUND"
    assert ran.stderr.startswith(b"Error: nothing is not set")
    assert ran.error["suggestion"].encode() in ran.stderr


@pytest.mark.parametrize("option", ["--json", "--format=json", "--format=jsonl", "--fields=value"])
def test_an_error_is_only_on_stdout_if_json_was_chosen(tool: Tool, option: str) -> None:
    ran = tool("config", "get", "nothing", option)

    assert ran.code in ("KEY_NOT_FOUND", "USAGE_ERROR")
    assert ran.stderr == b""


def test_an_error_is_only_on_stdout_if_a_variable_or_a_setting_chose_json(tool: Tool) -> None:
    by_variable = tool("config", "get", "nothing", TOOL_FORMAT="json")
    tool("config", "set", "format", "json")
    by_setting = tool("config", "get", "nothing")

    assert by_variable.stderr == b""
    assert by_setting.stderr == b""


def test_an_error_is_printed_once_if_stdout_and_stderr_are_the_same_file(tool: Tool) -> None:
    ran = run(tool, "config", "get", "nothing", stderr=subprocess.STDOUT)

    assert ran.code == "KEY_NOT_FOUND"
    assert ran.stdout.count(b"\n") == 1


def test_a_success_prints_nothing_on_stderr(tool: Tool) -> None:
    assert tool("config", "get", "jobs").stderr == b""


def test_a_quiet_change_prints_nothing_as_text(tool: Tool) -> None:
    ran = tool("config", "set", "jbos", "3", "--format", "text", "--quiet")

    assert (ran.status, ran.stdout, ran.stderr) == (0, b"", b"")
    assert tool("config", "get", "jbos").data["value"] == 3


def test_a_quiet_change_that_fails_prints_the_error(tool: Tool) -> None:
    ran = tool("config", "set", "jobs", "zero", "--format", "text", "--quiet")

    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"Error: ")


def test_a_quiet_change_prints_its_response_as_json(tool: Tool) -> None:
    assert tool("config", "set", "a", "1", "--quiet").data["effect"] == "created"


def test_a_requested_value_is_printed_although_quiet(tool: Tool) -> None:
    assert tool("config", "get", "jobs", "--format", "text", "--quiet").text == "auto\n"
    assert tool("config", "get", "jobs", "--raw", "--quiet").text == "auto\n"


def test_a_quiet_forecast_is_printed(tool: Tool) -> None:
    forecast = tool("config", "set", "a", "1", "--dry-run", "--quiet", "--format", "text")

    assert forecast.text.startswith("Dry run, nothing was changed.")


# The member `meta`


def test_meta_of_a_plain_command_has_only_what_every_response_has(tool: Tool) -> None:
    assert list(tool("config", "get", "jobs").meta) == [
        "command",
        "request_id",
        "schema_version",
        "tool_version",
        "timestamp",
        "exit_code",
    ]


def test_meta_has_the_duration_and_the_directory_with_verbose(tool: Tool) -> None:
    meta = tool("config", "get", "jobs", "--verbose").meta

    assert meta["cwd"] == str(tool.cwd)
    assert meta["duration_ms"] >= 0


def test_meta_has_a_session_id_that_was_given_or_used(tool: Tool) -> None:
    by_option = tool("config", "get", "jobs", "--session-id", "s-1").meta
    by_variable = tool("config", "get", "jobs", TOOL_SESSION_ID="s-2").meta
    used = ended(start_added(tool, "return Result(context.session_directory.name)"))

    assert by_option["session_id"] == "s-1"
    assert by_variable["session_id"] == "s-2"
    assert used.meta["session_id"] == used.data["said"]


def test_meta_has_the_time_that_locks_were_waited_for(tool: Tool) -> None:
    body = (
        "with context.hold(Path('x.lock').absolute(), 'x', 'exclusive', 1.0): pass\n"
        "context.waited_ms += 7\n"
        "with context.hold(Path('y.lock').absolute(), 'y', 'shared', 1.0): pass\n"
        "return Result(1)"
    )

    assert ended(start_added(tool, body)).meta["waited_ms"] >= 7


def test_the_log_has_the_duration_and_the_directory_of_every_command(tool: Tool) -> None:
    tool("config", "get", "jobs")

    (call,) = tool("log", "--command", "config.get").data["calls"]

    assert call["cwd"] == str(tool.cwd)
    assert call["duration_ms"] >= 0
