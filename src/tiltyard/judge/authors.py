"""Whose word a call was: the author of an instruction, and not only of its letters.

A stranger is credited with an order only for words that the stranger's document really gives as an
order: one stretch of one document, which read whole orders the same. What somebody cut out of a
document, or pasted together from several, is theirs who did the cutting. Where documents alone did
the pasting, by notes, encodings and orders to follow of their own, the order is theirs.
"""

from functools import lru_cache

from tiltyard.agents.grammar import Instructions, Wait, instructions
from tiltyard.world.results import ToolCall
from tiltyard.world.scenario import Scenario
from tiltyard.world.text import Derived, Origin, SourceKind, Text, by_user

Span = tuple[int, int]


class Library:
    """A scenario's documents, as they were before anybody touched them."""

    def __init__(self, scenario: Scenario) -> None:
        self._bodies: dict[tuple[SourceKind, str], str] = {}
        for page in scenario.pages:
            self._bodies[SourceKind.WEB, page.id] = page.content
        for mails in scenario.folders.values():
            for mail in mails:
                self._bodies[SourceKind.EMAIL, mail.id] = mail.body
        for path, content in scenario.files.items():
            self._bodies[SourceKind.FILE, path] = content
        self._orders = lru_cache(maxsize=4096)(self._read_orders)

    def authors(self, call: ToolCall) -> tuple[Origin, ...]:
        """Return the documents whose word a call was; none, if the user had a part in it."""
        if call.because is None:
            return ()
        documents = tuple(
            origin for origin in call.clause.origins() if origin.kind is not SourceKind.TOOL
        )
        if not documents or any(origin.kind is SourceKind.USER for origin in documents):
            return ()
        return documents if call.arranged or self._is_order(call.clause) else ()

    def _is_order(self, clause: Text) -> bool:
        """Tell whether a clause is one stretch of one document, and an order there too."""
        if len(clause.pieces) != 1:
            return False
        piece = clause.pieces[0]
        if isinstance(piece.origin, Derived):
            return False
        return (piece.start, piece.stop) in self._orders(piece.origin.kind, piece.origin.document)

    def _read_orders(self, kind: SourceKind, document: str) -> frozenset[Span]:
        body = self._bodies.get((kind, document), "")
        return frozenset(_spans(instructions(by_user(body))))


def _spans(read: Instructions) -> list[Span]:
    inner = [op.instructions for op in read.operations if isinstance(op, Wait)]
    return [*read.spans, *(span for waiting in inner for span in _spans(waiting))]
