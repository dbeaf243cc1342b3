"""Values with versions that many calls share.

Change one only if it is still what you read. They lie in the store: a file of the workspace, outside one a file of
yours, or the server that --store or TOOL_STORE names.
"""
