"""The tools of one conversation: declarations of all servers, pinned by their hash.

A guardrail knows each tool by one name. A tool of another server with the same name, and a tool
whose declaration changed, are other tools, so they get other names: `notes.search`, `search~2`.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from tiltyard.contracts.declaration import (
    MAX_TOOLS,
    MAX_TOTAL_BYTES,
    Declaration,
    DeclarationError,
    check_declarations,
    read_declarations,
)
from tiltyard.contracts.lookalikes import skeleton
from tiltyard.contracts.policy import Policy
from tiltyard.inference import Overlay

MAX_REFUSED: Final = 1_000


class Offered(Struct, frozen=True):
    """A tool as a server offers it now."""

    name: str
    """The name that the guardrail knows."""
    digest: str
    raw: Any
    declaration: Declaration | None = None
    """None if the declaration is refused."""
    refused: str = ""


class Toolbox:
    def __init__(self, policy: Policy, overlay: Overlay) -> None:
        self._policy = policy
        self._overlay = overlay
        self._now: dict[tuple[str, str], Offered] = {}
        """By server and name."""
        self._pinned: dict[tuple[str, str, str], Offered] = {}
        """By server, name and digest."""
        self._shapes: dict[str, str] = {}
        """The server of each name that is taken, by its skeleton."""
        self._versions: dict[str, int] = {}
        """The last number of each name that was taken before."""
        self._bytes: dict[tuple[str, str], int] = {}
        """The sizes of the declarations that the agent has now, by server and name."""

    def find(self, server: str, name: str) -> Offered | None:
        return self._now.get((server, name))

    def declarations(self) -> tuple[Declaration, ...]:
        """Return what the agent has now."""
        found = (one.declaration for one in self._now.values())
        return tuple(one for one in found if one is not None)

    def take(self, server: str, listing: object) -> Iterator[Offered]:
        """Read one answer to `tools/list`. Yield the tools that are new or changed."""
        found = listing.get("tools") if isinstance(listing, dict) else None
        tools = found if isinstance(found, list) else []
        counts = Counter(name for raw in tools if (name := _name_of(raw)) is not None)
        for raw in tools:
            name = _name_of(raw)
            if name is None:
                continue
            key = (server, name)
            before = self._now.get(key)
            full = len(self._pinned) >= MAX_TOOLS + MAX_REFUSED
            if full and before is None:
                continue
            known: Offered | None
            if counts[name] > 1:
                # Nobody can say which of the two a call means.
                digest, known = "", Offered(name, "", {"name": name}, None, _twice(name))
            else:
                digest = sha256(msgspec.json.encode(raw, order="deterministic")).hexdigest()
                known = self._pinned.get((*key, digest))
            if before is not None and before.digest == digest:
                continue
            if known is None and full:
                # A server that changes its tools so often must not keep an old declaration.
                known = Offered(name, digest, raw, None, "the server declared too many tools")
            elif known is None:
                known = self._read(server, raw, digest, changed=before is not None)
            if not full:
                self._pinned[*key, digest] = known
            self._now[key] = known
            if known.declaration is None:
                self._bytes.pop(key, None)
            else:
                self._bytes[key] = len(msgspec.msgpack.encode(known.declaration))
            yield known

    def _read(self, server: str, raw: dict[str, Any], digest: str, *, changed: bool) -> Offered:
        name: str = raw["name"]
        trusted = server in self._policy.trusted_sources
        try:
            (declared,) = read_declarations([raw], server, trusted=trusted)
            own = self._free_name(server, name, changed=changed)
            declared = structs.replace(declared, name=own)
            declared = self._overlay.carried_by(declared)
            if own == f"{server}.{name}":
                corrections = self._overlay.carried_by(structs.replace(declared, name=name))
                declared = structs.replace(declared, corrections=corrections.corrections)
            check_declarations((declared,))
            self._check_room(server, name, declared)
        except DeclarationError as error:
            return Offered(name, digest, raw, None, str(error))
        self._shapes[skeleton(own)] = server
        return Offered(own, digest, raw, declared)

    def _check_room(self, server: str, name: str, declared: Declaration) -> None:
        """Raise a DeclarationError if a tool is too much beside the others.

        The others were checked before. To check them again for each tool would take minutes.
        """
        sizes = [size for key, size in self._bytes.items() if key != (server, name)]
        if len(sizes) >= MAX_TOOLS:
            raise DeclarationError(f"more than {MAX_TOOLS:,} tools are declared")
        if sum(sizes) + len(msgspec.msgpack.encode(declared)) > MAX_TOTAL_BYTES:
            raise DeclarationError(
                f"the declarations have more than {MAX_TOTAL_BYTES:,} bytes together"
            )

    def _free_name(self, server: str, name: str, *, changed: bool) -> str:
        taken = self._shapes.get(skeleton(name))
        if taken is None:
            return name
        if taken == server and not changed:
            raise DeclarationError(
                f"tool {name[:80]!r} looks like another tool of the same server; rename one of them"
            )
        if taken != server and skeleton(f"{server}.{name}") not in self._shapes:
            return f"{server}.{name}"
        number = self._versions.get(name, 1) + 1
        while skeleton(f"{name}~{number}") in self._shapes:
            number += 1
        self._versions[name] = number
        return f"{name}~{number}"


def _name_of(raw: object) -> str | None:
    name = raw.get("name") if isinstance(raw, dict) else None
    return name if isinstance(name, str) else None


def _twice(name: str) -> str:
    return f"the server declares tool {name[:80]!r} twice; rename one of them"
