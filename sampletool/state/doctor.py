"""The checks that shared state adds to `doctor`."""

from ..kit.commands.doctor import Probe
from ..kit.context import Context
from ..kit.contract.expected import EXPECTED, to_tool_error
from .connect import connect_for_command
from .protocol import Health

_MAX_SKEW_MS = 2000
"""The largest difference of the clocks that is not reported."""


def probe(context: Context) -> list[Probe]:
    """Check that the store is reachable, keeps what it acknowledges, and has the right time."""
    try:
        health = connect_for_command(context).health()
    except EXPECTED as error:
        failure = to_tool_error(error)
        return [
            Probe(
                "store is reachable",
                "the store",
                ok=False,
                detail=failure.message,
                fix=failure.suggestion,
            )
        ]
    return [
        Probe("store is reachable", health.server, True),
        Probe(
            "store keeps what it acknowledges",
            health.server,
            not health.problems,
            _durability(health),
        ),
        Probe(
            "store and clock agree",
            health.server,
            _is_clock_right(health),
            _clock_difference(health),
            required=False,
        ),
    ]


def _durability(health: Health) -> str:
    """Return the problems, or the settings if there are none."""
    if health.problems:
        return "; ".join(health.problems)
    settings = [f"{name} {value}" for name, value in sorted(health.settings.items())]
    return ", ".join(settings)


def _is_clock_right(health: Health) -> bool:
    return abs(health.clock_skew_ms) <= _MAX_SKEW_MS


def _clock_difference(health: Health) -> str | None:
    if _is_clock_right(health):
        return None
    return f"its clock differs from this machine's by {health.clock_skew_ms} ms"
