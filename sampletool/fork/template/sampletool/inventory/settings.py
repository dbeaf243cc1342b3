"""The settings that this part knows: plain literals, no import."""

SETTINGS = {
    "low_stock": {"kind": "count", "default": "5", "help": "Fewer are few."},
}
