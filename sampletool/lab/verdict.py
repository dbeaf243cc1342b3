"""The lab's own failures: no such scenario; or it did not end as it has to: its mechanism is gone, or it is wrong."""

from typing import Any

from sampletool.kit.contract.errors import ToolError, did_you_mean
from sampletool.kit.contract.exit_status import ExitStatus
from sampletool.kit.contract.text import quoted


class ScenarioNotFound(ToolError):
    """The lab has no such scenario."""

    code, exit_status = "SCENARIO_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, name: str, known: list[str]) -> None:
        suggestion = did_you_mean(name, known) or "`tool lab list` shows the scenarios."
        super().__init__(f"There is no scenario {quoted(name)}.", suggestion, scenario=name)


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
