"""Run a function that blocks, such as `urlopen`, so that a signal or the deadline ends the wait.

The signal handlers of this program only record a signal (see safety/signals.py). After a handler
has returned, Python continues the system call that the signal interrupted. So a command that reads
from a silent server would ignore Ctrl-C and `--timeout` until the server sends something.

`run_blocking` therefore runs the function in a thread of its own, and waits for the first of three
events: the function ends, a signal arrives, or the deadline passes. In the last two cases it
*abandons* the function: it raises the error of the signal or of the deadline, and the function
continues in its thread until it ends or the process exits. Its result is then discarded. Python
cannot end a thread, but this thread is a daemon, so it does not keep the process from exiting.

The pipe: the thread closes the writing end when the function has ended, and the caller watches the
reading end. Each end is closed once, by its own side. An abandoned thread still has the writing end
open, so the number of that descriptor cannot be reused before the thread closes it.
"""

import errno
import os
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar, TypeVarTuple

from ..safety.lockless_thread import LocklessThread
from ..safety.signals import Signals

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LONGEST_WAIT_SECONDS = 1.0
"""How long to wait before looking for a signal again.

A signal ends the wait at once. This is for `Signals` without a pipe, which cannot be woken up.
"""


def run_blocking(
    function: Callable[[*Ts], T],
    args: tuple[*Ts],
    signals: Signals,
    changes: str | None = None,
) -> T:
    """Return `function(*args)`, or raise what it raises.

    Raise Interrupted if a signal arrives first, or DeadlineExceeded if the deadline passes first.
    If that has happened already, the function is not called. Raise OSError if no thread can be
    started.

    `changes` names what the function changes elsewhere, such as "the order at https://…". If the
    function is abandoned, the change may have been made or not, and the error says so.

    The function must not take or release a lock, because it may be abandoned at any point: `Lock`
    raises RuntimeError in it. It must not start children either, because nothing would end them.
    """
    signals.check()
    call = _Call(partial(function, *args))
    call.start()
    try:
        while not call.is_done and not signals.is_over():
            signals.wait(_LONGEST_WAIT_SECONDS, [call.done_descriptor])
    finally:
        os.close(call.done_descriptor)
    # If the function has ended as well, its result counts: the caller learns what has happened. The
    # caller's next look at the signals ends the command.
    if not call.is_done:
        # The loop has ended because of a signal or the deadline, so this raises an error.
        signals.check(uncertain_change=changes)
    return call.take_result()


class _Call(Generic[T]):
    """A call of a function in a thread of its own."""

    _result: T
    """What the function returned. Missing if it has raised an error or has not ended."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.is_done = False
        """Whether the function has returned or raised an error."""
        self.done_descriptor, self._done_writer = os.pipe()
        """`done_descriptor` is readable once the function has ended. The caller closes it.

        The thread closes `_done_writer`. This is what makes `done_descriptor` readable.
        """
        self._function = function
        self._error: BaseException | None = None

    def start(self) -> None:
        """Start the thread. If that fails, close the pipe and raise OSError."""
        thread = LocklessThread(target=self._run, name="blocking", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # Python does not say why the thread was refused: usually it is the limit of processes.
            os.close(self.done_descriptor)
            os.close(self._done_writer)
            raise OSError(errno.EAGAIN, str(error)) from error

    def take_result(self) -> T:
        """Return what the function returned, or raise what it raised.

        Call this once, when the function has ended.
        """
        if self._error is None:
            return self._result
        error = self._error
        # Break a cycle: the error refers to its traceback, the traceback to this frame, and the
        # frame to the error. Only the garbage collector frees a cycle, and it is off in most
        # commands (see start.py). What the function has opened would stay open.
        self._error = None
        try:
            raise error
        finally:
            del error

    def _run(self) -> None:
        """Call the function. This is what runs in the thread."""
        try:
            self._result = self._function()
        # Not only Exception: a SystemExit, for example, must reach the caller as well.
        except BaseException as error:
            self._error = error
        # Set this first: closing the pipe wakes the caller, who then looks at it.
        self.is_done = True
        os.close(self._done_writer)
