"""Confinement: a process gives up, for good, what a submission could misuse."""
