"""The one path normaliser: every spelling of a path in the product is read here.

The simulated machine has one user, whose home is the root. A path is canonical when it is
relative to that root and free of `.`, `..`, doubled slashes and the home sign.
"""

from functools import lru_cache
from typing import Final

MAX_NAME_CHARS: Final = 255
MAX_PATH_CHARS: Final = 1024
MAX_PATH_DEPTH: Final = 66
HOME: Final = "/home/user"
_HOME_PARTS: Final = ("home", "user")


class PathError(Exception):
    """A path that names nothing: `escapes` tells leaving the root from being malformed."""

    def __init__(self, *, escapes: bool) -> None:
        super().__init__("path leaves the root" if escapes else "path is malformed")
        self.escapes = escapes


@lru_cache(maxsize=8192)
def normalise(path: str) -> str:
    """Return the canonical form of a path; the root itself is the empty string."""
    if len(path) > MAX_PATH_CHARS or any(ord(char) < 32 or char == "\x7f" for char in path):
        raise PathError(escapes=False)
    absolute = path.startswith("/")
    parts: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not parts:
                raise PathError(escapes=True)
            parts.pop()
        elif name not in ("", ".") and (parts or name != "~"):
            if len(name) > MAX_NAME_CHARS:
                raise PathError(escapes=False)
            parts.append(name)
    # Only now, when all spellings look the same, can the home directory be told.
    if absolute and tuple(parts[:2]) == _HOME_PARTS:
        del parts[:2]
    while parts and parts[0] == "~":
        del parts[0]
    if len(parts) > MAX_PATH_DEPTH:
        raise PathError(escapes=False)
    return "/".join(parts)
