"""Finds the isolation level of this machine by starting a tiny guest at each level.

A version number proves nothing, so every layer is tried. The result names each layer, and says how
to get what is missing.
"""

import json
import os
import sys
from functools import cache
from typing import Final

from msgspec import Struct

from tiltyard.isolation.confinement.selfjail import has_seccomp, landlock_abi
from tiltyard.isolation.host import bubblewrap
from tiltyard.isolation.host.fork_server import start_guest
from tiltyard.isolation.host.limits import JailError, Level, Limits
from tiltyard.isolation.host.slots import take_slot

_SECONDS: Final = 30.0
_TCP_FROM: Final = 4
_SCOPES_FROM: Final = 6
_LINUX: Final = "use Linux 5.13 or newer on x86_64 or aarch64; a container or WSL2 works too"
_GET_BUBBLEWRAP: Final = "apt-get install bubblewrap, or pip install 'tiltyard[bwrap]'"


class Layer(Struct, frozen=True):
    """One layer of the jail: whether it works here, and what to do if not."""

    name: str
    works: bool
    detail: str
    remedy: str = ""


class Machine(Struct, frozen=True):
    """The isolation level of this machine, and the layers behind it."""

    level: Level
    layers: tuple[Layer, ...]

    @property
    def missing(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in self.layers if not layer.works)


@cache
def probe() -> Machine:
    """Try the levels, the best first. The result is cached for this process."""
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
        return Layer("Landlock", works=False, detail="this kernel has no Landlock", remedy=remedy)
    rights = ["files"]
    rights += ["TCP"] if abi >= _TCP_FROM else []
    rights += ["signals and abstract sockets"] if abi >= _SCOPES_FROM else []
    return Layer("Landlock", works=True, detail=f"version {abi}: {', '.join(rights)}")


def _seccomp() -> Layer:
    if has_seccomp():
        return Layer(
            "seccomp", works=True, detail=f"system calls are filtered on {os.uname().machine}"
        )
    return Layer(
        "seccomp", works=False, detail="system calls cannot be filtered here", remedy=_LINUX
    )


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


_GET_THREADS: Final = (
    "use Linux 5.14 or newer, raise the limit on processes (ulimit -u), or start Tiltyard as root"
)

_INSIDE: Final = {
    "environment": "empty",
    "descriptors": "closed, except for the two pipes",
    "uid": "a user of its own",
    "no-capabilities": "no capabilities",
    "no-new-privileges": "cannot gain rights by starting a program",
    "death-signal": "dies with the judge",
    "not-dumpable": "its memory is closed to other processes",
    "limits": "memory, time, files, threads",
    "landlock": "opens Python and the submission, nothing else",
    "seccomp": "no network, no processes, no tracing",
}

_OPEN_AT_B: Final = {
    "other paths": "a guest sees which files exist, their sizes and their times",
    "access times": "a guest can mark shared files by reading them, and later guests see it",
    "processes": "a guest sees process numbers of this machine",
    "threads": "guests of an ordinary user share one limit",
}
"""What only namespaces close: neither Landlock nor seccomp can restrict `stat` by path."""


def _ask_guest(level: Level) -> str:
    """Return what a guest reports. Without a slot, it would share its limits with other guests."""
    slot = take_slot()
    try:
        with start_guest(
            "tiltyard.isolation.guest.probe_script",
            level=level,
            limits=Limits(cpu_seconds=int(_SECONDS)),
            slot=slot.number,
        ) as guest:
            guest.wait(_SECONDS)
            return guest.output()
    finally:
        slot.release()


def _try(level: Level) -> tuple[Layer, list[Layer]]:
    """Start a guest that reports the layers in force, and does nothing else."""
    name, remedy = _NAMES[level], _REMEDIES[level]
    try:
        output = _ask_guest(level)
    except (JailError, OSError) as error:
        return Layer(name, works=False, detail=str(error), remedy=remedy), []
    try:
        found = json.loads(output)
        layers, threads = found["layers"], found["threads"]
    except (ValueError, KeyError, TypeError):
        detail = output.strip()[-300:] or "the guest printed nothing"
        return Layer(name, works=False, detail=detail, remedy=remedy), []
    if level is Level.A and threads != Limits().processes:
        # A submission that starts threads would score on one machine and break off on another.
        detail = f"a guest can have {threads} threads here, not {Limits().processes}"
        return Layer(name, works=False, detail=detail, remedy=_GET_THREADS), []
    inside = [Layer(f"  {each}", works=True, detail=_INSIDE[each]) for each in layers]
    if level is Level.B:
        leaks = {k: v for k, v in _OPEN_AT_B.items() if k != "threads" or os.geteuid() != 0}
        inside += [Layer(f"  {leak}", works=False, detail=text) for leak, text in leaks.items()]
    return Layer(name, works=True, detail=f"started at level {level}"), inside
