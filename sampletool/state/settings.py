"""The settings of shared state."""

SETTINGS = {
    "store": {
        "kind": "text",
        "default": "auto",
        "help": (
            "The URL of the store for shared state. With auto, a SQLite file: that of the "
            "workspace, or a personal one."
        ),
    },
}
