"""The settings that this part knows: plain literals, no import."""

SETTINGS = {
    "low_stock": {"kind": "count", "default": "5", "expected": "a whole number from 1", "help": "Fewer are few."},
}
