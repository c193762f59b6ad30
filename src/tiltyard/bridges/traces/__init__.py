"""Readers for recorded runs of agents, in the formats of several frameworks.

A trace is hostile: every reader bounds what it holds, and names what it cannot read.
"""
