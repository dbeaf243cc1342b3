"""Count things, from many processes at the same time.

If a hundred commands add 1 at the same time, the counter grows by 100.

Counters are kept in a store. By default, this is a SQLite file in the workspace, or a personal one
if you are not in a workspace. To use a PostgreSQL or Redis server instead, pass --store or set
TOOL_STORE.
"""
