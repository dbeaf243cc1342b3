"""What shared state adds to `doctor`: is the store there, and does it keep what it acknowledges?"""

from sampletool.kit.commands.doctor import Probe
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import ToolError
from sampletool.state.opening import store_of


def probe(context: Context) -> list[Probe]:
    """Is the configured store there, and does it keep what it acknowledges?"""
    try:
        found = store_of(context).health()
    except (ToolError, OSError) as error:
        return [Probe("store is reachable", "the store", False, str(error))]
    settings = ", ".join(f"{name} {value}" for name, value in sorted(found.settings.items()))
    kept = "; ".join(found.problems) or settings
    return [
        Probe("store is reachable", found.server, True),
        Probe("store keeps what it acknowledges", found.server, not found.problems, kept),
    ]
