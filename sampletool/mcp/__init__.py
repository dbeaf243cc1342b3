"""The commands as tools of the Model Context Protocol, for AI agents."""

TITLE = "MCP server"
