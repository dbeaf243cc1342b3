"""The program of a worker whose way is a function: `python -m sampletool.lab.worker SCENARIO WAY LETTER [READY GO]`.

With two descriptors it says on the first that it is ready, and waits for the end of the second, so that many can be
let go at the same moment. A way that is a command
of the tool is run as that command, in this process.
"""

import json
import os
import runpy
import sys
from importlib import import_module

from sampletool.contract.errors import ToolError
from sampletool.lab.scenario import find


def main() -> None:
    name, variant, letter, *barrier = sys.argv[1:]
    program = find(name).ways[variant].program
    if callable(program):
        _await(barrier)
        try:
            program(letter)
        except ToolError as error:
            os.write(1, json.dumps({"error": error.describe()}).encode())
            sys.exit(int(error.exit_status))
    else:
        sys.argv[:] = ["tool", *(word.format(worker=letter) for word in program)]
        import_module("sampletool.app")
        _await(barrier)
        runpy.run_module("sampletool", run_name="__main__", alter_sys=True)


def _await(barrier: list[str]) -> None:
    if barrier:
        ready, go = map(int, barrier)
        os.write(ready, b".")
        os.read(go, 1)


if __name__ == "__main__":
    main()
