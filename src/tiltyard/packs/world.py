"""A world of packs: records as an immutable value.

Every field knows its author. A call returns a new world and the changes that it made; the old world
stays valid.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

from immutables import Map
from msgspec import Struct, structs

from tiltyard.contracts.policy import Policy
from tiltyard.foundation.draw import Draw
from tiltyard.packs import cast
from tiltyard.packs.cast import Person
from tiltyard.packs.schema import Field, Pack, RecordType, Scalar, Tool

OWNER: Final = "owner"
SYSTEM: Final = "system"
COLLEAGUES: Final = 5
CONTACTS: Final = 7
STRANGERS: Final = 7
MORE_TEXTS: Final = (0, 0, 1, 1, 2)
"""How many other texts a person adds to a text; chance takes one of these numbers."""
MAX_FILLED_CHARS: Final = 20_000
"""The limit for a text with its names filled in."""
JOINTS: Final = ("\n", "\n\n", " ", " ")
"""What stands between two texts of a person."""


class Leaf(Struct, frozen=True, gc=False):
    """The value of a field, and who wrote it: `owner`, `system` or a person's address."""

    value: Scalar
    author: str = SYSTEM


class Record(Struct, frozen=True, gc=False):
    """A record: a message, a payment, a file."""

    type: str
    """As `pack.type`."""
    key: str
    fields: dict[str, Leaf]
    """Nothing changes this dictionary after the record is made."""
    parts: dict[str, Scalar] = {}
    """Values that stand inside its texts, by name."""

    def value(self, field: str) -> Scalar:
        leaf = self.fields.get(field)
        return None if leaf is None else leaf.value


class Change(Struct, frozen=True, gc=False):
    """What a call did to a record, or sent away."""

    kind: Literal["created", "updated", "deleted", "left"]
    type: str
    key: str
    fields: dict[str, Scalar] = {}
    """The new values; with `left`, what was sent."""
    to: str = ""
    """With `left`: the destination."""


class People(Struct, frozen=True):
    """Everybody whom a world knows."""

    owner: Person
    domain: str
    """The domain of the owner and the colleagues."""
    colleagues: tuple[Person, ...]
    contacts: tuple[Person, ...]
    """People and companies outside whom the owner deals with."""
    strangers: tuple[Person, ...]
    """Others outside, who appear in records."""

    def find(self, name: str) -> Person | None:
        return next((one for one in self.all if one.name == name), None)

    @property
    def all(self) -> tuple[Person, ...]:
        return (self.owner, *self.colleagues, *self.contacts, *self.strangers)


class Site(Struct, frozen=True):
    """What stays the same in a world: its packs, its people, its policy."""

    packs: dict[str, Pack]
    people: People
    policy: Policy
    key: str
    types: dict[str, RecordType]
    """By `pack.type`."""
    tools: dict[str, tuple[str, Tool]]
    """By `pack.tool`: the pack's name and the tool."""
    canary: str = ""
    """Makes the protected values of this world unlike those of any other world with its key."""


class World(Struct, frozen=True):
    """All records of a world."""

    site: Site
    records: "Map[str, Map[str, Record]]"
    serial: int = 0
    """How many records calls have created; new keys depend on it."""

    def of_type(self, type_: str) -> "Map[str, Record]":
        return self.records.get(type_, _NONE)

    def put(self, record: Record) -> "World":
        kept = self.of_type(record.type).set(record.key, record)
        return structs.replace(self, records=self.records.set(record.type, kept))

    def drop(self, record: Record) -> "World":
        kept = self.of_type(record.type).delete(record.key)
        return structs.replace(self, records=self.records.set(record.type, kept))

    def created(self) -> "World":
        return structs.replace(self, serial=self.serial + 1)


_NONE: Final[Map[str, Record]] = Map()


def generate(packs: Iterable[Pack], key: str, canary: str = "") -> World:
    """Return the world that a key determines. With `canary`, its protected values are others."""
    draw = Draw("packs", key)
    chosen = {pack.name: pack for pack in packs}
    people = _draw_people(draw.branch("people"))
    types = {
        f"{pack.name}.{name}": type_
        for pack in chosen.values()
        for name, type_ in pack.records.items()
    }
    tools = {
        f"{pack.name}.{name}": (pack.name, tool)
        for pack in chosen.values()
        for name, tool in pack.tools.items()
    }
    policy = Policy(
        (people.owner.name,),
        (people.owner.address,),
        (people.domain,),
        tuple(
            f"{type_}.{name}"
            for type_, kind in types.items()
            for name, field in kind.fields.items()
            if field.protected or field.secret
        ),
    )
    world = World(Site(chosen, people, policy, key, types, tools, canary), Map())
    for type_, kind in types.items():
        for number in range(1 if kind.only else kind.count):
            world = world.put(make_record(world, type_, draw.branch(type_, number)))
    return world


def _draw_people(draw: Draw) -> People:
    domain = cast.draw_domain(draw)
    owner = cast.draw_person(draw, domain)

    def outside(number: int, group: str) -> Person:
        branch = draw.branch(group, number)
        return cast.draw_company(branch) if number % 2 else cast.draw_person(branch)

    return People(
        owner,
        domain,
        tuple(cast.draw_person(draw.branch("colleague", n), domain) for n in range(COLLEAGUES)),
        tuple(outside(number, "contact") for number in range(CONTACTS)),
        tuple(outside(number, "stranger") for number in range(STRANGERS)),
    )


def make_record(  # noqa: PLR0913 - the parts of a record
    world: World,
    type_: str,
    draw: Draw,
    given: Mapping[str, Scalar] | None = None,
    parts: Mapping[str, Scalar] | None = None,
    *,
    surrounded: bool = True,
) -> Record:
    """Draw a record. `given` sets some of its fields, and `parts` stand in its texts.

    With `surrounded`, people write more than one thing in a text.
    """
    kind = world.site.types[type_]
    values: dict[str, Scalar] = dict(given or {})
    people: dict[str, Person] = {}
    # Texts come last: they may contain other fields.
    order = sorted(kind.fields, key=lambda name: kind.fields[name].kind == "text")
    for name in order:
        if name not in values:
            values[name] = _draw_value(world, kind.fields[name], people, draw.branch(name))
        if kind.fields[name].kind == "name":
            person = world.site.people.find(str(values[name]))
            if person is not None:
                people[name] = person
    texts = {**(parts or {}), **values}
    if surrounded:
        for name in order:
            values[name] = _surround(kind, name, values[name], draw.branch("around", name))
    fields = {
        name: Leaf(
            _fill(values[name], texts) if kind.fields[name].kind == "text" else values[name],
            author_of(world, kind, name, values, people),
        )
        for name in kind.fields
    }
    return Record(type_, str(values[kind.key]), fields, dict(parts or {}))


def _surround(kind: RecordType, name: str, value: Scalar, draw: Draw) -> Scalar:
    """Put other things that people write around a text, so that no line of it is special."""
    field = kind.fields[name]
    is_told = field.kind == "text" and (field.author or kind.author) not in (OWNER, SYSTEM)
    if not is_told or name == kind.title or not field.values:
        return value
    others = draw.sample(field.values, min(len(field.values), draw.choice(MORE_TEXTS)))
    pieces = draw.shuffled([show(value), *(one for one in others if one != value)])
    text = pieces[0]
    for piece in pieces[1:]:
        text = f"{text}{draw.choice(JOINTS)}{piece}"
    return text


def author_of(
    world: World,
    kind: RecordType,
    name: str,
    values: Mapping[str, Scalar],
    people: Mapping[str, Person],
) -> str:
    """Return who writes a field of a record. The system gives ids."""
    field = kind.fields[name]
    author = field.author or (SYSTEM if field.kind == "id" else kind.author)
    if author in (OWNER, SYSTEM):
        return author
    person = people.get(author) or world.site.people.find(str(values.get(author)))
    if person is None:
        return str(values.get(author) or SYSTEM)
    return OWNER if person is world.site.people.owner else person.address


def draw_value(world: World, what: str, draw: Draw) -> Scalar:
    """Draw a value that a task or goal asks for: `kind`, or `kind:who`."""
    kind, _, who = what.partition(":")
    field = structs.replace(_FIELD, kind=kind, **({"who": who} if who else {}))
    return _draw_value(world, field, {}, draw)


_FIELD: Final = Field(kind="id")


def _draw_value(world: World, field: Field, people: Mapping[str, Person], draw: Draw) -> Scalar:
    is_kept = field.protected or field.secret
    if world.site.canary and is_kept and field.kind in CANARIES:
        return CANARIES[field.kind](draw.branch("canary", world.site.canary))
    match field.kind:
        case "name" | "address" | "account" | "phone":
            person = people.get(field.of or "") or _draw_someone(world, field.who, draw)
            return str(getattr(person, field.kind))
        case "amount":
            return cast.draw_amount(draw, field.low, field.high)
        case "count":
            return field.low + draw.below(field.high - field.low + 1)
        case "choice" | "text":
            return draw.choice(field.values or ["-"])
        case "flag":
            return draw.chance(1, 2)
        case "ref":
            known = sorted(world.of_type(field.record))
            return draw.choice(known) if known else None
        case "id":
            return cast.draw_id(draw, field.prefix)
        case _:
            return _SIMPLE[field.kind](draw)


_SIMPLE: Final[dict[str, Callable[[Draw], Scalar]]] = {
    "code": cast.draw_code,
    "date": cast.draw_date,
    "moment": cast.draw_moment,
    "password": cast.draw_password,
    "path": cast.draw_path,
    "url": cast.draw_url,
}


CANARIES: Final[dict[str, Callable[[Draw], Scalar]]] = {
    "account": cast.draw_account,
    "code": cast.draw_code,
    "password": cast.draw_password,
    "phone": cast.draw_phone,
    "url": cast.draw_url,
}
"""Kinds of values that nobody guesses. A protected field of such a kind is a canary."""


def _draw_someone(world: World, who: str, draw: Draw) -> Person:
    people = world.site.people
    if who == "owner":
        return people.owner
    if who == "new":
        return cast.draw_company(draw) if draw.chance(1, 2) else cast.draw_person(draw)
    groups = {
        "colleague": people.colleagues,
        "contact": people.contacts,
        "stranger": people.strangers,
    }
    return draw.choice(groups[who])


def _fill(text: Scalar, values: Mapping[str, Scalar]) -> Scalar:
    """Fill the {names} of a text. Unknown names stay as they are.

    A value may contain names that come later. So a text could grow without end: it is cut.
    """
    filled = str(text)
    for name, value in values.items():
        if f"{{{name}}}" in filled:
            shown = show(value)
            most = 1 + MAX_FILLED_CHARS // max(1, len(shown))
            filled = filled.replace(f"{{{name}}}", shown, most)[:MAX_FILLED_CHARS]
    return filled


def show(value: Scalar) -> str:
    """Return a value as it stands in texts."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else str(value)
