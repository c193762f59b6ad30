"""Check what a guardrail makes of JSON arguments and results: less of them, and nothing else.

Text may lose characters, and may contain the marks of a redaction. Objects may lose members, lists
may lose items. `redaction.py` has the same rule for calls whose text is labelled.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.guardrail import Result
from tiltyard.contracts.hostile_json import JsonError, copy_json, to_pointer
from tiltyard.episode.redaction import MARK, NotARedactionError

MAX_ARGS_BYTES: Final = 400_000
MAX_RESULT_BYTES: Final = 500_000
"""Both together fit into one frame of the wire."""
MAX_RESULT_NODES: Final = 100_000

MAX_WORK: Final = 20_000_000
"""Characters and values that one check compares."""

Path = tuple[str | int, ...]
_NOT_LESS: Final = object()
_MAX_FLAT_INT: Final = 2**53


def copy_args(args: object) -> dict[str, Any]:
    """Return arguments as exact JSON types, or raise a JsonError."""
    copied = copy_json(args)
    if not isinstance(copied, dict):
        raise JsonError(" are not an object")
    size = len(msgspec.msgpack.encode(copied))
    if size > MAX_ARGS_BYTES:
        raise JsonError(f" have {size:,} bytes; the limit is {MAX_ARGS_BYTES:,}")
    return copied


def copy_result(result: Result) -> Result:
    """Return a result with exact types, or raise a JsonError."""
    copied = Result(
        bool(result.ok),
        _text(result.output),
        None if result.error is None else _text(result.error),
        _text(result.source),
        copy_json(result.structured, max_nodes=MAX_RESULT_NODES),
        result.passages,
    )
    try:
        packed = msgspec.msgpack.encode(copied)
        if len(packed) <= MAX_RESULT_BYTES:
            return _RESULTS.decode(packed)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise JsonError(" has passages that are no Passage") from None
    raise JsonError(f" has {len(packed):,} bytes; the limit is {MAX_RESULT_BYTES:,}")


_RESULTS: Final = msgspec.msgpack.Decoder(Result)


def _text(value: object) -> str:
    if type(value) is not str:
        raise JsonError(f" has a {type(value).__name__[:40]!r} instead of a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise JsonError(" is not valid Unicode") from None
    return value


def flat_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as contract 1 has them: text, integers, None; all else as a JSON string."""
    return {name: _flat(value) for name, value in args.items()}


def _flat(value: Any) -> str | int | None:
    if value is None or type(value) is str:
        return value
    if type(value) is int and -_MAX_FLAT_INT < value < _MAX_FLAT_INT:
        return value
    return msgspec.json.encode(value).decode()


def reduce_args(
    args: dict[str, Any], new: Mapping[str, Any], tool: Declaration | None, *, flat: bool
) -> dict[str, Any]:
    """Return the arguments that a guardrail reduced, or raise a NotARedactionError.

    `flat` says that the guardrail saw nested arguments as JSON strings.
    """
    try:
        given = copy_args(dict(new))
    except JsonError as error:
        raise NotARedactionError(f"the arguments{error}") from None
    needed = args.keys() if tool is None else tool.required & args.keys()
    for name in sorted(needed - given.keys()):
        raise NotARedactionError(f"{name}: missing")
    for name in sorted(given.keys() - args.keys()):
        raise NotARedactionError(f"{name}: not asked for")
    kept: dict[str, Any] = {}
    for name, value in args.items():
        if name in given:
            less = _unflat(value, given[name], name) if flat else given[name]
            kept[name] = _Reduction(marks_for_all=False).of(value, less, (name,), (name,))
    return kept


def _unflat(value: Any, new: Any, name: str) -> Any:
    shown = _flat(value)
    if shown is value:
        return new
    if new == shown:
        return value
    try:
        return copy_json(msgspec.json.decode(new))
    except (TypeError, ValueError, RecursionError):
        raise NotARedactionError(f"{name}: changed") from None


def reduce_result(result: Result, new: object) -> Result:
    """Return the result that a guardrail reduced, or raise a NotARedactionError."""
    if type(new) is not Result:
        raise NotARedactionError(f"observe returned {type(new).__name__}, not a Result or None")
    try:
        given = copy_result(new)
    except JsonError as error:
        raise NotARedactionError(f"the result of observe{error}") from None
    for field in ("ok", "error", "source", "passages"):
        if getattr(given, field) != getattr(result, field):
            raise NotARedactionError(f"{field}: changed")
    if not is_less(result.output, given.output):
        raise NotARedactionError("output: only removal, [REDACTED], *** and █ may change it")
    if given.structured is None:
        kept = tuple(one for one in result.passages if not one.path)
        return structs.replace(given, passages=kept)
    reduction = _Reduction(marks_for_all=True)
    structured = reduction.of(result.structured, given.structured, (), ())
    passages = tuple(
        structs.replace(one, path=reduction.moved[one.path])
        for one in result.passages
        if one.path in reduction.moved
    )
    return structs.replace(given, structured=structured, passages=passages)


def is_less(text: str, new: str) -> bool:
    """Tell whether `new` is `text` with characters removed and marks of redaction added."""
    if new in text:
        return True
    position = 0
    for char in MARK.sub("", new):
        position = text.find(char, position) + 1
        if not position:
            return False
    return True


class _Reduction:
    """Compares a JSON value with a reduced one, and remembers where its parts went."""

    def __init__(self, *, marks_for_all: bool) -> None:
        self._marks_for_all = marks_for_all
        """True: a mark may replace any value, not only text."""
        self._moves: list[tuple[Path, Path]] = []
        self._work = 0

    @property
    def moved(self) -> dict[str, str]:
        """The JSON pointers of the parts that are left: before, and after."""
        return {to_pointer(at): to_pointer(to) for at, to in self._moves}

    def of(self, value: Any, new: Any, at: Path, to: Path) -> Any:
        """Return the reduced value, with its members in their old order."""
        less = self._less(value, new, at, to)
        if less is _NOT_LESS:
            raise NotARedactionError(f"{to_pointer(at)[1:] or 'structured'}: changed")
        return less

    def _less(self, value: Any, new: Any, at: Path, to: Path) -> Any:
        """Return the reduced value, or `_NOT_LESS`."""
        before = len(self._moves)
        self._moves.append((at, to))
        less = self._compare(value, new, at, to)
        if less is _NOT_LESS:
            del self._moves[before:]
        return less

    def _compare(self, value: Any, new: Any, at: Path, to: Path) -> Any:
        self._count(1)
        if type(new) is str:
            if self._marks_for_all and MARK.fullmatch(new):
                return new
            if type(value) is not str:
                return _NOT_LESS
            self._count(len(value) + len(new))
            return new if is_less(value, new) else _NOT_LESS
        if type(new) is not type(value):
            return _NOT_LESS
        if type(new) is dict:
            return self._compare_members(value, new, at, to)
        if type(new) is list:
            return self._compare_items(value, new, at, to)
        return value if new == value else _NOT_LESS

    def _compare_members(
        self, value: dict[str, Any], new: dict[str, Any], at: Path, to: Path
    ) -> Any:
        if not new.keys() <= value.keys():
            return _NOT_LESS
        kept: dict[str, Any] = {}
        for name, member in value.items():
            if name in new:
                less = self._less(member, new[name], (*at, name), (*to, name))
                if less is _NOT_LESS:
                    return _NOT_LESS
                kept[name] = less
        return kept

    def _compare_items(self, value: list[Any], new: list[Any], at: Path, to: Path) -> Any:
        """Find each item at its earliest place after the item before it."""
        kept: list[Any] = []
        position = 0
        for item in new:
            less = _NOT_LESS
            while less is _NOT_LESS:
                if position == len(value):
                    return _NOT_LESS
                less = self._less(value[position], item, (*at, position), (*to, len(kept)))
                position += 1
            kept.append(less)
        return kept

    def _count(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise NotARedactionError(
                "the changes take too long to check: redact items of long lists instead of "
                "removing them"
            )
