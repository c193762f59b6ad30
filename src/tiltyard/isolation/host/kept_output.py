"""What the guests of one match printed, bounded and safe to show."""

from typing import Final

from tiltyard.foundation.printable import printable
from tiltyard.isolation.host.guest_process import Guest

MAX_GUEST_CHARS: Final = 8_000
MAX_KEPT_CHARS: Final = 24_000
_LEFT_OUT: Final = "[more output left out]"


class KeptOutput:
    """Keeps each text once: every episode has its own guest, and most guests print the same."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._chars = 0
        self._full = False

    def add(self, guest: Guest) -> None:
        """Keep the beginning and the end of what an ended guest printed."""
        if self._full:
            return
        text = _shortened(guest.output().strip("\n"))
        if not text or text in self._texts:
            return
        if self._chars + len(text) > MAX_KEPT_CHARS:
            self._full = True
            text = _LEFT_OUT
        self._texts[text] = None
        self._chars += len(text)

    def text(self) -> str:
        return "\n".join(self._texts)


def _shortened(text: str) -> str:
    left_out = len(text) - MAX_GUEST_CHARS
    if left_out > 0:
        half = MAX_GUEST_CHARS // 2
        text = f"{text[:half]}\n[{left_out:,} characters left out]\n{text[-half:]}"
    return printable(text, keep="\n\t", replacement="\N{REPLACEMENT CHARACTER}")
