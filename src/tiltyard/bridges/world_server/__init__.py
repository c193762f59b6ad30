"""A world of the arena as an MCP server, and the sessions that agents leave behind."""
