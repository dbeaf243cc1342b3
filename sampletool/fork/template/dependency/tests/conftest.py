"""Run every test with the fixtures of the kit, which is an installed package."""

import os

# It tells the kit which program the tests are about, so it is set before the kit is imported.
os.environ["KIT_PACKAGE"] = "sampletool"

pytest_plugins = ["sampletool.kit.testing.plugin"]
