"""Integers that everybody shares: a hundred calls that add one leave a hundred.

They lie in the store: the workspace's own file, outside one yours, or the server that --store or TOOL_STORE names.
"""
