"""A guardrail that sees through encodings, to show whether an encoding is needed.

An encoding is needed only if the guardrail would stop the plain text. So the judge lets the agent
and the world work as before, and shows the guardrail the plain text. Nothing else changes: every
command gets the same input as before.
"""

from typing import Any

from msgspec import structs

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.trace import NO_TRACE, Event, OpenTurn
from tiltyard.episode.guardrail_runner import Runner
from tiltyard.world.results import Argument, ToolCall, ToolResult
from tiltyard.world.text import Derived, Encoding, Piece, Text, join

Documents = frozenset[str]


class SeeingThrough:
    """Runs a guardrail, and shows it the plain text of some documents where they are encoded."""

    def __init__(self, runner: Runner, documents: Documents) -> None:
        self._runner = runner
        self._documents = documents
        self._turn: OpenTurn | None = None
        self._shown = OpenTurn(NO_TRACE, "", [])

    @property
    def initial(self) -> Any:
        return self._runner.initial

    def enter(self, state: Any) -> None:
        self._turn = None
        self._runner.enter(state)

    def show(self, state: Any) -> None:
        self._runner.show(state)

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision:
        self._follow(turn)
        return self._runner.decide(self._plain_call(call), self._shown)

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        return self._runner.observe(self._plain_call(call), self._plain_result(result))

    def leave(self) -> Any:
        if self._turn is not None:
            self._follow(self._turn)
        return self._runner.leave()

    def _follow(self, turn: OpenTurn) -> None:
        """Bring the turn that the guardrail sees up to date."""
        if turn is not self._turn:
            before = NO_TRACE
            for closed in turn.before.all_turns():
                events = [self._plain_event(event) for event in closed.turn_events]
                before = OpenTurn(before, closed.message, events).closed(closed.answer)
            self._turn, self._shown = turn, OpenTurn(before, turn.message, [])
        known = len(self._shown.events)
        self._shown.events += [self._plain_event(event) for event in turn.events[known:]]

    def _plain_event(self, event: Event) -> Event:
        ran = None if event.ran is None else self._plain_call(event.ran)
        call, result = self._plain_call(event.call), self._plain_result(event.result)
        return structs.replace(event, call=call, result=result, ran=ran)

    def _plain_call(self, call: ToolCall) -> ToolCall:
        args: dict[str, Argument] = {
            name: plain_text(value, self._documents) if isinstance(value, Text) else value
            for name, value in call.args.items()
        }
        return structs.replace(call, args=args)

    def _plain_result(self, result: ToolResult) -> ToolResult:
        return structs.replace(result, output=plain_text(result.output, self._documents))


def plain_text(text: Text, documents: Documents) -> Text:
    """Return a text with the source in place of every encoded piece from these documents."""
    if not any(_concerns(piece, documents) for piece in text.pieces):
        return text
    parts: list[Text] = []
    position = 0
    for piece in text.pieces:
        after = position + piece.stop - piece.start
        part = text.slice(position, after)
        parts.append(_source(piece, part, documents) if _concerns(piece, documents) else part)
        position = after
    return join(parts)


def _concerns(piece: Piece, documents: Documents) -> bool:
    origin = piece.origin
    return isinstance(origin, Derived) and any(a.document in documents for a in origin.authors)


def _source(piece: Piece, encoded: Text, documents: Documents) -> Text:
    """Return the part of the source that an encoded piece stands for."""
    derived = piece.origin
    assert isinstance(derived, Derived)
    if derived.encoding in (Encoding.DECODED, Encoding.MIXED) or not derived.source.string:
        return encoded  # The text is plain already, or its source is not known.
    size = len(derived.source.string)
    start = piece.start * size // derived.length
    stop = -(-piece.stop * size // derived.length)
    if derived.encoding is Encoding.REVERSE:
        start, stop = size - stop, size - start
    return plain_text(derived.source.slice(start, stop), documents)
