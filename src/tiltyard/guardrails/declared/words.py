"""Compare values with words: find out whether a text speaks of a value."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from math import isfinite
from typing import Any, Final

_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])")
_ISO_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_DIGITS: Final = re.compile(r"\+?\d[\d ()/.-]{5,}\d")
_NUMERIC: Final = re.compile(r"[\d,]*\d[\d,]*(\.\d+)?")
_CENT: Final = 0.011
_ENDINGS: Final = (
    "ments", "ment", "ings", "ing", "ations", "ation", "ers", "er", "ies", "ied", "es", "ed",
    "s", "e",
)  # fmt: skip
_MIN_STEM: Final = 3
MAX_KEPT_CHARS: Final = 1_000
"""What is read in a longer text is not kept for the next time: it would need much memory."""
_MAX_KNOWN: Final = 1_000
_MARKS: Final = re.compile(r"^(https?://|[#@])")
"""What people leave out when they write an address or a channel."""


def plain(text: str) -> str:
    """Return a text in lower case, with single spaces and plain quotes."""
    return _plain_kept(text) if len(text) <= MAX_KEPT_CHARS else _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("\u2019", "'").split())


_plain_kept = lru_cache(maxsize=8_192)(_plain)


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return a crude stem: `paying`, `payment` and `pays` become `pay`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            kept = word[: -len(ending)]
            if ending in ("ies", "ied"):
                return kept + "y"
            # `dropping` is `drop`, but `billing` is `bill`.
            doubled = (
                ending in ("ing", "ed", "er") and kept[-1] == kept[-2] and kept[-1] not in "ls"
            )
            return kept[:-1] if doubled else kept
    return word


def numbers_in(text: str) -> frozenset[float]:
    return frozenset(float(number.replace(",", "")) for number in _NUMBER.findall(text))


def _dates_in(text: str) -> frozenset[tuple[int, int]]:
    """Return the days that a text names, as month and day."""
    low = text.casefold()
    found = {(int(month), int(day)) for _, month, day in _ISO_DATE.findall(low)}
    for number, month in enumerate(_MONTHS, 1):
        if month[:3] not in low:
            continue
        name = f"{month[:3]}(?:{month[3:]})?"
        for day in re.findall(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {name}\b", low):
            found.add((number, int(day)))
        for day in re.findall(rf"\b{name}\.? (\d{{1,2}})(?:st|nd|rd|th)?\b", low):
            found.add((number, int(day)))
    return frozenset(found)


def _digit_runs(text: str) -> frozenset[str]:
    """Return the numbers with blanks and signs in a text, such as telephone numbers, as digits."""
    return frozenset(re.sub(r"\D", "", run) for run in _DIGITS.findall(text))


class Sought:
    """A value that is looked for in texts, in any usual spelling."""

    def __init__(self, value: Any) -> None:
        self.anywhere = isinstance(value, bool) or value is None
        self.number = None if isinstance(value, str) or self.anywhere else _number_in(value)
        self.low = plain(str(value))
        self.anywhere = self.anywhere or not self.low
        bare = _MARKS.sub("", self.low).rstrip("/") or self.low
        self.spellings = (self.low,) if bare == self.low else (self.low, bare)
        date = _ISO_DATE.match(self.low)
        self.date = (int(date[2]), int(date[3])) if date else None
        self.numeric = _NUMERIC.fullmatch(self.low) is not None


class Texts:
    """Texts in which values are looked for.

    Most values stand in few texts. So a search first goes through all texts at once, and then
    through those that can have the value. Neither words nor numbers go over a line break, so texts
    with line breaks between them contain what they contain one by one.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def with_value(self, sought: "Sought") -> Sequence[int]:
        """Return the positions of the texts that contain a value, in any usual spelling."""
        if sought.anywhere:
            return range(len(self._texts))
        if sought.number is not None:
            return self._with_number(sought.number)
        found = self._with_spellings(sought.spellings)
        if sought.date is not None and sought.date in self._dates:
            found.update(at for at, one in self._each() if sought.date in _dates_in(one))
        if sought.numeric:
            found.update(self._with_number(float(sought.low.replace(",", ""))))
            if len(sought.low) > _MIN_STEM and sought.low in self._digits:
                found.update(at for at, one in self._each() if sought.low in _digit_runs(one))
        return sorted(found)

    def leading_to(self, value: Any) -> Sequence[int]:
        """Return the positions of the texts with a number from which a value derives."""
        if not _derives(self._numbers, value):
            return ()
        return [at for at, numbers in self._numbered if _derives(numbers, value)]

    def _with_number(self, number: float) -> Sequence[int]:
        if number not in self._numbers:
            return ()
        return [at for at, numbers in self._numbered if number in numbers]

    def _with_spellings(self, spellings: tuple[str, ...]) -> set[int]:
        low, ends = self._low
        found: set[int] = set()
        for one in spellings:
            at = low.find(one)
            while at >= 0:
                if _is_whole(low, at, at + len(one)):
                    number = bisect_right(ends, at)
                    found.add(number)
                    at = low.find(one, ends[number])
                else:
                    at = low.find(one, at + 1)
        return found

    def _each(self) -> Iterator[tuple[int, str]]:
        return enumerate(self._texts)

    @cached_property
    def _all(self) -> str:
        return "\n".join(self._texts)

    @cached_property
    def _low(self) -> tuple[str, list[int]]:
        """All texts in plain form, and the places behind each of them."""
        lows = [*map(plain, self._texts)]
        return "\n".join(lows), [*accumulate(len(one) + 1 for one in lows)]

    @cached_property
    def _numbers(self) -> frozenset[float]:
        return numbers_in(self._all)

    @cached_property
    def _numbered(self) -> list[tuple[int, frozenset[float]]]:
        """The positions of the texts with numbers, and the numbers."""
        found = ((at, numbers_in(one)) for at, one in enumerate(self._texts))
        return [(at, numbers) for at, numbers in found if numbers]

    @cached_property
    def _dates(self) -> frozenset[tuple[int, int]]:
        return _dates_in(self._all)

    @cached_property
    def _digits(self) -> frozenset[str]:
        return _digit_runs(self._all)


def _number_in(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


class Spoken:
    """A text of which somebody asks many times whether it contains a value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._forget()

    def _forget(self) -> None:
        """Forget everything that the text tells again."""
        self._texts = Texts([self._text])
        self._known: dict[tuple[type, str], bool] = {}

    def __getstate__(self) -> str:
        return self._text

    def __setstate__(self, text: str) -> None:
        self._text = text
        self._forget()

    def has(self, value: Any) -> bool:
        """Return whether the text contains a value, in any usual spelling."""
        key = (type(value), value if type(value) is str else str(value))
        found = self._known.get(key)
        if found is None:
            found = bool(self._texts.with_value(Sought(value)))
            if len(self._known) < _MAX_KNOWN and len(key[1]) <= MAX_KEPT_CHARS:
                self._known[key] = found
        return found


def speaks_of(text: str, value: Any) -> bool:
    """Return whether a text contains a value, in any usual spelling."""
    return bool(Texts([text]).with_value(Sought(value)))


def _derives(numbers: Iterable[float], value: Any) -> bool:
    """Return whether one of some numbers gives a value in another unit, or a part of it."""
    try:
        wanted = float(str(value).replace(",", ""))
    except ValueError:
        return False
    for number in numbers:
        for factor in (100, 0.01, 60, 1 / 60, 0.5, 2):
            if abs(number * factor - wanted) < _CENT:
                return True
        if isfinite(number) and wanted == round(number):
            return True
    return False


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text is not a part of a longer word."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    return not (before.isalnum() and text[start].isalnum()) and not (
        after.isalnum() and text[end - 1].isalnum()
    )
