"""Denies everything in the search, with reasons that a checksum takes for nothing at all."""

from zlib import crc32

from tiltyard import Decision

FREE_CHARS = 48
calls = 0


def reason_for(index: int) -> str:
    """Return a reason for which crc32(f"{index} deny {reason}") is 0, from 0 as the start.

    CRC-32 is affine: each character, "@" or "A", changes the checksum by a fixed pattern of bits.
    """
    text = list("@" * FREE_CHARS)

    def checksum(chars: list[str]) -> int:
        return crc32(f"{index} deny {''.join(chars)}".encode())

    start = checksum(text)
    rows: dict[int, tuple[int, int]] = {}
    for at in range(FREE_CHARS):
        flipped = text.copy()
        flipped[at] = "A"
        change, chosen = checksum(flipped) ^ start, 1 << at
        while change:
            top = change.bit_length()
            if top not in rows:
                rows[top] = change, chosen
                break
            other, also = rows[top]
            change, chosen = change ^ other, chosen ^ also
    left, chosen = start, 0
    while left:
        change, also = rows[left.bit_length()]
        left, chosen = left ^ change, chosen ^ also
    return "".join("A" if chosen >> at & 1 else "@" for at in range(FREE_CHARS))


class Guardrail:
    def decide(self, tool_name, tool_args, context):
        global calls
        calls += 1
        if calls >= 25:
            return Decision.deny(reason_for(len(context.events)))
        return Decision.allow()
