"""The modules of `aicomp_sdk`, as a submission imports them.

A supported name leads to an object of this package. A known name without a counterpart can be
imported too, because many submissions import at the top what they use only when run as a script.
Using it raises an error that says what to do instead. An unknown name is an `ImportError`.
"""

import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final, NoReturn

from tiltyard.compat.names import (
    ADVICE,
    HOME_OF,
    MODULES,
    PEER_VERSION,
    RENAMED,
    UNSUPPORTED,
)

PEER: Final = "aicomp_sdk"
_OURS: Final = str(Path(__file__).parents[1]) + "/"


def find(name: str, submission: str) -> ModuleSpec:
    """Return the spec of a module, or raise if `aicomp_sdk` has no such module."""
    place = name[len(PEER) + 1 :]
    if place not in MODULES and not _is_unsupported(place) and not _has_below(place):
        raise ModuleNotFoundError(
            f"{where(submission)}unknown module {name}: {PEER} {PEER_VERSION} does not have it; "
            "see docs/migration.md",
            name=name,
        )
    # All modules are packages, so that imports of submodules come here too.
    return ModuleSpec(name, _Loader(place, submission), is_package=True)


def _is_unsupported(place: str) -> bool:
    return any(place == top or place.startswith(f"{top}.") for top in UNSUPPORTED)


def _has_below(place: str) -> bool:
    return any(known.startswith(f"{place}.") for known in (*MODULES, *UNSUPPORTED))


def where(submission: str = "") -> str:
    """Return the submission's file and line that called, as the beginning of a message."""
    # Only the stack shows which line of the submission called.
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_OURS, "<")) and (not submission or name.startswith(submission)):
            shown = name.removeprefix(f"{submission}/") if submission else Path(name).name
            return f"{shown}:{frame.f_lineno}: "
        frame = frame.f_back
    return ""


def notice(text: str) -> None:
    """Print a notice to the author, with the line that it is about."""
    sys.stderr.write(f"tiltyard: {where()}{text}\n")


class _Loader(Loader):
    def __init__(self, place: str, submission: str) -> None:
        self._place = place
        self._submission = submission

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _PeerModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert isinstance(module, _PeerModule)
        module.place = self._place
        module.submission = self._submission
        module.__all__ = [
            name for name in MODULES.get(self._place, ()) if _target(self._place, name)
        ]
        if not self._place:
            module.__version__ = PEER_VERSION


def _target(place: str, name: str) -> str:
    """Return the name of the counterpart in this package, or an empty string."""
    target = RENAMED.get((place, name), name)
    return target if target in HOME_OF else ""


class _PeerModule(ModuleType):
    """A module that looks up its names on first use."""

    __all__: list[str]
    __version__: str
    place: str
    submission: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        below = f"{self.place}.{name}".lstrip(".")
        known = name in MODULES.get(self.place, ())
        if not known and (below in MODULES or below in UNSUPPORTED or _has_below(below)):
            return importlib.import_module(f"{PEER}.{below}")
        target = _target(self.place, name)
        if known and target:
            value = getattr(importlib.import_module(f"tiltyard.compat.{HOME_OF[target]}"), target)
        elif known or (_is_unsupported(self.place) and not name.startswith("_")):
            value = _stand_in(self.place, name, self.submission)
        else:
            # Not an AttributeError: `from ... import` would replace its message.
            raise ImportError(
                f"{where(self.submission)}unknown name {name}: {self.__name__} of version "
                f"{PEER_VERSION} does not have it; see docs/migration.md",
                name=self.__name__,
            )
        setattr(self, name, value)
        return value


_DATA: Final = (int, float, str, bytes, tuple, list, dict, set)


class _StandIn(type):
    """A placeholder that can be imported and used in annotations. Any other use raises."""

    _full: str
    _advice: str
    _submission: str

    def __new__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> "_StandIn":
        for base in bases:
            if isinstance(base, _StandIn):
                base._refuse()  # noqa: SLF001 - the same class
        return super().__new__(cls, name, bases, content)

    def _refuse(cls) -> NoReturn:
        raise NotImplementedError(
            f"{where(cls._submission)}{cls._full} is not in Tiltyard: {cls._advice}"
        )

    def __call__(cls, *_args: Any, **_named: Any) -> Any:
        cls._refuse()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{cls._full} has no attribute {name!r}")
        cls._refuse()

    def __iter__(cls) -> Any:
        cls._refuse()

    def __len__(cls) -> int:  # noqa: PLE0303 - it never returns
        cls._refuse()

    def __getitem__(cls, key: object) -> Any:
        cls._refuse()

    def __contains__(cls, item: object) -> bool:
        cls._refuse()

    def __eq__(cls, other: object) -> bool:
        # Only with data: `typing` compares the parts of an annotation.
        if isinstance(other, _DATA):
            cls._refuse()
        return cls is other

    __hash__ = type.__hash__

    def __repr__(cls) -> str:
        return f"<{cls._full}, not in Tiltyard>"


def _refuse_operation(cls: _StandIn, *_others: Any) -> NoReturn:
    cls._refuse()


_OPERATIONS: Final = """
    abs add bytes ceil complex divmod float floor floordiv fspath ge gt index int invert le lshift
    lt matmul mod mul neg pos pow radd rdivmod rfloordiv rlshift rmatmul rmod rmul round rpow
    rrshift rshift rsub rtruediv sub truediv trunc
"""
"""All operations but `|`, which annotations use."""
for _name in _OPERATIONS.split():
    setattr(_StandIn, f"__{_name}__", _refuse_operation)


def _stand_in(place: str, name: str, submission: str) -> type:
    content = {
        "_full": ".".join(filter(None, (PEER, place, name))),
        "_advice": _advice(place, name),
        "_submission": submission,
    }
    return _StandIn(name, (), content)


def _advice(place: str, name: str) -> str:
    if name in ADVICE:
        return ADVICE[name]
    while place not in ADVICE:
        place = place.rpartition(".")[0]
    return ADVICE[place]
