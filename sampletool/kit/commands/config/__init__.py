"""Read and change settings, even from several processes.

No change is lost. In a workspace, the settings are in the table [settings] of its file. Elsewhere,
and with --global, they are in your own file.
"""
