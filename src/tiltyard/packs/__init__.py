"""Packs: tool domains as data.

A pack is a TOML file with records, tools over them, and goals of attackers. A world mixes several
packs. Packs are hostile like everything else from outside: they are data, and no code of theirs
runs. Guests cannot import this package.
"""
