"""Confinement: a process gives up, for good, what strange code could misuse."""
