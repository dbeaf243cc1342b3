"""What a shell offers when TAB is pressed: the script for the shell, and the names that exist now.

Completion never fails loudly, takes no lock, and ends after a second: a shell waits for it.
"""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO
from typing import Any

import typer
from typer.main import get_command

from .context import Context
from .program import PROGRAM, variable

OPTIONS = ("--show-completion", "--install-completion")
_PLAIN = r"\w[\w./@%+,=:-]*"
"""A shell reads what is offered as program text: a name with a quote, a space or a `$` in it is not offered."""
_ASKED_BY_A_SHELL = f"_{variable('COMPLETE')}"


def offering(names: Callable[[Context], Iterable[str]]) -> Callable[..., list[str]]:
    """For `autocompletion=`: the names that the call would know. Offers nothing rather than fail."""

    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        context: Context = ctx.obj
        try:
            os.chdir(context.options.cwd or ".")
            context.signals.limit(1.0)
            context.understand(replace(context.command_line, dry_run=True))
            found = sorted(names(context))
            return [name for name in found if name.startswith(incomplete) and re.fullmatch(_PLAIN, name)]
        except Exception:
            return []
        finally:
            context.exit_stack.close()

    return offered


def is_asked(args: list[str]) -> bool:
    return _ASKED_BY_A_SHELL in os.environ or (bool(args) and args[0].startswith(OPTIONS))


def serve(args: list[str], root: Any, context: Context) -> int:
    """Not an answer: the shell reads what is printed, and a failure prints nothing."""
    words = [*args[0].split("=", 1), *args[1:2]] if args else []
    if words[1:]:
        os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    try:
        app = typer.Typer(add_completion=True, rich_markup_mode=None)
        app.command()(lambda: None)
        with_options: Any = get_command(app)  # making it also teaches Typer the shells
        if _ASKED_BY_A_SHELL not in os.environ:
            return with_options.main(args=words, prog_name=PROGRAM) or 0
        with redirect_stderr(StringIO()):
            root.main(args=args, prog_name=PROGRAM, standalone_mode=False, obj=context)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception:
        return 1
    return 0
