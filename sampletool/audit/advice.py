"""What callers of a tool that cannot stand parallel runs can do: run it one at a time, everywhere, by one lock."""

from typing import NamedTuple

from ..kit.program import PROGRAM
from .command_line import CommandLine


class Advice(NamedTuple):
    """For callers of the tool. Its author reads in the findings what to correct."""

    rules: list[str]
    loop: list[str]
    """Shell that runs the command for each line `key value` of its standard input; as many such loops as one likes."""


def advise(score: int, set_command: CommandLine, *, blocked_after_kill: bool) -> Advice | None:
    if score >= 2:
        return None
    rules = [
        "Run it serialised: one call at a time, every caller through the same lock, as in this loop.",
        f"`{PROGRAM} run-safely` waits its turn, gives up after 30 s, and its lock is freed by any death, kill -9 too.",
    ]
    if score == 0:
        rules.append("A status of 0 proves nothing while a caller outside that lock may be running.")
    if blocked_after_kill:
        rules.append("Do not kill it: what a killed run leaves behind has to be found and removed by hand.")
    words = set_command.show('"$key"', '"$value"')
    call = f"  {PROGRAM} run-safely -q --lock-timeout 30s -- {words} </dev/null || exit"
    return Advice(rules, ["while read -r key value; do", call, "done"])
