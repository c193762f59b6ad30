"""Keeping a plain object's attributes as a value.

Owns how an author's object is carried through snapshot and restore without the author's help: a
`State` is what its attributes were at one moment, and a `Keeper` moves the one live object from
state to state. Attributes are copied only when they changed, at a cost in proportion to their
size. State elsewhere (globals, files, classes, closures) is not carried.
"""

import copy
import pickle
import weakref
from collections.abc import Callable
from enum import Enum
from io import BytesIO
from re import Pattern
from types import FunctionType, ModuleType, NoneType
from typing import Any, Final

from msgspec import Struct


class StateError(Exception):
    """An object keeps something that cannot be copied."""


class State(Struct, frozen=True, eq=False):
    """An object's attributes at one moment."""

    names: tuple[str, ...] = ()
    plain: dict[str, Any] = {}
    """Attributes that cannot change in place."""
    packed: bytes = b""
    """All others together, so that two names for one list stay two names for one list."""
    copied: dict[str, Any] | None = None
    """Instead of `packed`, what only a deep copy can carry."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State) or self.names != other.names:
            return False
        if self.plain == other.plain and self.packed == other.packed:
            # Objects that do not say when they are equal are equal when their bytes are.
            return self.copied is other.copied or self.copied == other.copied
        try:
            return _unpacked(self) == _unpacked(other)
        except RecursionError:
            return False

    def __hash__(self) -> int:
        return hash(self.names)


NO_STATE: Final = State()


def keeper_of(subject: object) -> "Keeper":
    """Return the one keeper of an object, so that whoever uses the object knows its state."""
    key = id(subject)
    found = _KEEPERS.get(key)
    if found is not None and found[0]() is subject:
        return found[1]
    keeper = Keeper(subject)
    try:
        _KEEPERS[key] = weakref.ref(subject, lambda _: _KEEPERS.pop(key, None)), keeper
    except TypeError:
        # One that cannot be watched is kept, for it must not be mistaken for another.
        _KEEPERS[key] = (lambda: subject), keeper
    return keeper


class Keeper:
    """Moves one live object from state to state.

    It is handed the object each time: one that held on to it would keep it from going away.
    """

    def __init__(self, subject: object) -> None:
        if isinstance(subject, list | dict | set | bytearray):
            base = type(subject).__name__
            raise StateError(f"{base} is itself a container; keep what you see in attributes")
        self._slots = _slot_names(type(subject))
        self._current = NO_STATE
        self._changing = False
        self.initial = self._capture(subject)

    def enter(self, subject: object, state: State) -> None:
        """Put the object into a state. From here on it may change."""
        if self._changing or state is not self._current:
            self._install(subject, state)
        # If what follows ends by an exception, nobody knows what the object became.
        self._changing = True

    def show(self, subject: object, state: State) -> None:
        """Put the object into a state for all to see, whatever was done to it meanwhile."""
        if state is not NO_STATE or self._attributes(subject):
            self._install(subject, state)
        self._changing = False

    def leave(self, subject: object) -> State:
        """Return the state the object is in now; the same value if nothing changed."""
        state = self._capture(subject)
        self._changing = False
        return state

    def _capture(self, subject: object) -> State:
        attributes = self._attributes(subject)
        if not attributes:
            self._current = NO_STATE
            return NO_STATE
        before = self._current
        names = tuple(attributes)
        plain = {name: value for name, value in attributes.items() if _cannot_change(value)}
        same = names == before.names and _same_objects(plain, before.plain)
        if len(plain) == len(attributes):
            if not (same and len(before.plain) == len(plain)):
                self._current = State(names, plain)
            return self._current
        moving = {name: value for name, value in attributes.items() if name not in plain}
        packed = _pack(moving, subject)
        if packed is None:
            self._current = State(names, plain, b"", _deep_copy(moving, subject))
        elif not (same and packed == before.packed):
            self._current = State(names, plain, packed)
        # A set's order depends on how it grew, and other objects may be no less odd. Going on with
        # a copy, as a restore would, makes an episode that went on and one that was restored the
        # same to the last bit.
        self._install(subject, self._current)
        return self._current

    def _attributes(self, subject: object) -> dict[str, Any]:
        own = getattr(subject, "__dict__", None)
        if not self._slots:
            return own if own is not None else {}
        slots = {name: getattr(subject, name) for name in self._slots if hasattr(subject, name)}
        return {**(own or {}), **slots}

    def _install(self, subject: object, state: State) -> None:
        attributes = _fresh(state, subject)
        own = getattr(subject, "__dict__", None)
        if own is not None:
            own.clear()
            own.update((n, v) for n, v in attributes.items() if n not in self._slots)
        for name in self._slots:
            if name in attributes:
                object.__setattr__(subject, name, attributes[name])
            elif hasattr(subject, name):
                object.__delattr__(subject, name)
        self._current = state


_KEEPERS: Final[dict[int, tuple[Callable[[], object | None], Keeper]]] = {}
_UNCHANGING: Final = frozenset(
    (
        int,
        str,
        float,
        bool,
        bytes,
        complex,
        NoneType,
        Pattern,
        FunctionType,
        ModuleType,
        type,
        range,
    )
)


def _cannot_change(value: object) -> bool:
    """Tell whether a value is safe to share between states."""
    kind = type(value)
    if kind in _UNCHANGING:
        return True
    if kind is tuple or kind is frozenset:
        return all(_cannot_change(item) for item in value)  # type: ignore[attr-defined]
    return isinstance(value, Enum)


def _same_objects(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return len(new) == len(old) and all(
        name in old and old[name] is value for name, value in new.items()
    )


def _pack(moving: dict[str, Any], subject: object) -> bytes | None:
    """Pickle attributes; one that leads back to the object leads back to it when unpickled."""
    stream = BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)

    def reduce(found: Any) -> Any:
        return (_itself, ()) if found is subject else found.__reduce_ex__(pickle.HIGHEST_PROTOCOL)

    pickler.dispatch_table = {type(subject): reduce}
    try:
        pickler.dump(moving)
    except Exception:  # noqa: BLE001 - pickling runs the author's code: anything can come
        return None
    return stream.getvalue()


def _fresh(state: State, subject: object) -> dict[str, Any]:
    """Return a state's attributes as objects of their own."""
    if state.copied is not None:
        moving = copy.deepcopy(state.copied, {id(subject): subject})
    elif state.packed:
        _UNPACKING.append(subject)
        try:
            # Our own bytes, made in this process from the author's own objects.
            moving = pickle.loads(state.packed)  # noqa: S301
        finally:
            _UNPACKING.pop()
    else:
        return dict(state.plain)
    plain = state.plain
    return {name: plain[name] if name in plain else moving[name] for name in state.names}


_UNPACKING: Final[list[object]] = []


def _itself() -> object:
    return _UNPACKING[-1]


def _unpacked(state: State) -> dict[str, Any]:
    return _fresh(state, None)


def _deep_copy(moving: dict[str, Any], subject: object) -> dict[str, Any]:
    try:
        return copy.deepcopy(moving, {id(subject): subject})
    except Exception as error:  # noqa: BLE001 - copying runs the author's code: anything can come
        names = ", ".join(f"{name} ({type(value).__name__})" for name, value in moving.items())
        whose = type(subject).__name__
        raise StateError(
            f"{whose} keeps something that cannot be copied ({error}); among its attributes {names}"
        ) from None


def _slot_names(cls: type) -> tuple[str, ...]:
    names: list[str] = []
    for owner in cls.__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{owner.__name__.lstrip('_')}{name}" if private else name)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
