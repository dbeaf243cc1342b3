"""Counts for counted tests: the smallest that still fails when the mechanism is removed, or the large ones."""

import os

SOAK = os.environ.get("TOOL_TEST_SCALE") == "soak"


def scale(usual: int, soak: int) -> int:
    return soak if SOAK else usual
