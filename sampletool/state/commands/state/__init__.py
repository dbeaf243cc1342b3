"""Values with versions that many commands can change at the same time.

A command can change a value only if it is still the one that it has read. Values are in the store:
by default a file of the workspace, or a file of yours outside of a workspace. To use a server, pass
--store or set TOOL_STORE.
"""
