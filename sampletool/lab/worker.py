"""The program of every worker that is a process.

    python -m sampletool.lab.worker SCENARIO VARIANT named-steps|every-step WORKER

A variant that is a command of the tool is run as that command, in this process.
"""

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.contract.response import json_line
from ..kit.program import PROGRAM
from ..kit.stepping import tracee
from .place import place_of_this_process
from .position import position_in_this_process, source_of
from .scenario import EVERY_STEP, PACKAGE, find_scenario


def report_every_call() -> None:
    """Report every call of this process that uses files."""
    # The built-in open() reads and writes in C, which would not be reported.
    builtins.open = io.open = import_module("_pyio").open
    tracee.watch_every_call()


def main() -> None:
    """Run one worker of a scenario. The command line names the scenario and the variant."""
    scenario_name, variant_name, steps, worker_name = sys.argv[1:]
    scenario = find_scenario(scenario_name)
    variant = scenario.variants[variant_name]
    program = variant.program
    source = source_of(scenario, variant)

    def describe() -> dict[str, Any]:
        """Return the facts about this worker for the report of each event."""
        facts = position_in_this_process(source, scenario.private_variables)
        if steps == EVERY_STEP:
            facts["place"] = place_of_this_process((str(PACKAGE),))
        return facts

    tracee.describe = describe
    if steps == EVERY_STEP:
        report_every_call()
    if callable(program):
        _run_function(program, worker_name)
    else:
        _run_command(program, worker_name)


def _run_function(function: Callable[..., object], worker_name: str) -> None:
    """Run a variant that is a function. Report an expected error like a command of the tool."""
    try:
        function(worker_name)
    except EXPECTED as error:
        failure = to_tool_error(error)
        os.write(1, json_line({"error": failure.describe()}))
        sys.exit(int(failure.exit_status))


def _run_command(arguments: Sequence[str], worker_name: str) -> None:
    """Run a variant that is a command of the tool. Its arguments may contain `{worker}`."""
    sys.argv[:] = [PROGRAM]
    for argument in arguments:
        sys.argv.append(argument.format(worker=worker_name))
    runpy.run_module("sampletool", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
