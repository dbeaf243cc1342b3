"""Numbers that many calls count up together.

A hundred calls that add one leave a hundred. They lie in the store: a file of the workspace, outside one a file of
yours, or the server that --store or TOOL_STORE names.
"""
