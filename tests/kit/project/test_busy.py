"""What `make busy` starts ends with it."""

import signal
import subprocess
import sys
import time

from sampletool.kit.safety.processes import is_running


def test_the_loops_end_also_when_the_run_is_killed() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.kit.busy",
        "--loops",
        "2",
        "--collect-only",
        "-q",
        "-n0",
        "tests/kit",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as busy:
        assert busy.stdout is not None
        loops = [int(pid) for pid in busy.stdout.readline().split()[2:]]
        busy.send_signal(signal.SIGKILL)

        assert len(loops) == 2
        deadline = time.monotonic() + 40
        while any(is_running(pid) for pid in loops):
            assert time.monotonic() < deadline
            time.sleep(0.01)
