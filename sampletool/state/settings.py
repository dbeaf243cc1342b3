"""The settings that this part knows."""

SETTINGS = {
    "store": {
        "kind": "text",
        "default": "auto",
        "help": "Where shared state lies; auto is the workspace's or the user's own file.",
    },
}
