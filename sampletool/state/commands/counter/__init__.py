"""Counters that many commands can change at the same time.

If a hundred commands add 1, the counter grows by 100. Counters are in the store: by default a file
of the workspace, or a file of yours outside of a workspace. To use a server, pass --store or set
TOOL_STORE.
"""
