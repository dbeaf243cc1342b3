"""The first thing that runs: makes the process safe to work in, then hands over to the app.

What runs here runs before anything of ours is imported, on any Python: SIGINT gets its default back (Python's own
handler would print a traceback), and so does SIGCHLD (where the parent ignores it the kernel throws away how our
children ended), signals that the parent has blocked are unblocked, collecting garbage is switched off (a call is over
before it pays), closed standard descriptors are opened on the null device (or the next file opened would become
stdout), and an old Python and Windows are refused. A caller that closes stdout (`>&-`) wants no answer: that is not an
error, and the exit status still says how the call ended. When the answer is written the process ends at once: tearing
the interpreter down takes longer than reading the settings, and frees only what the kernel frees anyway.
"""

# The built-in part of `signal`: importing the rest takes long enough to be interrupted.
try:
    import _signal  # type: ignore[import-not-found]
except ImportError:  # Python 2
    import signal as _signal

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
if hasattr(_signal, "SIGCHLD"):
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
if hasattr(_signal, "pthread_sigmask"):  # not on Windows, and not in Python 2
    # A process inherits the signal mask of its parent. With TERM blocked, neither `kill` nor `--timeout` would end a
    # command in time: the children inherit the mask too, so only the SIGKILL after their grace of 5 s would end them.
    _UNBLOCKED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGCHLD)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _UNBLOCKED)

import gc

gc.disable()

import os  # noqa: E402
import sys  # noqa: E402


def _open_closed_descriptors():
    # type: () -> None
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # open takes the lowest number that is free


def _refuse(code, message, suggestion, found):
    # type: (str, str, str, str) -> int
    sys.stdout.write(
        '{"ok":false,"error":{"code":"%s","message":"%s; this is %s.","suggestion":"%s","retryable":false,'
        '"exit_code":4,"context":{"found":"%s"}},"data":null,"warnings":[],"meta":{"exit_code":4}}\n'
        % (code, message, found, suggestion, found)
    )
    return 4


def _end_process(status):
    # type: (int) -> int
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # it was closed
            pass
    os._exit(status)


def main():
    # type: () -> int
    _open_closed_descriptors()
    if sys.platform == "win32":
        advice = "Run it in WSL, which is Linux."
        return _refuse("PLATFORM_NOT_SUPPORTED", "Linux or macOS is needed", advice, "Windows")
    if sys.version_info < (3, 11):
        found = ".".join(str(part) for part in sys.version_info[:3])
        return _refuse("PYTHON_TOO_OLD", "Python 3.11 or newer is needed", "Run it with a newer Python.", found)
    from .app import main as answer_call

    return _end_process(answer_call())
