"""Your own tool."""
