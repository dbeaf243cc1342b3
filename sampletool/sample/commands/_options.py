"""Options that several commands of this part share."""

from typing import Annotated

import typer

JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Run at most N jobs at the same time.",
        show_default="the `jobs` setting, or one for each processor",
    ),
]

ForceUnlockOption = Annotated[
    bool,
    typer.Option(
        "--force-unlock",
        help="Before starting, terminate processes that a crashed build has left running.",
    ),
]
