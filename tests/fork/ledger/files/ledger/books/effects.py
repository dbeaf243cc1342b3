"""Name the effects of the commands about books that the kit does not know."""

EFFECTS = {
    "server": {"help": "Data on a server."},
}
