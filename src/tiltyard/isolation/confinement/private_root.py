"""A root directory for one guest: made when the guest starts, removed when it ends.

A file's change time cannot be set, so a directory tells when it was made. A directory that all
guests of a pool share would tell each of them how long the match has run. So each guest gets new
directories and its own copy of the submission, which are as old as the guest. Python and its
packages stay shared; they are older than any match.

This runs inside the fork server and the guest, before the guest confines itself. It imports the
standard library only.
"""

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_NEW_MOUNTS: Final = 0x00020000
_NEW_USERS: Final = 0x10000000
_READ_ONLY: Final = 1
_NO_SETUID: Final = 2
_NO_DEVICES: Final = 4
_REMOUNT: Final = 32
_BIND: Final = 4096
_RECURSIVE: Final = 16384
_PRIVATE: Final = 1 << 18
_SAFE: Final = _NO_SETUID | _NO_DEVICES
_COPIED_AT_ONCE: Final = 1 << 24

_libc: Final = ctypes.CDLL(None, use_errno=True)


def prepare(place: str) -> None:
    """Mount a file system for guests' directories at `place`, in a mount namespace."""
    _unshare(_NEW_MOUNTS)
    _mount(None, "/", None, _PRIVATE | _RECURSIVE)
    # Not tmpfs, which numbers its files from 1: a file's number would tell how many guests there
    # were. ramfs takes the next number of the whole machine, like a pipe.
    _mount("ramfs", place, "ramfs", _SAFE)


def build(place: str, name: str, steps: Sequence[tuple[str, str, str]]) -> str:
    """Make a root directory in `place`, in a mount namespace, and return its path.

    A step is a kind, a path and an argument. `directory` makes a directory with this mode,
    `visible` shows a directory as it is and `file` a file, `hidden` covers a directory with an
    empty one, `copy` makes a copy, `cover` covers a visible path with its copy, and `link` makes a
    symbolic link to the argument. Parent directories come before what they contain.
    """
    _unshare(_NEW_MOUNTS)
    before = os.umask(0)
    base = f"{place}/{name}"
    root = f"{base}/root"
    os.mkdir(base, 0o755)  # noqa: PTH102 - pathlib costs a tenth of a start
    os.mkdir(root, 0o755)  # noqa: PTH102
    mounts = _make_all(base, root, steps)
    os.umask(before)
    # Bind mounts of this file system that are made after this are read-only too.
    _mount(None, place, None, _BIND | _REMOUNT | _READ_ONLY | _SAFE)
    for source, target in mounts:
        _mount(source, target, None, _BIND | _RECURSIVE)
    return root


def _make_all(base: str, root: str, steps: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Make files and directories, and return what to mount on which of them."""
    mounts: list[tuple[str, str]] = []
    hidden: list[tuple[str, str]] = []
    for number, (kind, path, argument) in enumerate(steps):
        own, spare = root + path, f"{base}/{number}"
        for above, instead in hidden:
            if path.startswith(above):
                own = instead + path[len(above) :]
        if kind in ("visible", "file"):
            mounts.append((path, root + path))
        elif kind in ("hidden", "cover"):
            mounts.append((spare, root + path))
            own = spare
            hidden.append((f"{path}/", f"{spare}/"))
        _make(kind, path, own, argument)
    return mounts


def _make(kind: str, path: str, own: str, argument: str) -> None:
    if kind == "link":
        os.symlink(argument, own)  # noqa: PTH211
    elif kind == "file":
        os.close(os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    elif kind in ("copy", "cover"):
        _copy(path, own)
    else:
        os.mkdir(own, int(argument or "0755", 8))  # noqa: PTH102


def enter_user_namespace() -> None:
    """Give this process a user namespace, so that the kernel counts its threads alone.

    No user is mapped there, so the process cannot make another user namespace. It gets all
    capabilities over the new namespace, and must drop them.
    """
    _unshare(_NEW_USERS)


def enter(root: str, directory: str) -> None:
    """Make `root` the root directory, and `directory` in it the working directory.

    This comes after `enter_user_namespace`: a process that has changed its root directory cannot
    make user namespaces any more.
    """
    os.chroot(root)
    os.chdir(directory)


def remove(place: str, name: str) -> None:
    """Remove a root directory, after its guest has ended."""
    with suppress(FileNotFoundError):
        _remove(f"{place}/{name}")


def _copy(source: str, target: str) -> None:
    """Copy a file, or a directory with links, files and directories."""
    if not os.path.isdir(source):  # noqa: PTH112
        _copy_file(source, target)
        return
    os.mkdir(target, 0o755)  # noqa: PTH102
    with os.scandir(source) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        inside = f"{target}/{entry.name}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), inside)  # noqa: PTH115, PTH211
        elif entry.is_dir():
            _copy(entry.path, inside)
        else:
            _copy_file(entry.path, inside)


def _copy_file(source: str, target: str) -> None:
    read = os.open(source, os.O_RDONLY)
    write = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    while os.sendfile(write, read, None, _COPIED_AT_ONCE):
        pass
    os.close(read)
    os.close(write)


def _remove(path: str) -> None:
    with os.scandir(path) as entries:
        found = list(entries)
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            _remove(entry.path)
        else:
            os.unlink(entry.path)  # noqa: PTH108
    os.rmdir(path)  # noqa: PTH106


def _unshare(what: int) -> None:
    if _libc.unshare(what):
        raise _error("cannot make a namespace for a guest")


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    names = [None if name is None else os.fsencode(name) for name in (source, target, kind)]
    if _libc.mount(*names, ctypes.c_ulong(flags), None):
        raise _error(f"cannot mount {target} for a guest")


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")
