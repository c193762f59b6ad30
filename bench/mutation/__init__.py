"""Mutants of the reference guardrail, for `bench/mutants.py`.

`changes` lists them, with the ways to change a node in `operators` and nodes found by `places`.
`sources` loads a mutant as a guardrail, `episodes` has what a match plays, and `verdicts` tells
whether the match notices the mutant.
"""
