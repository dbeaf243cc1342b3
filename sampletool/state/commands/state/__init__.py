"""Store values that many processes can read and change.

Each value has a version. If you pass the version that you have read, your change is refused when
another process has changed the value in the meantime.

Values are kept in a store. By default, this is a SQLite file in the workspace, or a personal one if
you are not in a workspace. To use a PostgreSQL or Redis server instead, pass --store or set
TOOL_STORE.
"""
