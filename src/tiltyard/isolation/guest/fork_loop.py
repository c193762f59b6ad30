"""Where guests are born: import what is trusted once, and make a copy of it for each guest.

It is started by path, without `site`, with what it must know as JSON in its first argument, and
never runs a word of a stranger's. For each request it forks, where it can into a namespace of
processes of its own, so that no guest can count those before it. The copy confines itself, and
only then calls `target.main(read_fd, write_fd, submission)`. Whatever goes wrong before that ends
it with one line of output.
"""

import ctypes
import importlib
import importlib.util
import io
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple, NoReturn

_FAILED: Final = 70
_MOST: Final = 1 << 20
_SET_DEATH_SIGNAL: Final = 1
_SET_DUMPABLE: Final = 4
_NEW_PROCESSES: Final = 0x20000000
_TAKEN: Final = b"+"
_OVER: Final = b"-"
_PIPES: Final = 62, 63
"""Where a guest reads and writes: always the same, so that numbers tell nothing."""
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
    with _telling():
        _die_with(given["parent"])
        target = _trusted(given)
    door = socket.socket(fileno=given["door"])
    taken, take = os.pipe()
    while True:
        # Whatever a request is made of is taken up by the copy alone: the original must not
        # change from guest to guest, or a guest could tell how many there were by what it finds.
        if os.fork() == 0:
            _attend(door, take, target, given)
        if os.read(taken, 1) == _OVER:
            with suppress(ChildProcessError):
                os.wait()
            os._exit(0)


class _Ends(NamedTuple):
    """The descriptors that come with a request, in this order."""

    read: int
    write: int
    output: int
    ended: int
    """Who attends to the guest writes here how it ended, for the judge is not its parent."""


def _attend(door: socket.socket, take: int, target: Any, given: dict[str, Any]) -> NoReturn:
    """Wait for a request, bring a guest into the world, and stay with it until it is gone."""
    with _telling():
        _die_with(None)
        request, descriptors, _, _ = socket.recv_fds(door, _MOST, len(_Ends._fields))
        os.write(take, _TAKEN if request else _OVER)
        if not request:
            os._exit(0)
        asked, ends = {**given, **json.loads(request)}, _Ends(*descriptors)
        if asked["namespaces"] and ctypes.CDLL(None, use_errno=True).unshare(_NEW_PROCESSES):
            raise OSError(ctypes.get_errno(), "no namespace of processes for a guest")
        parent = None if asked["namespaces"] else os.getpid()
        # Before there is a guest: one that dies at once must wait to be collected here.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        guest = os.fork()
    if guest == 0:
        door.close()
        _live(target, asked, ends, parent)
    socket.send_fds(door, [b"born"], [os.pidfd_open(guest)])
    for end in (ends.read, ends.write, ends.output):
        os.close(end)
    os.waitid(os.P_PID, guest, os.WEXITED | os.WNOWAIT)
    # Not collected yet, so the number still means this group and no other.
    with suppress(OSError):
        os.killpg(guest, signal.SIGKILL)
    _, status = os.waitpid(guest, 0)
    os.write(ends.ended, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _live(target: Any, asked: dict[str, Any], ends: _Ends, parent: int | None) -> NoReturn:
    """Be a guest."""
    os.setsid()
    for descriptor, end in (
        (1, ends.output),
        (2, ends.output),
        *zip(_PIPES, ends[:2], strict=True),
    ):
        os.dup2(end, descriptor)
    with _telling():
        _confine(target, asked, parent)
    try:
        target.main(*_PIPES, asked["submission"])
    except BaseException:  # noqa: BLE001 - it must not come back to where guests are born
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(0)


@contextmanager
def _telling() -> Iterator[None]:
    """End with one line if anything goes wrong: whatever it is, nothing may go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        print(f"tiltyard: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        sys.stderr.flush()
        os._exit(_FAILED)


def _die_with(parent: int | None) -> None:
    """End with whoever started this process, and be closed to its guests as they are to others."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        raise OSError("the judge is gone already")


def _trusted(given: dict[str, Any]) -> Any:
    """Import the target, and all that its guests share."""
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
    importlib.import_module("tiltyard.isolation.confinement.selfjail")
    target.prepare()
    # Collected by the kernel: nobody here waits for those who attend to guests.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return target


def _confine(target: Any, asked: dict[str, Any], parent: int | None) -> None:
    selfjail = sys.modules["tiltyard.isolation.confinement.selfjail"]
    sys.argv[:] = [target.__name__, *asked["arguments"]]
    selfjail.confine(
        asked["limits"],
        asked["readable"],
        asked["writable"],
        asked["uid"],
        keep=_PIPES,
        parent=parent,
        without=frozenset(asked["without"]),
    )
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    _check_readable([os.path.dirname(__file__), os.__file__])  # noqa: PTH120
    _check_readable([asked["submission"]] if asked["submission"] else [])
    _speak_within(asked["limits"]["output"])


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
