"""The environment variables that matter, apart from those of the settings.

Each setting has a variable of its own name too: see settings/precedence.py. The manifest, the help
topic and the documentation show this table.
"""

from .program import env_variable

ENVIRONMENT = {
    env_variable("SESSION_ID"): "The session ID. Same as --session-id.",
    env_variable("TIMEOUT"): "The time limit for each command. Same as --timeout.",
    env_variable("TRACE_ID"): "Any text. It is included in JSON output as `meta.trace_id`.",
    env_variable("CONFIG_DIR"): "The directory of your personal settings file.",
    env_variable("STATE_DIR"): (
        "The directory for the log, and for locks and data that belong to no workspace."
    ),
    env_variable("CEILING_DIRECTORIES"): (
        "Directories in which to stop looking for a workspace, separated by colons."
    ),
    "TMPDIR": "The directory in which session directories are created. [default: /tmp]",
    "CI": "If set, no progress is shown.",
    "NO_COLOR": "If set, turns colors off. The --color option overrides all color variables.",
    "FORCE_COLOR": (
        "If set, turns colors on even if the output is not a terminal. 0 turns them off."
    ),
    "CLICOLOR_FORCE": (
        "If set to anything but 0, turns colors on even if the output is not a terminal."
    ),
    "CLICOLOR": "If set to 0, turns colors off.",
    "TERM": "If set to `dumb`, turns off colors and the wrapping of messages.",
    "COLUMNS": "The width of help texts, in columns.",
}
