"""Settings in TOML that many may change at once.

No change is lost. In a workspace they are the [settings] of its own file; elsewhere, and with --global, they
are your own.
"""
