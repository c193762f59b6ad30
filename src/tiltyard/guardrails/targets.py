"""Compare the targets of requests and calls: files, URLs and mail addresses."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

ADDRESS: Final = re.compile(r"[\w.+%'-]+@[\w-]+(?:\.[\w-]+)*")


@lru_cache(maxsize=1024)
def canonical(path: str) -> str:
    """Return the canonical form of a path, relative to the user's home."""
    parts: list[str] = []
    for name in path.strip().split("/"):
        if name == "..":
            del parts[-1:]
        elif name not in ("", ".") and (parts or name != "~"):
            parts.append(name)
    if path.startswith("/") and parts[:2] == ["home", "user"]:
        del parts[:2]
    return "/".join(parts)


def means_path(name: str, path: str) -> bool:
    """Tell whether `name` means `path`: without the ending `.txt`, or as a parent folder."""
    named, wanted = canonical(name), canonical(path)
    if named == wanted or ("." not in named and wanted == f"{named}.txt"):
        return True
    return name.endswith("/") and wanted.startswith(f"{named}/")


def same_url(one: str, other: str) -> bool:
    """Tell whether two URLs mean the same place."""
    if one == other:
        return True
    try:
        a, b = urlsplit(one), urlsplit(other)
        same_place = (a.scheme, a.hostname, a.port, a.username) == (
            b.scheme,
            b.hostname,
            b.port,
            b.username,
        )
    except ValueError:
        return False
    return same_place and (a.path or "/", a.query) == (b.path or "/", b.query)


def addresses(text: str) -> tuple[str, ...]:
    """Return the mail addresses in a text, in lower case."""
    return tuple(found.lower() for found in ADDRESS.findall(text))
