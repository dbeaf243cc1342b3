"""What the commands of the sample take in common."""

from typing import Annotated

import typer

JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="How many at once.  [default: one for each processor]"),
]
