"""The paths that a guest can see: Python, the packages that it can import, the submission.

The mount namespace and Landlock enforce them; this module only lists them.
"""

import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct

from tiltyard.isolation.host.limits import JailError

CORE: Final = ("immutables", "msgspec", "tiltyard")
"""The packages that the guest's side of Tiltyard imports."""

KEPT_FROM_GUESTS: Final = ("arena", "packs")
"""Rooms of Tiltyard whose files a guest cannot read: tasks, plans, planted texts, tool names."""

_SYSTEM: Final = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
_FOREIGN: Final = ("site-packages", "dist-packages")


class View(Struct, frozen=True):
    """The paths for one set of packages, without symbolic links."""

    executable: str
    readable: tuple[str, ...]
    """What a guest must read in order to run: libraries, the standard library, packages."""
    hidden: tuple[str, ...]
    """Directories below readable ones: packages which are not allowed, and `KEPT_FROM_GUESTS`."""
    packages: dict[str, str]
    """The path of each package that the guest can import."""


@cache
def view_for(packages: tuple[str, ...]) -> View:
    """Return the paths that a guest with these third-party packages can see."""
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    stdlib = Path(os.path.realpath(os.__file__)).parent
    prefixes = {sys.base_prefix, sys.base_exec_prefix}
    python = [executable, str(stdlib.parent)]
    python += [str(Path(prefix, name)) for prefix in prefixes for name in ("lib", sys.platlibdir)]
    system = [path for path in _SYSTEM if Path(path).is_dir()]
    found = {name: _place(name) for name in (*CORE, *packages)}
    beside = [f"{place}.libs" for place in found.values() if Path(f"{place}.libs").is_dir()]
    readable = {os.path.realpath(path) for path in (*python, *system) if Path(path).exists()}
    foreign = {os.path.realpath(path) for path in _foreign(stdlib) if path.is_dir()}
    hidden = [path for path in foreign if _below(path, readable)]
    kept = [str(Path(found["tiltyard"], room)) for room in KEPT_FROM_GUESTS]
    return View(
        executable,
        tuple(sorted({*readable, *found.values(), *beside})),
        tuple(sorted({*hidden, *kept})),
        found,
    )


def _place(name: str) -> str:
    """Return the directory or file of a package, without importing it."""
    if not name.isidentifier():
        raise JailError(f"{name!r} is not a valid package name")
    spec = find_spec(name)
    if spec is None:
        raise JailError(f"the package {name!r} is not installed here: pip install {name}")
    if spec.submodule_search_locations is not None:
        if spec.origin is None:
            raise JailError(f"{name!r} is a namespace package; use a package with an __init__.py")
        return os.path.realpath(Path(spec.origin).parent)
    if not spec.has_location or spec.origin is None:
        raise JailError(f"{name!r} is part of Python: every guest can import it")
    return os.path.realpath(spec.origin)


def _foreign(stdlib: Path) -> list[Path]:
    version = stdlib.name
    homes = (
        stdlib,
        Path("/usr/lib/python3"),
        Path("/usr/lib", version),
        Path("/usr/local/lib", version),
    )
    return [home / name for home in homes for name in _FOREIGN]


def _below(path: str, roots: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(root) for root in roots)
