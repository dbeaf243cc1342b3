"""The same commands as tools of the Model Context Protocol, for agents that keep one connection open."""

TITLE = "MCP server"
