"""The vocabulary of a search: phrases with slots, and the names that fill the slots.

Phrases and words come from a ruleset. The search learns names of pages, mails and files from the
listings that tools return.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import VocabularyRules

MAX_NAMES: Final = 4_096
"""The limit for each slot: an endless listing must not fill the memory."""
_LISTED: Final = re.compile(r"\[([^\]\s]{1,80})\]")
_WORD: Final = re.compile(r"[A-Za-z]{4,20}")
_SLOT: Final = re.compile(r"\{(\w+)\}")

Learnt = tuple[tuple[str, str], ...]
"""Pairs of slot and name."""


class Vocabulary:
    """Phrases with slots, and the words for each slot: given ones and learnt ones."""

    def __init__(self, rules: VocabularyRules) -> None:
        missing = [kind for kind in rules.weights if not rules.phrases.get(kind)]
        if missing:
            raise ValueError(
                f"there are no phrases of the kind {missing[0]!r}; for a ruleset's vocabulary, "
                "take the rules that `tiltyard.matches.baseline.baseline_rules` returns"
            )
        self.rules = rules
        self._words: dict[str, list[str]] = {slot: [*words] for slot, words in rules.slots.items()}
        self._known: dict[str, set[str]] = {slot: set(words) for slot, words in rules.slots.items()}

    def words(self, slot: str) -> list[str]:
        return self._words.get(slot, [])

    def learn(self, learnt: Learnt) -> None:
        """Add names, in the order given."""
        for slot, name in learnt:
            known = self._known.setdefault(slot, set())
            if name not in known and len(known) < MAX_NAMES:
                known.add(name)
                self._words.setdefault(slot, []).append(name)

    def knows(self, slot: str, name: str) -> bool:
        return name in self._known.get(slot, ())

    def say(self, draw: Draw) -> str:
        """Return a message. Its kind is drawn by the weights."""
        kind = draw.choice(self.rules.weights)
        return self.fill(draw.choice(self.rules.phrases[kind]), draw)

    def wash(self, draw: Draw) -> str:
        """Return a harmless message."""
        return self.fill(draw.choice(self.rules.washes), draw)

    def fill(self, phrase: str, draw: Draw) -> str:
        """Fill the slots of a phrase. A slot without words becomes its own name."""
        parts = _parts(phrase)
        if len(parts) == 1:
            return phrase
        return "".join(
            part if at % 2 == 0 else self._word(part, draw) for at, part in enumerate(parts)
        )

    def _word(self, slot: str, draw: Draw) -> str:
        words = self._words.get(slot)
        return draw.choice(words) if words else slot


@lru_cache(maxsize=4096)
def _parts(phrase: str) -> tuple[str, ...]:
    return tuple(_SLOT.split(phrase))


def learn_from(events: Iterable[Any], slots: frozenset[str]) -> Learnt:
    """Return the names in the outputs of events, for these slots only."""
    learnt: list[tuple[str, str]] = []
    for event in events:
        if not event.ok:
            continue
        if event.name == "web.search":
            if "page" in slots:
                learnt += (("page", name) for name in _LISTED.findall(event.output))
            if "query" in slots:
                lines = event.output.split("\n")[::2]
                learnt += (
                    ("query", word.lower()) for line in lines for word in _WORD.findall(line)[1:4]
                )
        elif event.name == "email.list":
            if "mail" in slots:
                learnt += (("mail", name) for name in _LISTED.findall(event.output))
        elif event.name == "shell.run" and "file" in slots:
            learnt += _files(str(event.args.get("cmd")), event.output)
    return tuple(learnt)


def _files(command: str, output: str) -> Learnt:
    """Read the output of `ls`: names with a dot are files, others are directories."""
    words = command.split()
    if words[:1] != ["ls"] or len(words) > 2:
        return ()
    folder = f"{words[1].rstrip('/')}/" if len(words) == 2 else ""
    names = [name for name in output.split("\n") if name]
    return tuple(
        ("file" if "." in name else "directory", folder + name) for name in names if " " not in name
    )
