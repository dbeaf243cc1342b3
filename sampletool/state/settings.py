"""The settings of shared state."""

SETTINGS = {
    "store": {
        "kind": "text",
        "default": "auto",
        "help": "The store for shared state. auto: a file of the workspace, or of the user.",
    },
}
