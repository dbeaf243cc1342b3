"""Complete words in a shell: print its script, and the names that fit when TAB is pressed.

The shell waits for the names. So completion takes no lock, stops after 1 s, and prints nothing if
it fails.
"""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import typer
from typer.main import get_command

from .context import Context
from .program import PROGRAM, env_variable

OPTIONS = ("--show-completion", "--install-completion")

_MAX_SECONDS = 1.0

_SAFE_NAME = r"\w[\w./@%+,=:-]*"
"""The names that are offered.

The shell reads them as program text. So a name with a quote, a space or a `$` is not offered.
"""

_REQUEST_VARIABLE = f"_{env_variable('COMPLETE')}"
"""The variable that the script of a shell sets when it asks for names."""

_NO_SHELL_DETECTION = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""A variable of Typer. With it, the options in OPTIONS take the name of a shell."""


def offering(names: Callable[[Context], Iterable[str]]) -> Callable[..., list[str]]:
    """Return a function for `autocompletion=` that offers the names that begin as the typed word.

    `names` finds them. If it fails, nothing is offered.
    """

    # Typer passes the arguments by these names.
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        context: Context = ctx.obj
        try:
            _prepare(context)
            return _matching_names(names(context), incomplete)
        except Exception:
            return []
        finally:
            context.exit_stack.close()

    return complete


def _prepare(context: Context) -> None:
    """Do what a command does before it looks for names, without changing any file."""
    if context.options.cwd is not None:
        os.chdir(context.options.cwd)
    context.signals.limit(_MAX_SECONDS)
    context.set_command_line(context.command_line._replace(dry_run=True))


def _matching_names(names: Iterable[str], beginning: str) -> list[str]:
    """Return the names with this beginning that are safe to offer, sorted."""
    matching = []
    for name in sorted(names):
        if name.startswith(beginning) and re.fullmatch(_SAFE_NAME, name):
            matching.append(name)
    return matching


def is_asked(args: list[str]) -> bool:
    """Return whether a shell asks for names, or the user for the script of a shell."""
    if _REQUEST_VARIABLE in os.environ:
        return True
    return bool(args) and args[0].startswith(OPTIONS)


def serve(args: list[str], root: Any, context: Context) -> int:
    """Print the names or the script that was requested. Return the exit code.

    This is not a response: a shell reads it. So a failure prints nothing.
    """
    try:
        if _REQUEST_VARIABLE in os.environ:
            return _print_names(args, root, context)
        return _print_or_install_script(args)
    except SystemExit as end:
        # This is how Typer ends when it has printed something.
        if isinstance(end.code, int):
            return end.code
        return 0
    except Exception:
        return 1


def _print_names(args: list[str], root: Any, context: Context) -> int:
    """Print the names that can complete the typed word. The shell's own script asks for them."""
    # Typer prints the names while it parses the command line. It knows the form that each shell
    # expects only after a command with these options was created.
    _command_with_completion_options()
    with redirect_stderr(StringIO()):
        root.main(args=args, prog_name=PROGRAM, standalone_mode=False, obj=context)
    return 0


def _print_or_install_script(args: list[str]) -> int:
    """Obey one of the options in OPTIONS, which is the first argument.

    The name of the shell can follow, as the next argument or after `=`. Without it, Typer finds out
    from which shell the tool was started.
    """
    option_and_shell = [*args[0].split("=", 1), *args[1:2]]
    if len(option_and_shell) > 1:
        os.environ[_NO_SHELL_DETECTION] = "1"
    command = _command_with_completion_options()
    exit_code: int | None = command.main(args=option_and_shell, prog_name=PROGRAM)
    if exit_code is None:
        return 0
    return exit_code


def _command_with_completion_options() -> Any:
    """Return a command of Typer that does nothing, and has the options in OPTIONS."""
    app = typer.Typer(add_completion=True, rich_markup_mode=None)
    app.command()(lambda: None)
    return get_command(app)
