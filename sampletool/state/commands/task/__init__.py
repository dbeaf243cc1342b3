"""Queues of work that many calls share.

Each task is held by one at a time, finished once, and not lost when its holder dies. Tasks lie in the store: a file
of the workspace, outside one a file of yours, or the server that --store or TOOL_STORE names.
"""
