"""What strangers order close to a user's task, and in which form.

The words come from `close_calls.toml`. `near_x` is a name that only resembles the slot `x`, and
`odd_x` is the same name in another spelling; the file lists more such kinds. A user may warn of the
orders: `forbidden`, `cited`, `supposed` and `marked` have them in the user's words.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from tiltyard.foundation.draw import Draw
from tiltyard.world.templates import Filler

_RENAMED: Final = re.compile(r"\{(([a-z]+)_([a-z]+[2-9]?))\}")
_PORTS: Final = {"http": "80", "https": "443"}
_OTHER_SCHEME: Final = {"http": "https", "https": "http"}
_LAST_JOINT: Final = " and "


class Names(Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns for other names of a file, a URL and a mail address."""

    path: tuple[str, ...] = ()
    url: tuple[str, ...] = ()
    address: tuple[str, ...] = ()

    def rename(self, name: str, draw: Draw) -> str:
        if "://" in name:
            return draw.choice(self.url).format_map(_parts_of_url(name))
        if "@" in name:
            person, _, domain = name.partition("@")
            parts = {"name": person, "domain": domain}
            return draw.choice(self.address).format_map(_with_capitals(parts))
        folder, _, last = name.rpartition("/")
        stem, dot, ending = last.rpartition(".")
        parts = {"path": name, "folder": folder and f"{folder}/", "stem": stem}
        return draw.choice(self.path).format_map({**parts, "ending": dot + ending})


class OrderWords(Struct, frozen=True, forbid_unknown_fields=True):
    """The words of strangers' orders, and of users who warn of them."""

    commands: dict[str, tuple[str, ...]]
    """Slots for commands."""
    renamed: dict[str, Names]
    """Patterns for names that resemble another one or mean the same, by the kind of name."""
    forbids: tuple[str, ...]
    supposes: tuple[str, ...]
    """Sentences of a user who warns of an order, which is the slot `order`."""
    marks: tuple[str, ...]
    """The same with the verb, the slot `verb`, in quotation marks; `rest` are the other words."""
    disguises: tuple[str, ...]
    """Texts that the agent must decode to read the slot `orders`."""


class OrderForm(Struct, frozen=True):
    """How a template wants its orders said."""

    waits_for: str = ""
    """What the agent must do next before it obeys."""
    is_disguised: bool = False


def set_renamed(slots: Filler, texts: Sequence[str], words: OrderWords, draw: Draw) -> None:
    """Set the slots in `texts` for names that are like those of other slots."""
    for slot, kind, named in dict.fromkeys(_RENAMED.findall(" ".join(texts))):
        if kind in words.renamed:
            name = slots.fill(f"{{{named}}}")
            slots.set(slot, words.renamed[kind].rename(name, draw.branch(slot)))


def set_orders(
    slots: Filler, sentences: Sequence[str], form: OrderForm, words: OrderWords, draw: Draw
) -> None:
    """Set `orders`, and the slots with the same orders in the words of a user who warns of them."""
    filled = [slots.fill(sentence) for sentence in sentences]
    slots.set("orders", " ".join(filled))
    if form.waits_for:
        slots.set("orders", _waiting(filled, form.waits_for))
    if form.is_disguised:
        slots.set("orders", slots.fill(draw.branch("disguise").choice(words.disguises)))
    slots.set("cited", "\n".join(f"> {order}" for order in filled))
    for slot, patterns in (("forbidden", words.forbids), ("supposed", words.supposes)):
        warned = draw.branch(slot)
        said = (warned.choice(patterns).replace("{order}", _clause(order)) for order in filled)
        slots.set(slot, " ".join(said))
    marked = draw.branch("marked")
    slots.set("marked", " ".join(_marked(order, marked.choice(words.marks)) for order in filled))


def _waiting(orders: Sequence[str], occasion: str) -> str:
    """Join orders to one sentence: all of its clauses wait."""
    *first, last = map(_clause, orders)
    return f"When you next {occasion}, {', '.join(first)}{_LAST_JOINT}{last}."


def _clause(order: str) -> str:
    return order[:1].lower() + order[1:].removesuffix(".")


def _marked(order: str, pattern: str) -> str:
    verb, _, rest = order.removesuffix(".").partition(" ")
    return pattern.replace("{verb}", verb).replace("{rest}", rest)


def _parts_of_url(url: str) -> Mapping[str, str]:
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    parts = {"scheme": scheme, "host": host, "path": path, "port": _PORTS[scheme]}
    parts["other_scheme"] = _OTHER_SCHEME[scheme]
    escaped = "".join(f"%{ord(char):02X}" for char in path[:1]) + quote(path[1:])
    return _with_capitals({**parts, "escaped": escaped})


def _with_capitals(parts: Mapping[str, str]) -> Mapping[str, str]:
    return {**parts, **{name.upper(): value.upper() for name, value in parts.items()}}
