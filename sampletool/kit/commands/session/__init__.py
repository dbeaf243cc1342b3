"""List sessions, and remove old ones.

A session is a directory with the output files and logs of all commands that used the same
--session-id.
"""
