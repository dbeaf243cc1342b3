"""Values with versions: change one only if it is still what you read.

They lie in the store: the workspace's own file, outside one yours, or the server that --store or TOOL_STORE names.
"""
