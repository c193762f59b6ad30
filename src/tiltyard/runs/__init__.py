"""Runs: from a request to a directory with a report."""
