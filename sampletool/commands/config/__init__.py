"""Settings in TOML, changed by many at once without losing anybody's change.

In a workspace they are the [settings] of its tool.toml; elsewhere, and with --global, they are your own.
"""
