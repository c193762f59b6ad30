"""The benign suite's material: tasks and words, as data beside this file.

Owns the data's types; `suite` decides what is drawn and how a template becomes a task. Slots are
filled in as in the scenario's own templates, and from the same vocabulary.
"""

from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from tiltyard.benign.tasks import Outcome


class Template(Struct, frozen=True, forbid_unknown_fields=True):
    """A task with slots instead of names."""

    name: str
    messages: tuple[str, ...]
    calls: tuple[str, ...]
    """Tool and target, with a space between them."""
    outcome: tuple[Outcome, ...]
    role: str = ""
    """Tasks of one role may stand for each other; a suite goes round the roles."""
    documents: dict[str, str] = {}
    """Slots that are filled with the scenario's documents, and what kind: see `house`."""
    define: dict[str, str] = {}
    """Slots of this task's own, filled in before the rest."""
    reads: tuple[str, ...] = ()
    """Documents that it reads otherwise than by a call that names them."""
    lookalike: bool = False
    """It is about documents that look like an attack and are none."""


class Operation(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    task: tuple[Template, ...]
    plain: bool = False
    """Not even its look-alikes have a word that looks secret, as far as the scenario has such."""


class Book(Struct, frozen=True):
    """All of it."""

    version: int
    """Raised whenever the same key would give other tasks."""
    loaded: tuple[str, ...]
    """What looks secret to a careless rule, in lower case."""
    words: dict[str, tuple[str, ...]]
    suite: tuple[Operation, ...]
    extended: tuple[Operation, ...]


class _Words(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    loaded: tuple[str, ...]
    words: dict[str, tuple[str, ...]]


class _Tasks(Struct, frozen=True, forbid_unknown_fields=True):
    operation: tuple[Operation, ...]


@cache
def load() -> Book:
    """Read all templates. They come with the package, so a mistake in them is a bug."""
    here = files("tiltyard.benign")
    words = msgspec.toml.decode((here / "words.toml").read_bytes(), type=_Words)
    suite, extended = (
        msgspec.toml.decode((here / name).read_bytes(), type=_Tasks).operation
        for name in ("suite.toml", "extended.toml")
    )
    return Book(words.version, words.loaded, words.words, suite, extended)
