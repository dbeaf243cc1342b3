"""Settings in TOML files: which there are, which value wins, and how one is changed."""
