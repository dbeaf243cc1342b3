"""The settings that this part knows: plain literals, no import."""

SETTINGS = {
    "scarce_below": {"kind": "count", "default": "5", "help": "Fewer are few."},
}
