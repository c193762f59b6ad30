"""The cast of a world: people, companies and everything that carries a name or a number.

One generator makes the names of users, colleagues, strangers and attackers, so that no name tells
who somebody is.
"""

from typing import Final

from msgspec import Struct

from tiltyard.foundation.draw import Draw

_STARTS: Final = (
    "Al", "An", "Ar", "Be", "Bo", "Ca", "Ce", "Da", "De", "El", "Em", "Fa", "Fe", "Ga", "Ha",
    "Il", "In", "Ja", "Jo", "Ka", "Ko", "La", "Le", "Li", "Lu", "Ma", "Me", "Mi", "Na", "Ne",
    "No", "Ol", "Or", "Pa", "Pe", "Ra", "Re", "Ro", "Sa", "Se", "Si", "So", "Ta", "Te", "To",
    "Ul", "Va", "Ve", "Vi", "Wa", "Ya", "Ze",
)  # fmt: skip
_MIDDLES: Final = (
    "b", "bel", "d", "dan", "den", "f", "gan", "go", "ka", "kin", "l", "la", "len", "lin", "m",
    "mar", "mi", "n", "na", "nor", "r", "ra", "ren", "ri", "ro", "s", "sa", "se", "ta", "ten",
    "th", "tor", "v", "va", "ver", "vi",
)  # fmt: skip
_ENDS: Final = (
    "a", "ah", "an", "ar", "as", "e", "ek", "el", "en", "er", "es", "i", "ia", "ik", "in",
    "is", "o", "on", "or", "os", "u", "us", "y",
)  # fmt: skip
_SURNAME_ENDS: Final = (
    "berg", "by", "dale", "er", "feld", "ford", "ham", "hart", "hoff", "ic", "ley", "man",
    "mark", "nen", "ov", "quist", "rup", "sen", "skov", "son", "stad", "sted", "ton", "vic",
    "wood",
)  # fmt: skip
_TRADES: Final = (
    "Bakery", "Books", "Builders", "Cleaning", "Consulting", "Dental", "Design", "Electric",
    "Energy", "Florists", "Freight", "Garage", "Gardens", "Insurance", "Labs", "Legal", "Logistics",
    "Media", "Music", "Optics", "Partners", "Plumbing", "Print", "Roofing", "Software", "Sports",
    "Studio", "Supplies", "Systems", "Tiles", "Timber", "Tours", "Travel", "Textiles", "Wines",
)  # fmt: skip
_ENDINGS: Final = ("com", "net", "org", "io", "eu", "co", "info")
_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz"
_DIGITS: Final = "0123456789"
_COUNTRIES: Final = ("AT", "BE", "CH", "DE", "DK", "ES", "FI", "FR", "IE", "IT", "NL", "NO", "PL")
_STREETS: Final = ("Lane", "Road", "Street", "Square", "Row", "Hill", "Court", "Way")


class Person(Struct, frozen=True):
    """A person or a company, with what others need to reach them."""

    name: str
    address: str
    account: str
    phone: str


def draw_word(draw: Draw) -> str:
    """Return an invented word of two or three syllables."""
    middle = "".join(draw.choice(_MIDDLES) for _ in range(1 + draw.below(2)))
    return draw.choice(_STARTS) + middle + draw.choice(_ENDS)


def draw_domain(draw: Draw) -> str:
    word = draw_word(draw).lower()
    if draw.chance(1, 3):
        word += f"-{draw_word(draw).lower()}"
    return f"{word}.{draw.choice(_ENDINGS)}"


def draw_person(draw: Draw, domain: str | None = None) -> Person:
    """Return a person. `domain` is that of their mail address."""
    first, last = draw_word(draw), draw_word(draw)[:-1] + draw.choice(_SURNAME_ENDS)
    style = draw.below(4)
    local = (f"{first}.{last}", f"{first[0]}{last}", first, f"{last}.{first}")[style].lower()
    host = draw_domain(draw) if domain is None else domain
    return Person(f"{first} {last}", f"{local}@{host}", draw_account(draw), draw_phone(draw))


def draw_company(draw: Draw) -> Person:
    name = f"{draw_word(draw)} {draw.choice(_TRADES)}"
    domain = draw_domain(draw) if draw.chance(1, 2) else f"{name.lower().replace(' ', '')}.com"
    local = draw.choice(("billing", "office", "hello", "info", "service", "accounts"))
    return Person(name, f"{local}@{domain}", draw_account(draw), draw_phone(draw))


def draw_account(draw: Draw) -> str:
    return draw.choice(_COUNTRIES) + draw.text(_DIGITS, 18)


def draw_phone(draw: Draw) -> str:
    return f"+{30 + draw.below(60)} {draw.text(_DIGITS, 3)} {draw.text(_DIGITS, 6)}"


def draw_url(draw: Draw) -> str:
    return f"https://{draw_domain(draw)}/{draw_word(draw).lower()}"


def draw_path(draw: Draw) -> str:
    name = "-".join(draw_word(draw).lower() for _ in range(1 + draw.below(2)))
    return f"{name}.{draw.choice(('txt', 'md', 'pdf', 'csv', 'docx'))}"


def draw_password(draw: Draw) -> str:
    return f"{draw_word(draw)}-{draw.text(_DIGITS, 2)}-{draw_word(draw).lower()}"


def draw_code(draw: Draw) -> str:
    return draw.text(_DIGITS, 6)


def draw_id(draw: Draw, prefix: str) -> str:
    """Return an identifier. Its form depends on the prefix alone, never on who made the record."""
    return f"{prefix or 'id'}-{draw.text(_LETTERS + _DIGITS, 6)}"


def draw_date(draw: Draw) -> str:
    return f"2026-{1 + draw.below(12):02d}-{1 + draw.below(28):02d}"


def draw_moment(draw: Draw) -> str:
    return f"{draw_date(draw)}T{7 + draw.below(13):02d}:{draw.choice(('00', '15', '30', '45'))}"


def draw_amount(draw: Draw, low: int, high: int) -> float:
    return (low * 100 + draw.below((high - low) * 100 + 1)) / 100


def draw_street(draw: Draw) -> str:
    return f"{1 + draw.below(180)} {draw_word(draw)} {draw.choice(_STREETS)}"
