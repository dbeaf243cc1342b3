"""The program of every worker that is a process: `python -m sampletool.lab.worker SCENARIO WAY LETTER`.

A way that is a command of the tool is run as that command, in this process.
"""

import os
import runpy
import sys

from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.contract.response import json_line
from ..kit.program import PROGRAM
from ..kit.stepping import tracee
from .scenario import find
from .standing import of_this_process, source_of


def main() -> None:
    name, variant, letter = sys.argv[1:]
    scenario, way = find(name), find(name).ways[variant]
    program, source = way.program, source_of(scenario, way)
    tracee.describe = lambda: of_this_process(source, scenario.private)
    if callable(program):
        try:
            program(letter)
        except EXPECTED as error:
            failure = to_tool_error(error)
            os.write(1, json_line({"error": failure.describe()}))
            sys.exit(int(failure.exit_status))
    else:
        sys.argv[:] = [PROGRAM, *(word.format(worker=letter) for word in program)]
        runpy.run_module("sampletool", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
