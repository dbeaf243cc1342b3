"""Define the settings of the books."""

SETTINGS = {
    "rounding": {
        "kind": "choice",
        "choices": ("exact", "nearest", "down"),
        "default": "exact",
        "help": "How a balance is rounded to whole units for people.",
    },
}
