"""Queues of tasks that many workers share.

A task is held by one worker at a time, is finished once, and is not lost if its worker dies. Tasks
are in the store: by default a file of the workspace, or a file of yours outside of a workspace. To
use a server, pass --store or set TOOL_STORE.
"""
