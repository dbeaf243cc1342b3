"""Run a command as the first process of a pid namespace: reap what loses its parent, as init does.

A zombie would look alive to a test that waits for its end. When this process exits, the kernel kills all others of the
namespace, so a test leaves none behind.
"""

import os
import subprocess
import sys


def main() -> int:
    command = subprocess.Popen(sys.argv[1:])
    while True:
        pid, status = os.wait()
        if pid == command.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(abs(main()))
