"""Work that everybody shares: each item is held by one at a time, finished once, and lost by nobody's death.

They lie in the store: the workspace's own file, outside one yours, or the server that --store or TOOL_STORE names.
"""
