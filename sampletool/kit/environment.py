"""The environment variables that matter, apart from those of the settings.

Each setting has a variable of its own name too: see settings/precedence.py. The manifest, the help
topic and the documentation show this table.
"""

from .program import env_variable

ENVIRONMENT = {
    env_variable("SESSION_ID"): "Session ID, as with --session-id.",
    env_variable("TIMEOUT"): "Time limit of each command, as with --timeout.",
    env_variable("TRACE_ID"): "Any text. JSON output repeats it in meta.trace_id.",
    env_variable("CONFIG_DIR"): "Directory of your own settings.",
    env_variable("STATE_DIR"): "Directory of the store and the locks outside of a workspace.",
    env_variable("CEILING_DIRECTORIES"): "Directories where the search for a workspace ends.",
    "TMPDIR": "Directory that contains the directories of sessions.",
    "CI": "Set: no progress display.",
    "NO_COLOR": "Set: no colors. --color wins over all variables about colors.",
    "FORCE_COLOR": "Set: colors, even if the output is not a terminal. 0 means no colors.",
    "CLICOLOR_FORCE": "Set and not 0: colors, even if the output is not a terminal.",
    "CLICOLOR": "0: no colors.",
    "TERM": "dumb: no colors, and no lines that are adapted to a terminal.",
    "COLUMNS": "Width of help, in columns.",
}
