"""Whether to print in color.

The first of these that applies decides: the option --color, then the environment variables
NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE and CLICOLOR, then whether the output goes to a terminal.
"""

import os


def wants_color(descriptor: int, option: str | None) -> bool:
    """Return whether the output on this descriptor has colors. `option` is the value of --color."""
    if option == "always":
        return True
    if option == "never":
        return False
    # https://no-color.org: any value that is not empty.
    if os.environ.get("NO_COLOR"):
        return False
    force_color = os.environ.get("FORCE_COLOR")
    if force_color:
        return force_color not in ("0", "false")
    # https://bixense.com/clicolors
    clicolor_force = os.environ.get("CLICOLOR_FORCE", "")
    if clicolor_force not in ("", "0"):
        return True
    if os.environ.get("CLICOLOR") == "0":
        return False
    return os.isatty(descriptor) and os.environ.get("TERM") != "dumb"
