"""Share queues of tasks between many workers.

Only one worker at a time holds a task. If a worker dies, its tasks go to another worker when their
leases expire.

Tasks are kept in a store. By default, this is a SQLite file in the workspace, or a personal one if
you are not in a workspace. To use a PostgreSQL or Redis server instead, pass --store or set
TOOL_STORE.
"""
