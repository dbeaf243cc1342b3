"""Read and change settings.

Many processes can change settings at the same time without overwriting each other's changes.

In a workspace, settings are stored in the [settings] table of the workspace file. Anywhere else, or
if you pass --global, they are stored in your personal settings file.
"""
