"""The fork server that tests share when they try a learner's file."""

import atexit
from functools import cache

from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.kit.testing.leaks import outlives_the_test
from sampletool.lab.scratch import fork_server_for


@cache
def shared_fork_server() -> ForkServer:
    """Return a fork server like that of `lab try`. Start it on the first call.

    Starting one takes 130 ms of processor time, which is longer than most of these tests. A file is
    only ever imported by the processes that the server forks, so one test cannot affect the next.
    """
    with outlives_the_test():
        fork_server = fork_server_for()
    atexit.register(fork_server.__exit__)
    return fork_server
