"""Keyed randomness: every draw is a pure function of a key.

This is the only source of randomness in the project. There is no global state: a draw depends on
its key alone. So two parts of the program never influence each other, and a result is the same on
every machine and with every hash seed.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A stream of random numbers that its key determines.

    `Draw(123, "mail").below(10)` is the same number everywhere. `branch` returns an independent
    stream, so that an additional draw in one place does not change the draws in another.
    """

    __slots__ = ("_block", "_counter", "_key")

    def __init__(self, *key: str | int) -> None:
        self._key = _digest(b"", *key)
        self._counter = 0
        self._block = b""

    def branch(self, *key: str | int) -> "Draw":
        """Return an independent stream for `key`. Earlier draws do not affect it."""
        child = Draw()
        child._key = _digest(self._key, *key)
        return child

    def integer(self) -> int:
        """Return 64 uniform bits."""
        if not self._block:
            self._block = blake2b(self._counter.to_bytes(8, "big"), key=self._key).digest()
            self._counter += 1
        word, self._block = self._block[:8], self._block[8:]
        return int.from_bytes(word, "big")

    def bytes(self, count: int) -> bytes:
        """Return uniform bytes. This is the fast way to draw many small numbers."""
        drawn = b""
        while len(drawn) < count:
            drawn += blake2b(self._counter.to_bytes(8, "big"), key=self._key).digest()
            self._counter += 1
        return drawn[:count]

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound). The bias for bound < 2**32 is below 2**-32."""
        return self.integer() * bound >> 64

    def chance(self, numerator: int, denominator: int) -> bool:
        return self.below(denominator) < numerator

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Return `count` options from distinct positions, in random order."""
        pool = list(options)
        return [pool.pop(self.below(len(pool))) for _ in range(count)]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        return self.sample(options, len(options))

    def text(self, alphabet: str, length: int) -> str:
        return "".join(self.choice(alphabet) for _ in range(length))


def _digest(parent: bytes, *key: str | int) -> bytes:
    """Hash a key. Different keys never have the same encoding."""
    state = blake2b(parent, digest_size=32)
    for part in key:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else b"%d" % part
        state.update(b"%c%d:" % (b"s" if isinstance(part, str) else b"i", len(data)))
        state.update(data)
    return state.digest()
