"""Settings in TOML that many may change at once.

Nobody's change is lost. In a workspace they are the [settings] of its tool.toml; elsewhere, and with --global, they
are your own.
"""
