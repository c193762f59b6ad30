"""Helpers for all other packages: keyed randomness, safe files, logs and progress."""
