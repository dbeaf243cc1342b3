"""Show where the settings come from, for `-vv`."""

from collections.abc import Callable

from .contract.expected import EXPECTED, to_tool_error
from .settings.known import all_settings
from .settings.precedence import Settings


def show_settings(settings: Settings, notice: Callable[[str], None]) -> None:
    """Call `notice` with the settings files that are read, and the source of each setting.

    The values are not shown: one may be a secret.
    """
    try:
        for scope in settings.scopes:
            is_missing = settings.texts[scope.name].links == 0
            remark = "does not exist" if is_missing else "is read"
            notice(f"Settings file of the {scope.name}: {scope.path} {remark}")
        for name in all_settings():
            source = settings.find((name,))
            if source.name != "default":
                notice(f"Setting {name}: from {source.where}")
    except EXPECTED as error:
        # A command that needs no settings works with a wrong file too.
        notice(f"Settings: {to_tool_error(error).message}")
    else:
        notice("All other settings have their defaults.")
