"""Counts for counted tests: the smallest that still fails when the mechanism is removed, or the large ones."""

import os

from ..program import variable

SOAK = os.environ.get(variable("TEST_SCALE")) == "soak"


def scale(usual: int, soak: int) -> int:
    return soak if SOAK else usual
