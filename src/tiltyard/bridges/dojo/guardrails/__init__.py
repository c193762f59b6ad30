"""Simple guardrails for any tools, to compare good ones with. None knows a tool by its name."""
