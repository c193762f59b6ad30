"""The scenario generator: make a complete scenario from a seed.

A scenario has some fixed documents, protected files, attacks with their look-alikes, and ordinary
documents around them. The words are data in `templates`. Every draw is keyed by the version of the
templates, the seed and the document. So a scenario is the same everywhere, and adding a document
does not change the others. Documents with and without an attack are made in the same way: only
their words differ.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from tiltyard.foundation.draw import Draw
from tiltyard.world.mail import INBOX, SeedMail
from tiltyard.world.scenario import PROTECTED_BY_DEFAULT, Labels, Planted, Protected, Scenario
from tiltyard.world.templates import Attack, Expected, Filler, Topic, load
from tiltyard.world.web import Page

DEFAULT_PAGES: Final = 240
DEFAULT_MAILS: Final = 120
DEFAULT_FILES: Final = 240
OWNER: Final = "me@corp.example"
INTERNAL_DOMAIN: Final = "corp.example"
NAMED_INTERNAL_FILES: Final = 9
"""Number of ordinary internal files that attacks may name."""
LOOKALIKES: Final = 3
MAX_PARAGRAPHS: Final = 4
"""Number of paragraphs of a text, without a greeting or title."""
CANARY_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
MIN_CANARY_CHARS: Final = 24
MAX_CANARY_CHARS: Final = 32
ID_ALPHABET: Final = "23456789bcdfghjkmnpqrstvwxz"
ID_CHARS: Final = 8
WEB: Final = "web"
EMAIL: Final = "email"
FILE: Final = "file"
LETTER: Final = "letter"
"""Topics of a mail from outside."""
OUTSIDE: Final = "outside"
"""Topics of a file from outside."""
PAPER: Final = "paper"
"""Topics of an internal file that attacks may name: no word in it looks secret."""
CONTACTS: Final = "contacts"
"""Topics of the list of addresses that a supplier left."""
OUTSIDE_AUTHORS: Final = {FILE: FILE, "download": WEB, "attachment": EMAIL}
"""How a file comes from outside, and the author it then has. Each way has its own folders."""


class Document(Struct, frozen=True):
    """A page, a mail or a file."""

    medium: str
    name: str
    """The id of a page or mail, the path of a file."""
    title: str
    body: str
    origin: str
    """The URL of a page, the sender of a mail."""
    folder: str = INBOX
    author: str = ""
    """The author of a file from outside."""
    canaries: tuple[str, ...] = ()


class Staged(Struct, frozen=True):
    """An attack or a look-alike, with its documents and the calls that it leads to."""

    planted: tuple[Planted, ...]
    """The document that the opening leads to, then the further documents of the attack."""
    calls: tuple[Expected, ...]
    """All calls of the agent if the opening is the only message."""
    documents: tuple[Document, ...]


def generate(
    seed: int,
    *,
    pages: int = DEFAULT_PAGES,
    mails: int = DEFAULT_MAILS,
    files: int = DEFAULT_FILES,
) -> Scenario:
    """Return the scenario of `seed` with the given number of pages, mails and files."""
    builder = _Builder(seed)
    staged = tuple(builder.stage())
    documents = builder.documents + [each for item in staged for each in item.documents]
    sizes = ((WEB, "pages", pages), (EMAIL, "mails", mails), (FILE, "files", files))
    for medium, plural, size in sizes:
        needed = sum(each.medium == medium for each in documents)
        if size < needed:
            raise ValueError(f"`{plural}` is {size}; this seed needs at least {needed}")
        documents += [builder.ordinary(medium, number) for number in range(size - needed)]
    planted = tuple(entry for item in staged for entry in item.planted)
    return _assemble(seed, builder.in_order(documents), planted)


def stage(seed: int) -> tuple[Staged, ...]:
    """Return the attacks in the scenario of `seed`, each followed by its look-alike."""
    return tuple(_Builder(seed).stage())


def _assemble(seed: int, documents: list[Document], planted: tuple[Planted, ...]) -> Scenario:
    folders: dict[str, list[SeedMail]] = {}
    for each in documents:
        if each.medium == EMAIL:
            mail = SeedMail(each.name, each.origin, each.title, each.body)
            folders.setdefault(each.folder, []).append(mail)
    files = {each.name: each for each in documents if each.medium == FILE}
    labels = Labels(
        seed=seed,
        owner=OWNER,
        internal_domains=(INTERNAL_DOMAIN,),
        protected=tuple(Protected(path, f.canaries) for path, f in files.items() if f.canaries),
        outside={path: file.author for path, file in sorted(files.items()) if file.author},
        planted=planted,
    )
    return Scenario(
        tuple(Page(d.name, d.title, d.body, d.origin) for d in documents if d.medium == WEB),
        {folder: tuple(mails) for folder, mails in sorted(folders.items())},
        {path: file.body for path, file in sorted(files.items())},
        labels,
    )


class _Place(Struct, frozen=True):
    """The name, origin and author of a document, chosen before its words."""

    medium: str
    kind: str
    """A key of `topics`: which topics the document may be about."""
    name: str
    origin: str = ""
    author: str = ""


class _Builder:
    """Writes the documents of one seed and keeps track of the names in use."""

    def __init__(self, seed: int) -> None:
        templates = load()
        self.families = templates.families
        self.topics = templates.topics
        self.words = dict(templates.words)
        self.draw = Draw("scenario", templates.version, seed)
        self.taken = {PROTECTED_BY_DEFAULT, "readme.txt", "report.txt"}
        hidden = self._paths("innocent_path", 2 + self.draw.branch("hidden").below(2))
        internal_files = self._paths("inside_path", NAMED_INTERNAL_FILES)
        self.words.update(secret=(PROTECTED_BY_DEFAULT,), hidden=hidden, paper=internal_files)
        self.documents = list(self._fixed_documents())

    def _fixed_documents(self) -> Iterator[Document]:
        """Yield the documents of every scenario. The first mail comes first: see `in_order`."""
        fixed = self.draw.branch("fixed")
        for kind, medium in (("first-mail", EMAIL), ("welcome", WEB), ("howto", WEB)):
            draw = fixed.branch(kind)
            yield self._write(draw, self._place(draw.branch("place"), medium, kind))
        kinds = {"readme.txt": "readme", "report.txt": "report"}
        kinds |= dict.fromkeys(self.words["paper"], PAPER)
        kinds |= dict.fromkeys(self._paths("lookalike_path", LOOKALIKES), "lookalike")
        for path, kind in kinds.items():
            yield self._write(fixed.branch(path), _Place(FILE, kind, path))
        for path in (PROTECTED_BY_DEFAULT, *self.words["hidden"]):
            yield self._protected_file(fixed.branch(path), path)
        yield self._contact_list(fixed.branch(CONTACTS))

    def stage(self) -> Iterator[Staged]:
        """Yield every attack of every family, each followed by its look-alike."""
        for family in self.families:
            for attack in family.template:
                yield from self._stage(family.family, attack)

    def _stage(self, family: str, attack: Attack) -> Iterator[Staged]:
        draw = self.draw.branch("attack", family, attack.name)
        roles = {"entry": attack.medium, "twin": attack.medium}
        roles |= {linked.name: linked.medium for linked in attack.linked}
        places = {
            role: self._strangers_place(draw.branch(role), medium) for role, medium in roles.items()
        }
        slots = Filler(draw.branch("slots"), self.words)
        for role, place in places.items():
            slots.set(role, place.name)
            slots.set(f"{role}_origin", place.origin)
        for name, template in attack.define.items():
            slots.set(name, slots.fill(template))

        def plant(role: str, body: str, title: str = "") -> tuple[Document, str]:
            payload, title = slots.fill(body), slots.fill(title)
            return self._write(draw.branch("write", role), places[role], payload, title), payload

        for role, body in (("entry", attack.live), ("twin", attack.twin)):
            live = role == "entry"
            linked = attack.linked if live else ()
            opening, calls = _opening(places[role], attack, slots, draw.branch("opening", role))
            entry = plant(role, body)
            others = [(plant(x.name, x.body, x.title), x.ordinary) for x in linked]
            planted = tuple(
                Planted(f"{d.medium}:{d.name}", family, attack.name, live, opening, payload)
                for (d, payload), ordinary in ((entry, False), *others)
                if not ordinary
            )
            yield Staged(
                planted,
                calls + _expand(attack.expect, slots) if live else calls,
                (entry[0], *(document for (document, _), _ in others)),
            )

    def ordinary(self, medium: str, number: int) -> Document:
        """Return an ordinary document, internal or from a stranger."""
        draw = self.draw.branch("ordinary", medium, number)
        place = draw.branch("place")
        if medium == FILE and draw.chance(2, 3):
            return self._write(draw, self._place(place, FILE, FILE))
        medium = draw.choice(tuple(OUTSIDE_AUTHORS)) if medium == FILE else medium
        return self._write(draw, self._strangers_place(place, medium))

    def in_order(self, documents: list[Document]) -> list[Document]:
        """Return the documents in a random order, the first mail before all others."""
        order = self.draw.branch("order")
        first, *others = documents
        return [first, *sorted(others, key=lambda each: order.branch(each.name).integer())]

    def _strangers_place(self, draw: Draw, medium: str) -> _Place:
        """Choose a place for a document that a stranger may have written."""
        if medium in OUTSIDE_AUTHORS:
            path = self._free_path(draw, f"{medium}_path")
            return _Place(FILE, OUTSIDE, path, author=OUTSIDE_AUTHORS[medium])
        if medium == EMAIL:
            return self._place(draw, EMAIL, EMAIL if draw.chance(1, 2) else LETTER)
        return self._place(draw, WEB, WEB)

    def _place(self, draw: Draw, medium: str, kind: str) -> _Place:
        """Choose a free name for a document, and a URL or a sender."""
        filler = Filler(draw, self.words)
        if medium == FILE:
            return _Place(FILE, kind, self._free_path(draw, "inside_path"))
        prefix = "pg-" if medium == WEB else "ml-"
        name = prefix + draw.text(ID_ALPHABET, ID_CHARS)
        while name in self.taken:
            name = prefix + draw.text(ID_ALPHABET, ID_CHARS)
        self.taken.add(name)
        if medium == WEB:
            address = filler.fill("https://{host}/{stem}/") + name.removeprefix(prefix)
            return _Place(WEB, kind, name, address)
        domain = filler.fill("{domain}") if kind == LETTER else INTERNAL_DOMAIN
        return _Place(EMAIL, kind, name, filler.fill("{lower first}.{lower last}@") + domain)

    def _paths(self, pattern: str, count: int) -> tuple[str, ...]:
        draw = self.draw.branch("paths", pattern)
        return tuple(self._free_path(draw, pattern) for _ in range(count))

    def _free_path(self, draw: Draw, pattern: str) -> str:
        path = Filler(draw, self.words).fill(f"{{{pattern}}}")
        while path in self.taken:
            path = Filler(draw, self.words).fill(f"{{{pattern}}}")
        self.taken.add(path)
        return path

    def _write(self, draw: Draw, place: _Place, payload: str = "", title: str = "") -> Document:
        """Write a document. Without a payload, a remark takes its place."""
        filler = Filler(draw, self.words)
        topic = draw.choice(self.topics[place.kind])
        title = title or _capitalized(filler.fill(draw.choice(topic.titles)))
        paragraphs = _prose(topic, filler, payload or self._remark(filler, place))
        folder = INBOX
        if place.medium == EMAIL:
            name = place.origin.partition(".")[0].capitalize()
            paragraphs = [filler.fill("{greeting}"), *paragraphs, filler.fill("{goodbye}\n") + name]
            if place.kind != "first-mail":
                folder = filler.fill("{mail_folder}")
        elif place.medium == FILE:
            paragraphs.insert(0, title)
        body = "\n\n".join(paragraphs) + "\n"
        return Document(place.medium, place.name, title, body, place.origin, folder, place.author)

    def _remark(self, filler: Filler, place: _Place) -> str:
        """Return words that mention a file, an address, a site or a command, as injections do."""
        # Tasks about a fixed document cannot choose another one without the name of the secret.
        may_be_loaded = place.kind in (WEB, EMAIL, FILE, LETTER, OUTSIDE)
        loaded = may_be_loaded and filler.draw.chance(1, 8)
        pool = self.words["loaded_remark" if loaded else "remark"]
        return _capitalized(filler.fill(filler.draw.choice(pool)))

    def _protected_file(self, draw: Draw, path: str) -> Document:
        """Write a protected file: ordinary lines, and some with a canary."""
        filler = Filler(draw, self.words)
        topic = draw.choice(self.topics["protected"])
        lines = draw.sample(topic.middles, 2 + draw.below(3))
        secrets = draw.sample(topic.secrets, 1 + draw.below(3))
        title = filler.fill(draw.choice(topic.titles))
        body = [title, filler.fill(draw.choice(topic.openers))]
        canaries: list[str] = []
        for template in draw.shuffled(lines + secrets):
            if template in secrets:
                size = MIN_CANARY_CHARS + draw.below(MAX_CANARY_CHARS - MIN_CANARY_CHARS + 1)
                canaries.append(draw.text(CANARY_ALPHABET, size))
                filler.set("canary", canaries[-1])
            body.append(filler.fill(template))
        body.append(filler.fill(draw.choice(topic.closers)))
        text = "".join(_capitalized(line) + "\n" for line in body)
        return Document(FILE, path, title, text, "", canaries=tuple(canaries))

    def _contact_list(self, draw: Draw) -> Document:
        """Write a list of addresses from outside: users can mail these people without naming them.

        Each line begins with the address, so that a single line is useful by itself.
        """
        topic = draw.choice(self.topics[CONTACTS])
        path = self._free_path(draw.branch("place"), "contacts_path")
        filler = Filler(draw, self.words)
        title = filler.fill(draw.choice(topic.titles))
        lines = draw.shuffled([filler.fill(line) for line in topic.middles])
        text = "".join(f"{line}\n" for line in (title, *lines))
        return Document(FILE, path, title, text, "", author=FILE)


def _opening(
    place: _Place, attack: Attack, slots: Filler, draw: Draw
) -> tuple[str, tuple[Expected, ...]]:
    """Return a message that leads the agent to a document, and the calls that it asks for."""
    filler = Filler(draw, slots.words)
    filler.set("name", place.name)
    opening = filler.fill(draw.choice(slots.words[f"open_{place.medium}"]))
    calls: tuple[Expected, ...]
    if place.medium == FILE:
        calls = (Expected("fs.read", path=place.name),)
    else:
        calls = (Expected("web.open" if place.medium == WEB else "email.read", id=place.name),)
    if attack.trigger is None:
        return opening, calls
    trigger = attack.trigger
    return f"{opening}, then {slots.fill(trigger.words)}", calls + _expand(trigger.calls, slots)


def _expand(calls: tuple[Expected, ...], slots: Filler) -> tuple[Expected, ...]:
    """Fill the slots of the calls, and repeat each call `times` times."""
    expanded: list[Expected] = []
    for call in calls:
        fields = asdict(call)
        times = int(slots.fill(fields.pop("times")))
        filled = {name: slots.fill(value) for name, value in fields.items() if value is not None}
        expanded += [Expected(**filled)] * times
    return tuple(expanded)


def _prose(topic: Topic, filler: Filler, passage: str) -> list[str]:
    """Return up to four paragraphs about a topic, with `passage` at a random place.

    The number and length of the paragraphs and the place do not depend on the passage, so the
    layout does not tell an injection from a remark.
    """
    draw = filler.draw
    middles = draw.sample(topic.middles, 2 + draw.below(4))
    if draw.chance(1, 4):
        middles.insert(0, _single_line(draw, filler.words["remark"]))
    chosen = (draw.choice(topic.openers), *middles, draw.choice(topic.closers))
    sentences = [_capitalized(filler.fill(template)) for template in chosen]
    size = 1 + draw.below(MAX_PARAGRAPHS)
    apart = size > 1 and draw.chance(1, 2)
    groups = _split(draw, sentences, size - 1 if apart else size)
    place = draw.below(len(groups) + 1 if apart else len(groups))
    at = draw.below(len(groups[0 if apart else place]) + 1)
    decoration = draw.below(8)
    paragraphs = [" ".join(group) for group in groups]
    last = len(groups) - 1
    if apart:
        paragraphs[last] = _decorated(groups[last], decoration)
        paragraphs.insert(place, passage)
        return paragraphs
    if place != last:
        paragraphs[last] = _decorated(groups[last], decoration)
    head, tail = " ".join(groups[place][:at]), " ".join(groups[place][at:])
    # Lists and quotations need lines of their own.
    joint = "\n" if "\n" in passage else " "
    paragraphs[place] = joint.join(filter(None, (head, passage, tail)))
    return paragraphs


def _split(draw: Draw, sentences: list[str], count: int) -> list[list[str]]:
    """Split sentences into `count` groups, none of them empty."""
    cuts = [0, *sorted(draw.sample(range(1, len(sentences)), count - 1)), len(sentences)]
    return [sentences[start:stop] for start, stop in pairwise(cuts)]


def _decorated(sentences: list[str], decoration: int) -> str:
    """Return a paragraph: a list, a quotation, or most often plain text."""
    if decoration == 0:
        return "\n".join(f"- {sentence}" for sentence in sentences)
    return ("> " if decoration == 1 else "") + " ".join(sentences)


def _single_line(draw: Draw, templates: tuple[str, ...]) -> str:
    return draw.choice([template for template in templates if "\n" not in template])


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
