"""Every test runs as the kit's do."""

pytest_plugins = ["tests.kit.plugin"]
