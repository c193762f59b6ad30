"""Matches: an attack against a guardrail, under a ruleset, with a score."""
