"""What shared state adds to `doctor`: is the store there, and does it keep what it acknowledges?"""

from ..kit.commands.doctor import Probe
from ..kit.context import Context
from ..kit.contract.expected import EXPECTED, to_tool_error
from .connect import store_of

_SKEW_MS = 2000


def probe(context: Context) -> list[Probe]:
    """Is the configured store there, does it keep what it acknowledges, and is its clock near ours?"""
    try:
        found = store_of(context).health()
    except EXPECTED as error:
        return [Probe("store is reachable", "the store", False, to_tool_error(error).message)]
    settings = ", ".join(f"{name} {value}" for name, value in sorted(found.settings.items()))
    kept = "; ".join(found.problems) or settings
    skew = f"its clock is {found.clock_skew_ms} ms from ours" if abs(found.clock_skew_ms) > _SKEW_MS else None
    return [
        Probe("store is reachable", found.server, True),
        Probe("store keeps what it acknowledges", found.server, not found.problems, kept),
        Probe("store and clock agree", found.server, skew is None, skew),
    ]
