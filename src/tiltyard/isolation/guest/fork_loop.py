"""The fork server's program: imports trusted code once, and forks a guest for each request.

`host/fork_server.py` starts this file by its path, without `site`, with its settings as JSON in
the first argument. It never runs code of a submission. For each request it forks a supervisor,
where it can in a new PID namespace, so that no guest can count the guests before it. The
supervisor forks the guest. The guest confines itself, and only then calls
`target.main(read_fd, write_fd, submission)`. Any error before that ends the process with one line
of output.
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

_libc: Final = ctypes.CDLL(None, use_errno=True)
_EXIT_CODE: Final = 70
_MAX_REQUEST_BYTES: Final = 1 << 20
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_CLONE_NEWPID: Final = 0x20000000
_TAKEN: Final = b"+"
_OVER: Final = b"-"
_PIPES: Final = 62, 63
"""A guest's descriptors for reading and writing. They are constant, so they reveal nothing."""
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    settings = json.loads(sys.argv[1])
    with _exit_on_error():
        _die_with(settings["parent"])
        target = _import_trusted(settings)
        if settings["steps"] is not None:
            _private_root().prepare(settings["roots"])
    requests = socket.socket(fileno=settings["socket"])
    taken, take = os.pipe()
    while True:
        # Only the supervisor reads the request. This process must not change from guest to guest,
        # or a guest could tell from its memory how many guests there were.
        if os.fork() == 0:
            _supervise(requests, take, target, settings)
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
    """The supervisor writes the guest's exit code here, since the judge is not its parent."""


def _supervise(
    requests: socket.socket, take: int, target: Any, settings: dict[str, Any]
) -> NoReturn:
    """Wait for a request, fork the guest, and stay until it has ended."""
    with _exit_on_error():
        _die_with(None)
        # The judge makes a guest's pipes when it hears this, so that they are as old as the guest.
        requests.send(b"ready")
        request, descriptors, _, _ = socket.recv_fds(
            requests, _MAX_REQUEST_BYTES, len(_Ends._fields)
        )
        os.write(take, _TAKEN if request else _OVER)
        if not request:
            os._exit(0)
        wanted, ends = {**settings, **json.loads(request)}, _Ends(*descriptors)
        if wanted["namespaces"] and _libc.unshare(_CLONE_NEWPID):
            raise OSError(ctypes.get_errno(), "cannot make a PID namespace for a guest")
        parent = None if wanted["namespaces"] else os.getpid()
        wanted["name"] = str(os.getpid())
        # Before the fork: a guest that dies at once must stay a zombie until it is collected here.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        guest = os.fork()
    if guest == 0:
        requests.close()
        _run_guest(target, wanted, ends, parent)
    socket.send_fds(requests, [b"started"], [os.pidfd_open(guest)])
    for end in (ends.read, ends.write, ends.output):
        os.close(end)
    os.waitid(os.P_PID, guest, os.WEXITED | os.WNOWAIT)
    # The guest is not collected yet, so its id still means this process group.
    with suppress(OSError):
        os.killpg(guest, signal.SIGKILL)
    _, status = os.waitpid(guest, 0)
    os.write(ends.ended, str(os.waitstatus_to_exitcode(status)).encode())
    if wanted["steps"] is not None:
        _private_root().remove(wanted["roots"], wanted["name"])
    os._exit(0)


def _run_guest(target: Any, wanted: dict[str, Any], ends: _Ends, parent: int | None) -> NoReturn:
    """Confine this process, and run the target in it."""
    os.setsid()
    # A pipe at its end, and not the fork server's descriptor 0: flags that one guest sets on a
    # shared open file would stay for the next guest.
    stdin, write_end = os.pipe()
    os.close(write_end)
    for descriptor, end in (
        (0, stdin),
        (1, ends.output),
        (2, ends.output),
        *zip(_PIPES, ends[:2], strict=True),
    ):
        os.dup2(end, descriptor)
    with _exit_on_error():
        _enter_namespaces(wanted)
        _confine(target, wanted, parent)
    code = 0
    try:
        target.main(*_PIPES, wanted["submission"])
    except BaseException:  # noqa: BLE001 - a guest must never return into the fork loop
        code = 1
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(code)


def _enter_namespaces(wanted: dict[str, Any]) -> None:
    """Give the guest a root directory and a user namespace, as far as the settings ask for them."""
    private_root = _private_root()
    if wanted["steps"] is not None:
        box = wanted["box"]
        kind = ("visible", box, "") if wanted["writable"] else ("directory", box, "1777")
        root = private_root.build(wanted["roots"], wanted["name"], [*wanted["steps"], kind])
    if wanted["user_namespace"]:
        private_root.enter_user_namespace()
    if wanted["steps"] is not None:
        private_root.enter(root, box)


def _private_root() -> Any:
    return sys.modules["tiltyard.isolation.confinement.private_root"]


@contextmanager
def _exit_on_error() -> Iterator[None]:
    """Print any error as one line, and end the process."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - nothing may go on after any error
        print(f"tiltyard: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        sys.stderr.flush()
        os._exit(_EXIT_CODE)


def _die_with(parent: int | None) -> None:
    """Die with the parent process, and hide this process's memory from guests."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        raise OSError("the judge has ended already")


def _import_trusted(settings: dict[str, Any]) -> Any:
    """Import the target and everything else that its guests share."""
    if sys.version != settings["version"]:
        raise RuntimeError(f"this is Python {sys.version}, not the judge's {settings['version']}")
    # Results must not depend on the number of processors, and Landlock does not confine threads
    # that are already running. The values are constant, so they reveal nothing.
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    sys.meta_path.append(_AllowedPackages(settings["packages"]))
    target = importlib.import_module(settings["target"])
    importlib.import_module("tiltyard.isolation.confinement.selfjail").prepare()
    importlib.import_module("tiltyard.isolation.confinement.private_root")
    target.prepare()
    # The kernel collects the supervisors: this process does not wait for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return target


class _AllowedPackages:
    """An import finder for the packages that a guest may import, and no others."""

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


def _confine(target: Any, wanted: dict[str, Any], parent: int | None) -> None:
    selfjail = sys.modules["tiltyard.isolation.confinement.selfjail"]
    sys.argv[:] = [target.__name__, *wanted["arguments"]]
    selfjail.confine(
        wanted["limits"],
        wanted["readable"],
        wanted["writable"],
        wanted["uid"],
        keep=_PIPES,
        parent=parent,
        without=frozenset(wanted["without"]),
    )
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    _check_readable([os.path.dirname(__file__), os.__file__])  # noqa: PTH120
    _check_readable([wanted["submission"]] if wanted["submission"] else [])
    _bound_output(wanted["limits"]["output"])


def _check_readable(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError as error:
            raise RuntimeError(
                f"the guest's user {os.getuid()} cannot read {path}: {error.strerror}"
            ) from error


def _bound_output(bound: int) -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        raw = io.BufferedWriter(_BoundedOutput(descriptor, bound))
        stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


class _BoundedOutput(io.RawIOBase):
    """Standard output into a file that never grows beyond `bound` bytes.

    The first half stays. The second half is overwritten each time it is full. So the judge can read
    the beginning and the end. This helps authors who print a lot. Hostile code can bypass it, and
    then meets the limit on file sizes.
    """

    def __init__(self, descriptor: int, bound: int) -> None:
        self._descriptor = descriptor
        self._bound = bound

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Any, /) -> int:
        text = bytes(data)
        half = self._bound // 2
        if os.lseek(self._descriptor, 0, os.SEEK_END) + min(len(text), half) > self._bound:
            os.ftruncate(self._descriptor, half)
            os.lseek(self._descriptor, half, os.SEEK_SET)
        os.write(self._descriptor, text[-half:])
        return len(text)


if __name__ == "__main__":
    main()
