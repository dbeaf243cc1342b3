"""Run every test with the fixtures of the kit."""

pytest_plugins = ["sampletool.kit.testing.plugin"]
