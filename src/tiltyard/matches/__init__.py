"""Matches: who plays whom, under which ruleset, and what comes of it."""
