"""Run a Python program in this process, as `python` would run it with the arguments in `sys.argv`.

The first argument is `-m`, `-c` or the path of a script.
"""

import os
import runpy
import sys
import types


def set_script_directory() -> None:
    """Replace the first entry of `sys.path`, which a forked process inherits from the server.

    Do nothing if the interpreter was started with `-P`: then there is no such entry.
    """
    if not sys.flags.safe_path:
        sys.path[0] = _script_directory()


def _script_directory() -> str:
    """Return the first entry of `sys.path` that `python` would have with these arguments."""
    if sys.argv[0] == "-m":
        return os.getcwd()
    if sys.argv[0] == "-c":
        return ""
    return os.path.dirname(os.path.realpath(sys.argv[0]))


def run_program() -> None:
    """Run the program, and return when it ends."""
    if sys.argv[0] == "-m":
        _run_module()
    elif sys.argv[0] == "-c":
        _run_source()
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


def _run_module() -> None:
    """Run `-m MODULE`. The module sees its arguments without the `-m`."""
    sys.argv.pop(0)
    # The server may have imported the module already. Then runpy would print a warning.
    sys.modules.pop(sys.argv[0], None)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _run_source() -> None:
    """Run `-c SOURCE`. The source sees its arguments after the `-c`."""
    source = sys.argv.pop(1)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    code = compile(source, "<string>", "exec")
    exec(code, module.__dict__)  # noqa: S102 - what `python -c` does
