"""The lab's own failure: a scenario did not end as it has to. The mechanism is gone, or the scenario is wrong."""

from typing import Any

from sampletool.contract.errors import ToolError
from sampletool.contract.exit_status import ExitStatus


class UnexpectedOutcome(ToolError):
    """The right way broke, or a wrong one could not be shown to break."""

    code, exit_status = "UNEXPECTED_OUTCOME", ExitStatus.PARTIAL

    def __init__(self, surprises: list[str], data: Any) -> None:
        super().__init__(
            f"{'; '.join(surprise.rstrip('.') for surprise in surprises)}.",
            "If a right way broke, what protects it is not there any more; replay the schedule to see it.",
            surprises=surprises,
        )
        self.data = data
