"""The web side: a small ASGI front, Django behind it, and the JSON API."""
