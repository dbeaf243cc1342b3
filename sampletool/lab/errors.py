"""The lab's own failures: no such scenario; or it did not end as it has to: its mechanism is gone, or it is wrong."""

from typing import Any

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.exit_status import ExitStatus


class ScenarioNotFound(ToolError):
    """The lab has no such scenario."""

    code, exit_status = "SCENARIO_NOT_FOUND", ExitStatus.NOT_FOUND

    sentence = "There is no scenario {scenario!r}."
    advice = "`{PROGRAM} lab list` shows the scenarios."


class UnexpectedOutcome(ToolError):
    """The right way broke, or a wrong one could not be shown to break."""

    code, exit_status = "UNEXPECTED_OUTCOME", ExitStatus.PARTIAL

    advice = "If a right way broke, what protects it is not there any more; replay the schedule to see it."

    def __init__(self, surprises: list[str], data: Any) -> None:
        said = "; ".join(surprise.rstrip(".") for surprise in surprises)
        super().__init__(f"{said}.", data=data, surprises=surprises)
