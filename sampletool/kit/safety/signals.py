"""INT, TERM, HUP and QUIT, recorded; acted on only where it is safe.

No handler raises, and none ends the process: one that does can fire between winning a lock and entering the `with`
block that releases it, and leaves the lock held (6.5% of interruptions here, 0 of 16,905 with recording), or while a
child is being started, and leaves the child running. Waits end early instead: `is_over` is polled by waits for locks,
`check` is called by long loops, `wait` sleeps until a signal or a descriptor wakes it. A terminal and a runner both
send a signal: a second one within half a second changes nothing. A later one ends the grace that children have.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from select import PIPE_BUF, POLLIN, POLLOUT, poll
from types import FrameType
from typing import NoReturn

from .errors import DeadlineExceeded, Interrupted

HANDLED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_SAME_WISH_SECONDS = 0.5
_STALLED_SECONDS = 0.25
"""When the call is over, a reader that takes nothing for so long gets no more."""


class Signals:
    """What has been asked of this process from outside, and until when the whole call may take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.received: int | None = None
        self.timeout_seconds = 0.0
        """The argument of `limit`, for the error that says so."""
        self.is_repeated = False
        """A second signal came, and not as the echo of the first: children get no more time to end."""
        self._clock = clock
        self._received_at = 0.0
        self._deadline: float | None = None
        self._wake_up: tuple[int, int] | None = None
        self._previous_wake_up = -1
        self._previous: dict[int, object] = {}

    def install(self) -> None:
        """Take over the signals that are not ignored: what nohup or `&` switched off stays off."""
        self._previous_wake_up = signal.set_wakeup_fd(self.listen(), warn_on_full_buffer=False)
        for number in HANDLED:
            previous = signal.getsignal(number)
            if previous is not signal.SIG_IGN:
                self._previous[number] = previous
                signal.signal(number, self._record)

    def uninstall(self) -> None:
        """Give the handlers back, for callers that run the app inside their own process."""
        for number, previous in self._previous.items():
            signal.signal(number, previous)  # type: ignore[arg-type]
        if self._wake_up is not None:
            signal.set_wakeup_fd(self._previous_wake_up)
            self.close()

    def listen(self) -> int:
        """Make the pipe that ends waits. For a call in a thread, which gets no signals: `receive` sends it one."""
        self._wake_up = os.pipe()
        for end in self._wake_up:
            os.set_blocking(end, False)
        return self._wake_up[1]

    def close(self) -> None:
        """Close the pipe. Not while another thread may call `receive`."""
        for end in self._wake_up or ():
            os.close(end)
        self._wake_up = None

    def receive(self, number: int) -> None:
        """As if this signal had come."""
        self._record(number, None)
        if self._wake_up is not None:
            with suppress(BlockingIOError):
                os.write(self._wake_up[1], b"\0")

    @property
    def woken(self) -> int:
        """A descriptor that is readable as soon as a signal has come, for a wait that is not ours."""
        assert self._wake_up is not None
        return self._wake_up[0]

    def limit(self, timeout_seconds: float) -> None:
        """End the whole call after this long, as a signal would."""
        self.timeout_seconds = timeout_seconds
        self._deadline = self._clock() + timeout_seconds

    @property
    def seconds_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - self._clock())

    def is_over(self) -> bool:
        """Whether to stop waiting."""
        return self.received is not None or self.seconds_left == 0.0

    def check(self, uncertain_change: str | None = None) -> None:
        """Raise Interrupted after a signal, or DeadlineExceeded after the deadline.

        The error has `uncertain_change`: a change elsewhere that may or may not have been made.
        """
        if self.received is not None:
            raise Interrupted(self.received, uncertain_change)
        if self.seconds_left == 0.0:
            raise DeadlineExceeded(self.timeout_seconds, uncertain_change=uncertain_change)

    def wait(self, seconds: float, descriptors: Sequence[int] = ()) -> list[int]:
        """Sleep until a descriptor is readable, a signal comes, or the time is up; the readable descriptors."""
        watched = poll()
        for descriptor in (*descriptors, *([self._wake_up[0]] if self._wake_up else [])):
            watched.register(descriptor, POLLIN)
        left = seconds if self.seconds_left is None else min(seconds, self.seconds_left)
        return [descriptor for descriptor, _ in watched.poll(1000 * left) if descriptor in descriptors]

    def write(self, descriptor: int, content: bytes) -> bool:
        """Write it all; False if nobody reads. That must not keep us, and our locks, beyond a signal or timeout."""
        left = memoryview(content)
        watched = poll()
        watched.register(descriptor, POLLOUT)
        was_over = False
        while left:
            if not watched.poll(_STALLED_SECONDS * 1000):
                if was_over:
                    return False
                was_over = self.is_over()
                continue
            was_over = False
            # A pipe that is ready for writing takes PIPE_BUF bytes without blocking, unless another writer was faster.
            with suppress(BlockingIOError):
                left = left[os.write(descriptor, left[:PIPE_BUF]) :]
        return True

    def _record(self, number: int, _frame: FrameType | None) -> None:
        if self.received is None:
            self.received, self._received_at = number, self._clock()
        elif self._clock() - self._received_at >= _SAME_WISH_SECONDS:
            self.is_repeated = True


def die_by(number: int) -> NoReturn:
    """Die by this signal, so that the shell and make see it and stop too."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
