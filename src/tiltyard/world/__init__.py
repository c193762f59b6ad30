"""The simulated machine as an immutable value, the ten tools that act on it, and scenarios.

`state` is the machine; `files`, `mail` and `web` are its parts; `tools` and `shell` act on it.
`scenario` is the data a machine starts from, `generate` makes a scenario from a seed, and
`fixtures` reads and writes one as a directory.
"""
