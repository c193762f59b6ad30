"""Bridges to other people's libraries. Each module needs the extra of its name."""
