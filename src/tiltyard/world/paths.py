"""The only path normaliser of the project.

The simulated machine has one user, whose home directory is the root. A canonical path is relative
to that root and contains no `.`, `..`, doubled slash or `~`.
"""

from functools import lru_cache
from typing import Final

MAX_NAME_CHARS: Final = 255
MAX_PATH_CHARS: Final = 1024
MAX_PATH_DEPTH: Final = 66
HOME: Final = "/home/user"
_HOME_PARTS: Final = ("home", "user")


class PathError(Exception):
    """An invalid path. `escapes` is True if it leaves the root, False if it is malformed."""

    def __init__(self, *, escapes: bool) -> None:
        super().__init__("path leaves the root" if escapes else "path is malformed")
        self.escapes = escapes


@lru_cache(maxsize=8192)
def normalise(path: str) -> str:
    """Return the canonical form of a path. The root is the empty string."""
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
    # Recognize the home directory last, when all spellings of it look the same.
    if absolute and tuple(parts[:2]) == _HOME_PARTS:
        del parts[:2]
    while parts and parts[0] == "~":
        del parts[0]
    if len(parts) > MAX_PATH_DEPTH:
        raise PathError(escapes=False)
    return "/".join(parts)
