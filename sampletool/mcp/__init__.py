"""A server for the Model Context Protocol (MCP): it offers the commands as tools to AI agents."""

TITLE = "MCP server"
