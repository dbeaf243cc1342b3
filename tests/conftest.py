"""Every test runs as the kit's do."""

pytest_plugins = ["sampletool.kit.testing.plugin"]
