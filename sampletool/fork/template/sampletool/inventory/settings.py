"""Define the settings of the inventory."""

SETTINGS = {
    "scarce_below": {
        "kind": "count",
        "default": "5",
        "help": "The number of pieces below which an item is scarce.",
    },
}
