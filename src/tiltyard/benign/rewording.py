"""Say the orders of an injection in other words.

The sentences of a scenario's injections are public, and a guardrail that knows them by heart does
not defend. So defense matches say each order anew, in any words of the agent's grammar.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from tiltyard.agents.grammar import Instructions, instructions
from tiltyard.agents.grammar.operations import Operation
from tiltyard.agents.grammar.saying import ask, capital, say
from tiltyard.foundation.draw import Draw
from tiltyard.world.text import Text, by_user

TRIES: Final = 24
"""How often to try other words until they order the same."""
_JOINT: Final = re.compile(r"\s*,?\s*(?:and\s+)?(?:then\s+)?", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"[\s.!?;:,]*(?:\b(?:and|then|please|also)\b[\s,]*)*", re.IGNORECASE)
"""What may stand between two requests, and behind the last one."""
_FOLLOWS: Final = re.compile(r"\b(?:follow|obey)\b", re.IGNORECASE)
_END: Final = re.compile(r"[.!?;:]\s+|\n+")


def reword(text: str, draw: Draw) -> str:
    """Return a text that orders the same in other words; the same text if there are none."""
    return _first_equal(text, lambda number: _reword(text, draw.branch(number)))


def reword_request(message: str, draw: Draw) -> str:
    """Return a user's message that asks for the same in other words.

    A user who asks to follow a document keeps that word: to read it is less. Lines that ask for
    nothing stay as they are, and so do lines in which only a part is a request: what the agent does
    not read, such as an exception, must not get lost.
    """
    if _FOLLOWS.search(message):
        return message
    return _first_equal(message, lambda number: _ask_again(message, draw.branch(number)))


def _ask_again(message: str, draw: Draw) -> str:
    """Return the message with other words in each line that only asks for something."""
    return "\n".join(
        ask(instructions(by_user(line)).operations, draw) if _is_request(line) else line
        for line in message.split("\n")
    )


def _is_request(line: str) -> bool:
    """Tell whether a line has requests, and nothing between and behind them."""
    spans = instructions(by_user(line)).spans
    starts = [first for first, _ in spans[1:]] + [len(line)]
    between = (line[last:start] for (_, last), start in zip(spans, starts, strict=False))
    return bool(spans) and all(_BETWEEN.fullmatch(words) for words in between)


def _first_equal(text: str, another: Callable[[int], str]) -> str:
    """Try other words until they order the same as a text."""
    wanted = _meaning(instructions(by_user(text)))
    for number in range(TRIES):
        reworded = another(number)
        if reworded != text and _meaning(instructions(by_user(reworded))) == wanted:
            return reworded
    return text


def _reword(text: str, draw: Draw) -> str:
    """Return the text in other words. The result may mean something else."""
    done, words = 0, ""
    for before, operations, end in _orders(text):
        order = say(operations, draw)
        if draw.chance(1, 3):
            words += before
        else:
            # Between the last end of a sentence and the order are only lead-ins.
            words += before[: _end_of_sentence(before)]
        at_start = _end_of_sentence(words) == len(words)
        words += capital(order) if at_start else order
        done = end
    return words + text[done:]


def _orders(text: str) -> Iterator[tuple[str, list[Operation], int]]:
    """Yield the words before each order, its operations, and where it ends.

    Clauses that only a joint separates are one order.
    """
    read = instructions(by_user(text))
    done, before, operations = 0, "", list[Operation]()
    for operation, (first, last) in zip(read.operations, read.spans, strict=True):
        if operations and first >= done and not _JOINT.fullmatch(text[done:first]):
            yield before, operations, done
            operations = []
        if not operations:
            before = text[done:first]
        operations.append(operation)
        done = last
    if operations:
        yield before, operations, done


def _end_of_sentence(text: str) -> int:
    """Return where the last whole sentence of a text ends, spaces included."""
    return max((end.end() for end in _END.finditer(text)), default=0)


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
