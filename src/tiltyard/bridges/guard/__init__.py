"""A guard in front of an MCP server.

The guard process forwards bytes. It imports the standard library only, so that it starts quickly
and stays small. It asks the decider, another process, about tool calls and their results.
"""
