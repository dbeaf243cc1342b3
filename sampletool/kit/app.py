"""The entry point: it takes a command line, and prints one response.

This is the only module that builds a response. Whatever a command returns or raises ends here: a
result, an error that the tool expects, or a bug.
"""

import errno
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, TypeGuard

from . import completion
from .call_log import append, call_of
from .command_folder import CommandFolder
from .command_line import ColorName, CommandLine
from .context import Context
from .contract.errors import SIGNAL_BASE, ExitStatus, InternalError, ToolError
from .contract.expected import EXPECTED, to_tool_error
from .contract.file_errors import from_os_error
from .contract.library_errors import interrupted_when_done
from .contract.manifest import untrusted_members
from .contract.response import (
    SCHEMA_VERSION,
    Format,
    Presentation,
    Response,
    Result,
    render,
    result_meta,
)
from .contract.text import redact, shorten
from .effects import changes_something
from .global_options import HelpRequested, color_in_arguments, format_in_arguments, whole_tool
from .part_discovery import command_packages
from .places import state_directory
from .program import PACKAGE, PROGRAM, __version__, env_variable
from .safety.clock import utc
from .safety.errors import Interrupted, SafetyError
from .safety.signals import Signals, die_by
from .stdout import STDOUT, Stdout, write_response, write_stderr

Outcome = Result | ToolError | HelpRequested
"""How a command ended. It may also have received a signal, which its context knows."""

_LAST_RESORT = (
    b'{"ok":false,"error":{"code":"INTERNAL_ERROR",'
    b'"message":"The tool failed, and could not report the failure.",'
    b'"suggestion":"The report is on stderr.","retryable":false,"exit_code":1,"context":{}},'
    b'"data":null,"warnings":[],"meta":{"schema_version":"2.1.0","exit_code":1}}\n'
)
"""The response if building a response fails."""


def main(argv: list[str] | None = None) -> int:
    """Run one command line, by default that of this process, and return the exit code.

    If a signal stopped the command, do not return, but let the signal end this process.
    """
    args = sys.argv[1:] if argv is None else argv
    if completion.is_asked(args):
        return completion.serve(args, root_command(), Context(Signals()))
    try:
        # Without `argv`, this process exits after the command. A test that passes `argv` continues.
        return _run_and_respond(args, ends_process=argv is None)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return _respond_to_too_many_open_files(error)
        return _respond_to_bug(error)
    except Exception as bug:
        return _respond_to_bug(bug)


def run_in_process(args: list[str], signals: Signals) -> bytes:
    """Run one command line for a server. Return the response as a line of JSON.

    This may change the current directory of the process, so a server must not run two command
    lines at the same time.
    """
    context = Context(signals)
    outcome = _run_and_close(args, context)
    if isinstance(outcome, HelpRequested):
        # A server offers no option that asks for help, so this is a bug of the server.
        outcome = InternalError("HelpRequested", report=None)
    return _finish(outcome, context, Presentation(format="json")).stdout


def error_response(error: ToolError, command: str) -> bytes:
    """Return the response, a line of JSON, of a command that could not be run."""
    context = Context(Signals())
    context.set_command_line(CommandLine(command=command.replace(" ", ".")))
    return render(_build_response(error, context), Presentation()).stdout


def root_command() -> CommandFolder:
    """Return the command for the whole tool."""
    about = import_module(PACKAGE).__doc__
    return CommandFolder(command_packages(), PROGRAM, about, whole_tool())


def _run_and_respond(args: list[str], *, ends_process: bool) -> int:
    """Run one command line, and print its response. Return the exit code."""
    signals = Signals()
    # From here on, a signal is only recorded. The command stops where that is safe.
    signals.install()
    stdout = _take_stdout(signals)
    try:
        context = Context(signals, stdout)
        outcome = _run_and_close(args, context)
        exit_code = _print_outcome(args, outcome, context, stdout)
    finally:
        stdout.close()
        # A process that ends now keeps its handlers: without them, a signal that comes so late
        # would change the exit code of a command that has succeeded.
        if not ends_process:
            signals.uninstall()
    _die_if_stopped_by_signal(signals, exit_code)
    return exit_code


def _take_stdout(signals: Signals) -> Stdout:
    """Return the real stdout. Raise OSError if this process has too many open files."""
    try:
        return Stdout(signals)
    except OSError:
        # Close the pipe for signals: the response needs a descriptor, to import modules.
        signals.uninstall()
        raise


def _die_if_stopped_by_signal(signals: Signals, exit_code: int) -> None:
    """End this process by the signal that it has received, if the exit code names this signal.

    A signal that came too late to stop the command changes nothing.
    """
    if signals.received is None:
        return
    # The response says that the signal stopped the command. So a shell has to see the same.
    if exit_code == SIGNAL_BASE + signals.received:
        die_by(signals.received)


def _respond_to_too_many_open_files(error: OSError) -> int:
    """Print the response if this process may not open the few files that every command needs."""
    too_many_open_files = from_os_error(error, "stdout")
    content = error_response(too_many_open_files, command="")
    return write_response(STDOUT, content, too_many_open_files.exit_status, Signals())


def _respond_to_bug(bug: Exception) -> int:
    """Print the response, and a report on stderr, if not even a response could be built."""
    write_stderr(_crash_report(bug), Signals())
    return write_response(STDOUT, _LAST_RESORT, ExitStatus.INTERNAL, Signals())


# Running the command


def _run_and_close(args: list[str], context: Context) -> Outcome:
    """Run the command, then close what it opened.

    Report a failure to close only if the command itself succeeded.
    """
    outcome = _run_command(args, context)
    failure_to_close = _close(context)
    command_succeeded = not isinstance(outcome, ToolError)
    if command_succeeded and failure_to_close is not None:
        return failure_to_close
    return outcome


def _close(context: Context) -> ToolError | None:
    """Close what the command opened. Return the error if that fails."""
    try:
        context.exit_stack.close()
        return None
    except (ToolError, SafetyError) as error:
        return to_tool_error(error)
    except Exception as bug:
        return _report_bug_and_close(bug, context)


def _run_command(args: list[str], context: Context) -> Outcome:
    """Return the result of the command, its error, or the request for help."""
    try:
        command = root_command()
        result = command.main(args=args, prog_name=PROGRAM, standalone_mode=False, obj=context)
        if not _is_result(result):
            raise TypeError(f"{context.command} returned {result!r}, not a result")
        return result
    except HelpRequested as request:
        return request
    except EXPECTED as error:
        return to_tool_error(error)
    except (Exception, SystemExit) as bug:
        # Nothing of ours calls sys.exit(). If a library does, there still has to be a response.
        return _report_bug(bug, context)


def _is_result(value: object) -> TypeGuard[Result]:
    """Return whether a command may return this value."""
    return hasattr(value, "lines")


def _report_bug(bug: BaseException, context: Context) -> ToolError:
    """Write a crash report, and return the error that names it.

    The report goes into the directory of the session, or to stderr if that is impossible.
    """
    report = _crash_report(bug)
    kind = type(bug).__name__
    try:
        path = context.session_directory / f"crash-{context.request_id}.txt"
        path.write_text(report, errors="backslashreplace")
        return InternalError(kind, report=str(path))
    except Exception:
        write_stderr(report, context.signals)
        return InternalError(kind, report=None)


def _report_bug_and_close(bug: Exception, context: Context) -> ToolError:
    """Write a crash report, and return the error that tells the user where it is.

    The command has closed what it had opened. But the report is a file in the session, so writing
    it opens the session again.
    """
    error = _report_bug(bug, context)
    # The command has already failed, and the report says why. Another failure would only hide that.
    with suppress(Exception):
        context.exit_stack.close()
    return error


def _crash_report(bug: BaseException) -> str:
    """Return the traceback, without passwords."""
    # Importing this at the top would cost each command 2 ms.
    import traceback

    return redact("".join(traceback.format_exception(bug)))


# Building and printing the response


class _Output(NamedTuple):
    """What this process prints, and its exit code."""

    stdout: bytes
    stderr: str
    exit_code: int


def _print_outcome(
    args: list[str],
    outcome: Outcome,
    context: Context,
    stdout: Stdout,
) -> int:
    """Print a help page, or a response. Return the exit code."""
    if isinstance(outcome, HelpRequested):
        return _print_help(args, outcome, context, stdout)
    return _print_response(args, outcome, context, stdout)


def _print_help(
    args: list[str],
    request: HelpRequested,
    context: Context,
    stdout: Stdout,
) -> int:
    """Print the text of a help page. Return the exit code."""
    screen = stdout.screen(_requested_color(args, context))
    text = request.text(stdout.width(), screen.color)
    return stdout.write(f"{text}\n".encode(), ExitStatus.OK)


def _print_response(
    args: list[str],
    outcome: Result | ToolError,
    context: Context,
    stdout: Stdout,
) -> int:
    """Print the response in the format that the caller wants. Return the exit code."""
    format_name = _requested_format(args, outcome, context)
    is_requested = format_name is not None
    if format_name is None:
        format_name = stdout.default_format()
    presentation = Presentation(
        format=format_name,
        screen=stdout.screen(_requested_color(args, context)),
        fields=context.fields,
        is_quiet=context.options.quiet and _is_silent_when_quiet(context),
        # A caller who did not request JSON may be a person who redirects stdout to a file.
        error_also_on_stderr=not is_requested and not stdout.is_stderr(),
    )
    output = _finish(outcome, context, presentation)
    exit_code = stdout.write(output.stdout, output.exit_code)
    write_stderr(output.stderr, context.signals)
    return exit_code


def _requested_format(
    args: list[str],
    outcome: Result | ToolError,
    context: Context,
) -> Format | None:
    """Return the format that the caller or the command wants, or None if neither wants one."""
    if context.chosen_format is not None:
        return context.chosen_format
    # If the command line is wrong, the parser may have stopped before the option.
    format_name = format_in_arguments(args)
    if format_name is not None:
        return format_name
    # A few results, such as the text of `manifest --skill`, have a format of their own.
    return getattr(outcome, "default_format", None)


def _requested_color(args: list[str], context: Context) -> ColorName | None:
    """Return the value of --color, or None if the option was not given."""
    if context.options.color is not None:
        return context.options.color
    # If the command line is wrong, or asks for help, the parser may have stopped before the option.
    return color_in_arguments(args)


def _is_silent_when_quiet(context: Context) -> bool:
    """Return whether --quiet hides the result of this command, if it succeeds."""
    spec = context.command_line.spec
    if spec is None or spec.prints_value:
        return False
    # --raw asks for a value, and --dry-run for a forecast.
    if context.options.format == "raw" or context.dry_run:
        return False
    # A command that changes nothing, or only files of its own, is run for what it prints.
    return changes_something(spec.effect)


def _finish(
    outcome: Result | ToolError,
    context: Context,
    presentation: Presentation,
) -> _Output:
    """Return what to print, and add a line to the log of commands."""
    try:
        response = _build_response(outcome, context)
        rendered = render(response, presentation)
    except Exception as bug:
        # For example, the result has a member that JSON cannot represent.
        response = _build_response(_report_bug_and_close(bug, context), context)
        # An error has no such fields as the result.
        rendered = render(response, presentation._replace(fields=None))
    # Before the response is printed: a caller that has read a response finds it in the log.
    _log_command(response, context)
    return _Output(rendered.stdout, rendered.stderr, exit_code=response.meta["exit_code"])


def _build_response(outcome: Result | ToolError, context: Context) -> Response:
    """Return the response of a command that ended with this result or error."""
    error = _find_error(outcome, context)
    result: Any = outcome
    if isinstance(outcome, ToolError):
        # The work that was done before the failure.
        result = outcome.data
    exit_code = ExitStatus.OK if error is None else error.exit_status
    meta = _build_meta(context, exit_code) | result_meta(result)
    if result is not None:
        record: Any = type(result)
        untrusted = untrusted_members(record)
        if untrusted:
            meta["untrusted"] = untrusted
    if "next_cursor" in meta:
        # Importing this at the top would cost every command up to 1.5 ms.
        from .cursor import format_cursor

        # Add the name of the list, so that no other list accepts the cursor (see pages.py).
        meta["next_cursor"] = format_cursor(context.command, meta["next_cursor"])
    return Response(result=result, error=error, warnings=context.warnings, meta=meta)


def _find_error(outcome: Result | ToolError, context: Context) -> ToolError | None:
    """Return the error of the response, or None if the command succeeded."""
    error = outcome if isinstance(outcome, ToolError) else None
    if context.signals.received is not None:
        return _error_after_signal(context.signals.received, error)
    return error


def _error_after_signal(signal_number: int, error: ToolError | None) -> ToolError:
    """Return the error of a command that has received a signal.

    `error` is what the command failed with, or None if it had done its work. A failure is replaced,
    because it is most likely a consequence of the signal. Only the name of a kept copy stays.
    """
    if error is None:
        return interrupted_when_done(signal_number)
    if error.code == "INTERRUPTED":
        return error
    # The hint of INTERRUPTED says that nothing is changed halfway. With an unknown outcome, this
    # may be false.
    if error.context.get("outcome") == "unknown":
        return error
    interrupted = to_tool_error(Interrupted(signal_number))
    kept_copy = error.context.get("copy")
    if kept_copy is not None:
        # The hint is the only place that tells a person where the unsaved work is.
        return interrupted.with_kept_copy(kept_copy, error.suggestion)
    return interrupted


def _build_meta(context: Context, exit_code: int) -> dict[str, Any]:
    """Return the member `meta` of a response. What does not apply is left out."""
    meta: dict[str, Any] = {
        "command": context.command,
        "request_id": context.request_id,
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "timestamp": utc(),
        "duration_ms": _duration_ms(context),
        "exit_code": exit_code,
    }
    if context.given_session_id is not None or context.uses_session:
        # It fails if the caller has given an invalid id.
        _add_unless_it_fails(meta, "session_id", lambda: context.session_id)
    if context.options.verbose > 0:
        _add_unless_it_fails(meta, "cwd", os.getcwd)
    if context.dry_run:
        meta["dry_run"] = True
    trace_id = os.environ.get(env_variable("TRACE_ID"))
    if trace_id:
        # A caller may use the address of its work, which can contain a password.
        meta["trace_id"] = shorten(redact(trace_id))
    if context.fields is not None:
        meta["fields"] = shorten(str(context.options.fields))
    if context.waited_ms is not None:
        meta["waited_ms"] = context.waited_ms
    if context.crashed_holder is not None:
        meta["recovered_from"] = {
            "pid": context.crashed_holder.pid,
            "command": context.crashed_holder.command,
            "started_at": context.crashed_holder.started_at,
        }
    return meta


def _log_command(response: Response, context: Context) -> None:
    """Add a line to the log of commands, unless the settings forbid it."""
    # The log always has these members. A response has them only if they were requested.
    more_meta: dict[str, Any] = {}
    _add_unless_it_fails(more_meta, "session_id", lambda: context.session_id)
    _add_unless_it_fails(more_meta, "cwd", os.getcwd)
    # A command must not fail because its log cannot be written.
    with suppress(*EXPECTED):
        if context.settings.value("call_log"):
            logged_call = call_of(response, more_meta)
            append(state_directory(), logged_call)


def _duration_ms(context: Context) -> int:
    return round((time.monotonic() - context.started_at) * 1000)


def _add_unless_it_fails(meta: dict[str, Any], name: str, find: Callable[[], str]) -> None:
    """Add a member to `meta`. Leave it out if it cannot be found, like a removed directory."""
    with suppress(*EXPECTED):
        meta[name] = find()
