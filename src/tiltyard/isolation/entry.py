"""The first thing that runs inside a guest: import what is trusted, close the jail, hand over.

It is started by path, without `site`, with what it must know as JSON in its first argument. After
the target's own imports it confines the process, and only then calls `target.main(read_fd,
write_fd, submission)`. Whatever goes wrong before that ends the guest with one line of output.
"""

import importlib
import importlib.util
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

_FAILED: Final = 70
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _Shelf:
    """Finds the packages a guest may have, by name and place, and no others."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        place = self._places.get(name)
        if place is None:
            return None
        if not os.path.isdir(place):  # noqa: PTH112 - pathlib costs a tenth of a start
            return importlib.util.spec_from_file_location(name, place)
        return importlib.util.spec_from_file_location(
            name, f"{place}/__init__.py", submodule_search_locations=[place]
        )


class _FrontDoor(ModuleType):
    """`tiltyard` itself, whose `__init__` runs when it is first asked for a name.

    Its modules can be imported before; so a guest starts without those that it does not use.
    """

    def __getattr__(self, name: str) -> Any:
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


class _Output(io.RawIOBase):
    """Standard output into a file that never grows beyond its bound.

    The first half stays, the second is written anew each time it is full, so the beginning and
    the end of what was said can be read. It is a courtesy to authors who print a lot: one who
    goes around it meets the limit on file sizes.
    """

    def __init__(self, descriptor: int, bound: int) -> None:
        self._descriptor = descriptor
        self._bound = bound

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Any, /) -> int:
        said = bytes(data)
        half = self._bound // 2
        if os.lseek(self._descriptor, 0, os.SEEK_END) + min(len(said), half) > self._bound:
            os.ftruncate(self._descriptor, half)
            os.lseek(self._descriptor, half, os.SEEK_SET)
        os.write(self._descriptor, said[-half:])
        return len(said)


def _speak_within(bound: int) -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        raw = io.BufferedWriter(_Output(descriptor, bound))
        stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def main() -> None:
    given = json.loads(sys.argv[1])
    try:
        target = _enclose(given)
    except Exception as error:  # noqa: BLE001 - whatever it is, the guest must not go on
        print(f"tiltyard: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        sys.stderr.flush()
        os._exit(_FAILED)
    target.main(given["read"], given["write"], given["submission"])


def _enclose(given: dict[str, Any]) -> Any:
    """Import the target, and return it confined."""
    if sys.version != given["version"]:
        raise RuntimeError(f"this is Python {sys.version}, not the judge's {given['version']}")
    # Numbers must not depend on how many processors a machine has, and Landlock holds no threads
    # that are already there. Constants: they tell a guest nothing.
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    places = given["packages"]
    sys.meta_path.append(_Shelf(places))
    door = _FrontDoor("tiltyard")
    door.__spec__ = importlib.util.find_spec("tiltyard")
    door.__path__ = [places["tiltyard"]]
    door.__file__ = f"{places['tiltyard']}/__init__.py"
    sys.modules["tiltyard"] = door
    target = importlib.import_module(given["target"])
    selfjail = importlib.import_module("tiltyard.isolation.selfjail")
    sys.argv[:] = [given["target"], *given["arguments"]]
    selfjail.confine(
        given["limits"],
        given["readable"],
        given["writable"],
        given["uid"],
        keep=(given["read"], given["write"]),
        parent=given["parent"],
        without=frozenset(given["without"]),
    )
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    _check_readable([place for name, place in places.items() if name == "tiltyard"])
    _check_readable([os.__file__] + ([given["submission"]] if given["submission"] else []))
    _speak_within(given["limits"]["output"])
    return target


def _check_readable(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError as error:
            raise RuntimeError(
                f"the guest's user {os.getuid()} cannot read {path}: {error.strerror}"
            ) from error


if __name__ == "__main__":
    main()
