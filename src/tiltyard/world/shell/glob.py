"""File name patterns: `*`, `?` and `[...]`, compiled once and matched against one name at a time.

`*` and `?` also match a leading dot; `[!a]` and `[^a]` mean the same; ranges go by code point.
"""

from enum import Enum

from msgspec import Struct

Char = tuple[str, bool]
"""A character, and whether it is unquoted: only an unquoted one can be part of a pattern."""


class Wild(Enum):
    """A wildcard of a pattern."""

    ONE = "?"
    MANY = "*"


class Choice(Struct, frozen=True, gc=False):
    """A bracket expression: one character in a set, or one not in it."""

    negated: bool
    chars: frozenset[str]
    ranges: tuple[tuple[str, str], ...]

    def admits(self, char: str) -> bool:
        listed = char in self.chars or any(low <= char <= high for low, high in self.ranges)
        return listed is not self.negated


Token = str | Wild | Choice
Component = str | tuple[Token, ...]
"""One name of a path, or a pattern for it."""


class PatternError(Exception):
    """The pattern contains a character class, which this shell does not have."""


def match(pattern: tuple[Token, ...], name: str) -> tuple[bool, int]:
    """Return whether a name matches a pattern, and the number of comparisons.

    The search backtracks only to the last `*`, so the work is at most the product of the lengths.
    """
    size = len(pattern)
    at = position = retry = work = 0
    star = -1
    while position < len(name):
        work += 1
        token = pattern[at] if at < size else None
        if token is Wild.MANY:
            star, retry = at, position
            at += 1
            continue
        if isinstance(token, Choice):
            work += len(token.ranges)
            fits = token.admits(name[position])
        else:
            fits = token is Wild.ONE or token == name[position]
        if fits:
            at += 1
            position += 1
        elif star >= 0:
            retry += 1
            at, position = star + 1, retry
        else:
            return False, work
    while at < size and pattern[at] is Wild.MANY:
        at += 1
    return at == size, work


def read_pattern(chars: list[Char]) -> tuple[Component, ...] | None:
    """Compile a path, name by name; None if it contains no pattern."""
    names: list[list[Char]] = [[]]
    for char in chars:
        if char[0] == "/":
            names.append([])
        else:
            names[-1].append(char)
    components = tuple(map(_read_component, names))
    return None if all(isinstance(component, str) for component in components) else components


def _read_component(chars: list[Char]) -> Component:
    last_closing = max((at for at, char in enumerate(chars) if char == _CLOSING), default=-1)
    tokens: list[Token] = []
    index = 0
    while index < len(chars):
        char, unquoted = chars[index]
        index += 1
        if not unquoted or char not in "*?[":
            tokens.append(char)
        elif char == "?":
            tokens.append(Wild.ONE)
        elif char == "*":
            if not tokens or tokens[-1] is not Wild.MANY:
                tokens.append(Wild.MANY)
        else:
            negated = index < len(chars) and chars[index] in (("!", True), ("^", True))
            first = index + negated
            # A closing bracket in the first place is a member. Comparing with the last closing
            # bracket, found once, keeps a long row of unclosed brackets linear.
            if last_closing > first:
                choice, index = _read_choice(chars, first, negated=negated)
                tokens.append(choice)
            else:
                tokens.append(char)
    if all(isinstance(token, str) for token in tokens):
        return "".join(char for char, _ in chars)
    return tuple(tokens)


def _read_choice(chars: list[Char], first: int, *, negated: bool) -> tuple[Choice, int]:
    """Compile a bracket expression. It has a closing bracket after its first member."""
    singles: set[str] = set()
    ranges: list[tuple[str, str]] = []
    index = first
    while index == first or chars[index] != _CLOSING:
        char, unquoted = chars[index]
        following = chars[index + 1]
        if unquoted and char == "[" and following in ((":", True), ("=", True), (".", True)):
            raise PatternError(char + following[0])
        if following == ("-", True) and chars[index + 2] != _CLOSING:
            ranges.append((char, chars[index + 2][0]))
            index += 3
        else:
            singles.add(char)
            index += 1
    return Choice(negated, frozenset(singles), tuple(ranges)), index + 1


_CLOSING = ("]", True)
