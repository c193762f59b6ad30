"""Tools that note what ran, for the tests of the hooks."""

from collections.abc import Callable
from typing import Any, ClassVar


def _as_it_is(function: Callable[..., Any]) -> Any:
    return function


class NoteTools:
    """Four tools. Frameworks read their names, their texts and their types."""

    wrap: ClassVar[Callable[..., Any]] = staticmethod(_as_it_is)
    """Makes a tool of a framework from a function."""
    waits: ClassVar[bool] = True
    """Whether `read_note` is a coroutine."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tools(self) -> list[Any]:
        def read_note(path: str) -> str:
            """Read a note."""
            self.ran.append(f"read {path}")
            return f"the secret of {path}" if path == "keys" else f"text of {path}"

        async def read_note_later(path: str) -> str:
            """Read a note."""
            return read_note(path)

        def send_mail(to: str) -> str:
            """Send a mail."""
            self.ran.append(f"send {to}")
            return "sent"

        def save_note(path: str, text: str) -> str:
            """Save a note."""
            self.ran.append(f"save {path} {text}")
            return "saved"

        def recall() -> str:
            """Recall."""
            self.ran.append("recall")
            return ""

        read_note_later.__name__ = "read_note"
        reads = read_note_later if self.waits else read_note
        return [type(self).wrap(one) for one in (reads, send_mail, save_note, recall)]
