"""The two sizes of a test that counts: small in a usual run, large in `make soak`.

The usual count is the smallest with which the test still fails when its mechanism is removed.
"""

import os

from ..program import env_variable

SOAK = os.environ.get(env_variable("TEST_SCALE")) == "soak"
"""Whether this run is `make soak`."""


def scale(usual: int, soak: int) -> int:
    """Return the count for this run."""
    return soak if SOAK else usual
