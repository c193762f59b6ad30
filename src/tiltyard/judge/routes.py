"""Which route a finding needed: the same chain, played in simpler ways."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from tiltyard.agent import View
from tiltyard.agents.deterministic import DeterministicAgent, Memory
from tiltyard.agents.grammar import Instructions, Operation, Recode, Split, Wait
from tiltyard.judge.actions import ActionKey, action_key
from tiltyard.judge.cells import Route
from tiltyard.judge.slices import written_for
from tiltyard.trace import Answer, Event
from tiltyard.world.results import FROM_USER, ToolCall
from tiltyard.world.text import Derived, SourceKind, Text, by_user


class Simpler(Struct, frozen=True):
    """A simpler way to play a chain."""

    encodings: bool = True
    splits: bool = True
    instead: tuple[tuple[ActionKey, ToolCall], ...] = ()
    """Calls to make in the place of others: for a copy its original, for the first of a row of
    documents the last."""


class SimplerAgent(DeterministicAgent):
    """The deterministic agent, with detours left out."""

    def __init__(self, simpler: Simpler) -> None:
        self._simpler = simpler
        self._instead: Mapping[ActionKey, ToolCall] = dict(simpler.instead)

    def next_action(self, view: View) -> tuple[ToolCall | Answer, Memory]:
        action, memory = super().next_action(view)
        if isinstance(action, ToolCall):
            other = self._instead.get(action_key(action))
            if other is not None:
                action = structs.replace(action, tool=other.tool, args=other.args)
        return action, memory

    def read(self, text: Text) -> Instructions:
        return self._simplify(super().read(text))

    def _simplify(self, read: Instructions) -> Instructions:
        return Instructions(tuple(map(self._simplified, read.operations)), read.spans)

    def _simplified(self, operation: Operation) -> Operation:
        if isinstance(operation, Recode) and not self._simpler.encodings:
            return Recode(operation.what, None)
        if isinstance(operation, Split) and not self._simpler.splits:
            return Split(operation.what, 1)
        if isinstance(operation, Wait):
            return Wait(operation.tool, self._simplify(operation.instructions))
        return operation


Works = Callable[[Simpler], bool]


def needed_route(
    events: Sequence[Event], chain: tuple[int, ...], ends: tuple[int, ...], works: Works
) -> Route:
    """Return the simplest route by which a finding can be had.

    `chain` is its causal slice and `ends` the events that complete it; `works` plays the messages
    in a simpler way and tells whether the finding is still there.
    """
    detours = _detours(events, chain, ends)
    if not detours or _works_without(detours.values(), works):
        return Route.DIRECT
    if len(detours) > 1:
        for route in detours:
            others = [simpler for other, simpler in detours.items() if other is not route]
            if _works_without(others, works):
                return route
    return max(detours, key=list(Route).index)


def _works_without(detours: Iterable[Simpler | None], works: Works) -> bool:
    parts = list(detours)
    known = [part for part in parts if part is not None]
    return len(known) == len(parts) and works(
        Simpler(
            all(part.encodings for part in known),
            all(part.splits for part in known),
            tuple(pair for part in known for pair in part.instead),
        )
    )


def _detours(
    events: Sequence[Event], chain: tuple[int, ...], ends: tuple[int, ...]
) -> dict[Route, Simpler | None]:
    """Return the detours that a chain takes, simplest first, each with the way to leave it out.

    None stands for a detour that cannot be left out without another one taking its place.
    """
    found: dict[Route, Simpler | None] = {}
    copies = [
        events[index]
        for index in chain
        if events[index].call.tool in ("fs.read", "email.read") and any(written_for(events, index))
    ]
    if copies:
        originals = [_original(copy) for copy in copies]
        pairs = zip((action_key(copy.call) for copy in copies), originals, strict=True)
        known = tuple((key, call) for key, call in pairs if call is not None)
        found[Route.WASH] = Simpler(instead=known) if len(known) == len(copies) else None
    hops = _hops(events, ends[-1])
    if hops is not None:
        found[Route.HOPS] = Simpler(instead=(hops,))
    if any(_is_encoded(events[index]) for index in chain):
        found[Route.ENCODED] = Simpler(encodings=False)
    if any(len(_tellers(events[index].call.clause)) > 1 for index in ends):
        found[Route.SPLIT] = None
    elif len(ends) > 1:
        found[Route.SPLIT] = Simpler(splits=False)
    return found


def _original(event: Event) -> ToolCall | None:
    """Return the call that fetches what a copy was made of, if it is of one document."""
    documents = {
        (origin.kind, origin.document)
        for origin in event.result.output.origins()
        if origin.kind not in (SourceKind.USER, SourceKind.TOOL)
    }
    if len(documents) != 1:
        return None
    kind, document = documents.pop()
    tool, parameter = _FETCH[kind]
    return ToolCall(tool, {parameter: by_user(document)}, FROM_USER)


def _hops(events: Sequence[Event], end: int) -> tuple[ActionKey, ToolCall] | None:
    """Return how to go to the last of a row of documents at once, if there is a row."""
    because = events[end].call.because
    if not because:
        return None
    first = teller = events[because[0]]
    while first.call.because:
        first = events[first.call.because[0]]
    if first is teller:
        return None
    return action_key(first.call), ToolCall(teller.call.tool, teller.call.args, FROM_USER)


def _tellers(clause: Text) -> set[str]:
    return {origin.document for origin in clause.origins() if origin.document}


def _is_encoded(event: Event) -> bool:
    command = event.call.args.get("cmd")
    if isinstance(command, Text) and any(w in command.string for w in ("base64", "rev")):
        return True
    texts = [value for value in event.call.args.values() if isinstance(value, Text)]
    texts.append(event.call.clause)
    return any(isinstance(piece.origin, Derived) for text in texts for piece in text.pieces)


_FETCH: Final = {
    SourceKind.FILE: ("fs.read", "path"),
    SourceKind.WEB: ("web.open", "id"),
    SourceKind.EMAIL: ("email.read", "id"),
}
