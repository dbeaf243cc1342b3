"""Advice for the callers of a tool that is not safe to run several times at once: take turns."""

from dataclasses import dataclass

from ..kit.program import PROGRAM
from .command_line import CommandLine


@dataclass(frozen=True)
class Advice:
    """Rules for the callers of a tool, and a loop that follows them.

    The author of the tool finds the faults to correct in the rest of the report.
    """

    rules: list[str]
    loop: list[str]
    """The lines of a shell loop that runs the command for each line `key value` of its stdin.

    Any number of these loops can run at the same time, because each run waits for its turn.
    """


def advise(score: int, set_command: CommandLine, *, blocked_after_kill: bool) -> Advice | None:
    """Return the advice for the callers of a tool with this score.

    Return None if the score is at least 2, because such a tool may run several times at once.
    """
    if score >= 2:
        return None
    rules = [
        "Run one at a time. Every caller has to use the same lock, as in this loop.",
        f"`{PROGRAM} run-safely` waits for its turn, and gives up after 30 s. Its lock is "
        "released however the process ends, even by `kill -9`.",
    ]
    if score == 0:
        rules.append("Exit code 0 proves nothing while a caller without this lock may be running.")
    if blocked_after_kill:
        rules.append(
            "Do not kill it. You would have to find and remove what a killed run leaves behind."
        )
    words = set_command.to_shell(key='"$key"', value='"$value"')
    run_line = f"  {PROGRAM} run-safely -q --lock-timeout 30s -- {words} </dev/null || exit"
    return Advice(rules=rules, loop=["while read -r key value; do", run_line, "done"])
