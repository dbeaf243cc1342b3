"""The errors of `audit` and `run-safely`."""

from typing import Any

from ..kit.contract.errors import CommandNotFound, ExitStatus, ToolError
from ..kit.contract.text import redact


class ProgramNotRunnable(CommandNotFound):
    """The program exists, but the system refuses to run it."""

    sentence = "Cannot run {command}: {reason}."
    advice = (
        "Begin the script with a line such as #!/bin/sh, or name the interpreter on the "
        "command line."
    )  # fmt: skip


class ProgramFailed(ToolError):
    """The program has failed. The exit code is the program's own."""

    code = "PROGRAM_FAILED"
    exit_status: int = ExitStatus.PARTIAL
    """The exit code that the manifest shows. A raised error has the exit code of its program."""
    sentence = "{program} failed with exit code {program_exit_code}."
    advice = "The program's own output says why. It may have changed something before it failed."

    def __init__(self, *, program_exit_code: int, **facts: Any) -> None:
        """Create the error. This tool then exits with the exit code of the program."""
        super().__init__(program_exit_code=program_exit_code, **facts)
        self.exit_status = program_exit_code


class OutputLost(ToolError):
    """The program has succeeded, but its output could not be written."""

    code, exit_status = "OUTPUT_LOST", ExitStatus.INTERNAL
    sentence = "{program} has succeeded, but its output could not be written."
    advice = (
        "Check the disk, and what reads the output. Running the program again repeats its work."
    )


class FailsAlone(ToolError):
    """The command to audit fails even if nothing else runs."""

    code, exit_status = "FAILS_ALONE", ExitStatus.PRECONDITION
    sentence = "Cannot audit `{command}`: when run alone, it {what}."
    advice = (
        "Correct the command. It runs in an empty scratch directory, without a shell, and with a "
        "HOME of its own. So name scripts by their full path, and pass variables with "
        "`env NAME=value COMMAND`."
    )

    def __init__(self, command: str, what: str, output: str) -> None:
        """Create the error.

        `what` completes the sentence "when run alone, it ...". The `output` of the command is added
        to the message, unless it is empty.
        """
        super().__init__(command=redact(command), what=what, output=output or None)
        if output:
            shown = " ".join(output.split()).rstrip(".")
            self.message += f" Its output: {shown}."
