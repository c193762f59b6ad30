"""Which level this machine gives, found out by trying: a version number proves nothing.

A tiny guest is started at each level; what it reports, and what goes wrong, is told layer by
layer, with the way to get what is missing.
"""

import json
import os
import sys
from functools import cache
from typing import Final

from msgspec import Struct

from tiltyard.isolation.confinement.selfjail import has_seccomp, landlock_abi
from tiltyard.isolation.host import bubblewrap
from tiltyard.isolation.host.fork_server import start
from tiltyard.isolation.host.limits import JailError, Level, Limits

_SECONDS: Final = 30.0
_TCP_FROM: Final = 4
_SCOPES_FROM: Final = 6
_LINUX: Final = "use Linux 5.13 or newer on x86_64 or aarch64; a container or WSL2 will do"
_GET_BUBBLEWRAP: Final = "apt-get install bubblewrap, or pip install 'tiltyard[bwrap]'"


class Layer(Struct, frozen=True):
    """One thing that a jail is made of."""

    name: str
    works: bool
    detail: str
    remedy: str = ""


class Machine(Struct, frozen=True):
    """What this machine can put around a stranger's code."""

    level: Level
    layers: tuple[Layer, ...]

    @property
    def missing(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in self.layers if not layer.works)


@cache
def probe() -> Machine:
    """Try the levels, best first, once in the life of this process."""
    needed = [_landlock(), _seccomp()]
    binary = _bubblewrap()
    if not all(layer.works for layer in needed):
        return Machine(Level.C, (*needed, binary))
    layers = [*needed, binary]
    levels = (Level.A, Level.B) if binary.works else (Level.B,)
    for level in levels:
        started, inside = _try(level)
        layers += [started, *inside]
        if started.works:
            return Machine(level, tuple(layers))
    return Machine(Level.C, tuple(layers))


def _landlock() -> Layer:
    abi = landlock_abi() if sys.platform == "linux" else 0
    if not abi:
        remedy = f"{_LINUX}, and enable Landlock at boot: lsm=landlock,..."
        return Layer("Landlock", works=False, detail="this kernel has none", remedy=remedy)
    rights = ["files"]
    rights += ["TCP"] if abi >= _TCP_FROM else []
    rights += ["signals and abstract sockets"] if abi >= _SCOPES_FROM else []
    return Layer("Landlock", works=True, detail=f"version {abi}: {', '.join(rights)}")


def _seccomp() -> Layer:
    if has_seccomp():
        return Layer("seccomp", works=True, detail=f"a table of calls for {os.uname().machine}")
    return Layer("seccomp", works=False, detail="no filter of system calls", remedy=_LINUX)


def _bubblewrap() -> Layer:
    found = bubblewrap.find_bubblewrap()
    if found is None:
        return Layer("bubblewrap", works=False, detail="not found", remedy=_GET_BUBBLEWRAP)
    return Layer("bubblewrap", works=True, detail=found)


_NAMES: Final = {Level.A: "guest in namespaces", Level.B: "guest on its own"}
_REMEDIES: Final = {
    Level.A: "allow namespaces: sysctl user.max_user_namespaces, "
    "kernel.apparmor_restrict_unprivileged_userns=0, or run a container with --privileged",
    Level.B: "install Python and Tiltyard where every user can read them, outside /root",
}


_INSIDE: Final = {
    "environment": "empty",
    "descriptors": "closed, but for the two pipes",
    "uid": "a user of its own",
    "no-capabilities": "none of root's powers",
    "no-new-privileges": "no program can give it more rights",
    "death-signal": "ends with the judge",
    "not-dumpable": "its memory is closed to others",
    "limits": "memory, time, files, threads",
    "landlock": "reads Python and the submission, nothing else",
    "seccomp": "no network, no processes, no tracing",
}


def _try(level: Level) -> tuple[Layer, list[Layer]]:
    """Start a guest that does nothing but tell which layers are in force."""
    name, remedy = _NAMES[level], _REMEDIES[level]
    try:
        with start(
            "tiltyard.isolation.guest.probe_script",
            level=level,
            limits=Limits(cpu_seconds=int(_SECONDS)),
        ) as guest:
            guest.wait(_SECONDS)
            said = guest.output()
    except (JailError, OSError) as error:
        return Layer(name, works=False, detail=str(error), remedy=remedy), []
    try:
        layers = json.loads(said)["layers"]
    except (ValueError, KeyError, TypeError):
        detail = said.strip()[-300:] or "it said nothing"
        return Layer(name, works=False, detail=detail, remedy=remedy), []
    inside = [Layer(f"  {each}", works=True, detail=_INSIDE[each]) for each in layers]
    return Layer(name, works=True, detail=f"started at level {level}"), inside
