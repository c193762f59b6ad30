"""Carry a plain object's attributes through snapshot and restore, without the object's help.

A `State` holds the attributes at one moment. A `Keeper` moves the live object from state to state.
It copies attributes only when they changed, at a cost in proportion to their size. It does not
carry state elsewhere: globals, files, class attributes, closures.
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

from tiltyard.foundation.interrupts import Interrupted


class StateError(Exception):
    """The object has an attribute that cannot be copied."""


class State(Struct, frozen=True, eq=False):
    """An object's attributes at one moment."""

    names: tuple[str, ...] = ()
    plain: dict[str, Any] = {}
    """Attributes that cannot change in place."""
    packed: bytes = b""
    """All other attributes in one pickle, so that attributes that share a list still share it."""
    copied: dict[str, Any] | None = None
    """Instead of `packed`: attributes that can be deep-copied but not pickled."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State) or self.names != other.names:
            return False
        if self.plain == other.plain and self.packed == other.packed:
            # Objects without an __eq__ are equal if their pickles are.
            return self.copied is other.copied or self.copied == other.copied
        try:
            return _unpacked(self) == _unpacked(other)
        except RecursionError:
            return False

    def __hash__(self) -> int:
        return hash(self.names)


NO_STATE: Final = State()


def keeper_of(subject: object) -> "Keeper":
    """Return the keeper of an object. There is one for each object, which knows its state."""
    key = id(subject)
    found = _KEEPERS.get(key)
    if found is not None and found[0]() is subject:
        return found[1]
    keeper = Keeper(subject)
    try:
        _KEEPERS[key] = weakref.ref(subject, lambda _: _KEEPERS.pop(key, None)), keeper
    except TypeError:
        # Without a weak reference, keep the object: its id must not be reused.
        _KEEPERS[key] = (lambda: subject), keeper
    return keeper


class Keeper:
    """Moves one live object from state to state.

    Every method takes the object: a reference here would keep it alive.
    """

    def __init__(self, subject: object) -> None:
        if isinstance(subject, list | dict | set | bytearray):
            base = type(subject).__name__
            raise StateError(f"{base} is a container itself; keep your state in attributes")
        self._slots = _slot_names(type(subject))
        self._current = NO_STATE
        self._changing = False
        self.initial = self._capture(subject)

    def enter(self, subject: object, state: State) -> None:
        """Put the object into a state. The object may change afterwards."""
        if self._changing or state is not self._current:
            self._install(subject, state)
        # After an exception, the state of the object is unknown.
        self._changing = True

    def show(self, subject: object, state: State) -> None:
        """Put the object into a state, even if other code changed it meanwhile."""
        if state is not NO_STATE or self._attributes(subject):
            self._install(subject, state)
        self._changing = False

    def leave(self, subject: object) -> State:
        """Return the object's state: the same value as before, if nothing changed."""
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
        # The order of a set depends on its past, and other objects have similar quirks. Continue
        # with a copy, as a restore does: then both ways give the same results.
        self._install(subject, self._current)
        return self._current

    def _attributes(self, subject: object) -> dict[str, Any]:
        own = getattr(subject, "__dict__", None)
        if not self._slots:
            return own if own is not None else {}
        slots = {name: getattr(subject, name) for name in self._slots if hasattr(subject, name)}
        return {**(own or {}), **slots}

    def _install(self, subject: object, state: State) -> None:
        try:
            attributes = _fresh(state, subject)
        except Interrupted:
            raise
        except BaseException as error:
            whose = type(subject).__name__
            raise StateError(
                f"{whose} has an attribute that cannot be restored ({type(error).__name__})"
            ) from error
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
    """Tell whether states can share a value, because it never changes."""
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
    """Pickle attributes; None if that fails. References to the object itself are kept."""
    stream = BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)

    def reduce(found: Any) -> Any:
        return (_itself, ()) if found is subject else found.__reduce_ex__(pickle.HIGHEST_PROTOCOL)

    pickler.dispatch_table = {type(subject): reduce}
    try:
        pickler.dump(moving)
    except Interrupted:
        raise
    except BaseException:  # noqa: BLE001 - pickling runs the author's code
        return None
    return stream.getvalue()


def _fresh(state: State, subject: object) -> dict[str, Any]:
    """Return new copies of a state's attributes."""
    if state.copied is not None:
        moving = copy.deepcopy(state.copied, {id(subject): subject})
    elif state.packed:
        _UNPACKING.append(subject)
        try:
            # `_pack` made these bytes in this process.
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
    except Interrupted:
        raise
    except BaseException as error:  # noqa: BLE001 - copying runs the author's code
        names = ", ".join(f"{name} ({type(value).__name__})" for name, value in moving.items())
        whose = type(subject).__name__
        raise StateError(
            f"{whose} has an attribute that cannot be copied ({error}); its attributes: {names}"
        ) from None


def _slot_names(cls: type) -> tuple[str, ...]:
    names: list[str] = []
    for owner in cls.__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{owner.__name__.lstrip('_')}{name}" if private else name)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
