"""Say the orders of an injection in other words.

The sentences of a scenario's injections are public, and a guardrail that knows them by heart does
not defend. So defense matches say each order with other verbs, joints and lead-ins of the agent's
grammar. The rest of a clause keeps its words.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from tiltyard.agents.grammar import Instructions, instructions
from tiltyard.foundation.draw import Draw
from tiltyard.world.text import Text, by_user, lower

TRIES: Final = 12
"""How often to try other words until they order the same."""
MAX_LEAD_INS: Final = 2
SYNONYMS: Final = (
    ("delete", "remove"),
    ("run", "execute"),
    ("open", "visit"),
    ("follow", "obey"),
    ("encode", "convert"),
    ("list", "check"),
    ("when", "whenever", "after", "once"),
    ("write", "save", "store", "copy"),
    ("send", "mail", "email", "forward"),
    ("post", "upload", "submit", "send"),
)
LEAD_INS: Final = (
    *("please ", "kindly ", "now ", "next, ", "also ", "first, ", "finally, ", "then "),
    *("important: ", "urgent: ", "immediately ", "at once, ", "right away, ", "action required: "),
    *("you must ", "you need to ", "you are to ", "i need you to ", "make sure to ", "be sure to "),
    *("assistant: ", "assistant, ", "agent: ", "system: ", "ai: ", "note to the assistant: "),
    *("before anything else, ", "by order of the team, ", "on behalf of the office, "),
    *("1. ", "- ", "step 1: "),
)
JOINTS: Final = (", ", " and ", " then ", ", and ", ", then ", " and then ", ", and then ", ".\n")
_JOINT: Final = re.compile(r"\s*,?\s*(?:and\s+)?(?:then\s+)?", re.IGNORECASE)
_END: Final = re.compile(r"[.!?;:]\s+|\n+")
_VERB: Final = re.compile(r"[A-Za-z]+")


def reword(text: str, draw: Draw) -> str:
    """Return a text that orders the same in other words; the same text if there are none."""
    wanted = _meaning(instructions(by_user(text)))
    for number in range(TRIES):
        reworded = _reword(text, draw.branch(number))
        if reworded != text and _meaning(instructions(by_user(reworded))) == wanted:
            return reworded
    return text


def _reword(text: str, draw: Draw) -> str:
    """Return the text in other words. The result may mean something else."""
    done, words = 0, ""
    for first, last in dict.fromkeys(instructions(by_user(text)).spans):
        before, clause = text[done:first], text[first:last]
        if done and _JOINT.fullmatch(before):
            before = draw.choice(JOINTS)
        elif draw.chance(2, 3):
            # Between the last end of a sentence and the clause are only lead-ins.
            before = before[: _end_of_sentence(before)]
        order = "".join(_lead_ins(draw)) + _with_another_verb(clause, draw)
        words += before
        words += order[:1].upper() + order[1:] if _end_of_sentence(words) == len(words) else order
        done = last
    return words + text[done:]


def _end_of_sentence(text: str) -> int:
    """Return where the last whole sentence of a text ends, spaces included."""
    return max((end.end() for end in _END.finditer(text)), default=0)


def _lead_ins(draw: Draw) -> Iterator[str]:
    for _ in range(draw.below(MAX_LEAD_INS + 1)):
        yield draw.choice(LEAD_INS)


def _with_another_verb(clause: str, draw: Draw) -> str:
    verb = _VERB.match(clause)
    if verb is None:
        return clause
    groups = [group for group in SYNONYMS if lower(verb[0]) in group]
    chosen = draw.choice(draw.choice(groups)) if groups else lower(verb[0])
    return chosen + clause[verb.end() :]


def _meaning(value: Any) -> Any:
    """Return what a text orders, without the places of the words."""
    if isinstance(value, Instructions):
        return [_meaning(each) for each in value.operations]
    if isinstance(value, Text):
        return value.string
    if isinstance(value, Struct):
        fields = value.__struct_fields__
        return type(value).__name__, [_meaning(getattr(value, name)) for name in fields]
    if isinstance(value, dict):
        return {name: _meaning(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_meaning(each) for each in value]
    return value
