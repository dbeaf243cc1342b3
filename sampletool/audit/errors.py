"""Why an audit could not be carried out."""

from sampletool.contract.errors import ToolError
from sampletool.contract.exit_status import ExitStatus


class CommandNotFound(ToolError):
    code, exit_status = "COMMAND_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, option: str, program: str) -> None:
        super().__init__(
            f"The command of {option} cannot be run: there is no program {program!r}.",
            "Install it, put its directory on the PATH, or name it by its path; a shell's aliases are not seen.",
            program=program,
        )


class FailsAlone(ToolError):
    """The audited command does not even work when nothing else runs."""

    code, exit_status = "FAILS_ALONE", ExitStatus.PRECONDITION

    def __init__(self, command: str, what: str, output: str) -> None:
        super().__init__(
            f"The audit cannot be carried out: run alone, `{command}` {what}.{_last_words(output)}",
            "Correct the command. It runs in an empty scratch directory, without a shell, with a HOME of its own: "
            "name scripts by their full path, and pass variables with `env NAME=value ...`.",
            command=command,
            output=output or None,
        )


def _last_words(output: str) -> str:
    return f" It said: {' '.join(output.split()).rstrip('.')}." if output else ""
