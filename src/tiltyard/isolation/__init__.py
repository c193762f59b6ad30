"""Isolation: submissions run in a jail, or not at all."""
