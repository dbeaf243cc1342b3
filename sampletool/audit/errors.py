"""Why an audit could not be carried out, or a program could not be run."""

from ..kit.contract.errors import CommandNotFound, ExitStatus, ToolError


class ProgramNotRunnable(CommandNotFound):
    """The program is there, and the system does not run it."""

    sentence = "{command!r} cannot be run: {reason}."
    advice = (
        "A script needs a first line such as #!/bin/sh, with an interpreter that is there; or name the interpreter."
    )


class FailsAlone(ToolError):
    """The audited command does not even work when nothing else runs."""

    code, exit_status = "FAILS_ALONE", ExitStatus.PRECONDITION

    sentence = "The audit cannot be carried out: run alone, `{command}` {what}."
    advice = (
        "Correct the command. It runs in an empty scratch directory, without a shell, with a HOME of its own: "
        "name scripts by their full path, and pass variables with `env NAME=value ...`."
    )

    def __init__(self, command: str, what: str, output: str) -> None:
        super().__init__(command=command, what=what, output=output or None)
        self.message += f" It said: {' '.join(output.split()).rstrip('.')}." if output else ""
