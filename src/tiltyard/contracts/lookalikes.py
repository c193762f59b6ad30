"""Names that look alike: a tool must not pass for another one."""
# ruff: noqa: RUF001 - ambiguous letters are what this module is about

import unicodedata
from typing import Final

_CAPITALS: Final = str.maketrans(
    # Cyrillic and Greek capitals, whose small letters look like something else
    "АВЕКМНОРСТУХЅІЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "ABEKMHOPCTYXSIJABEZHIKMNOPTYX",
)
_ALIKE: Final = str.maketrans(
    # Cyrillic, Greek, Armenian, rare Latin letters, and digits that stand for letters
    "авекмнорстухѕіјԁԛԝһѵӏёїгпьαβγεηικνορστυχωϲμօոսհցɑɡıȷłøđħŧƒɩʀꜱ012345789|$@!i",
    "abekmhopctyxsijdqwhvleirnbabyenikvopotuxwcuonuhgagijlodhtfirsolzeastbglsall",
)
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u3164\uffa0\u2800") | {
    chr(code) for code in range(0xFE00, 0xFE10)
}
"""Letters and marks without a shape of their own."""
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")
"""Alphabets with letters that look like letters of another one."""


def skeleton(name: str) -> str:
    """Return the same text for names that a reader can confuse.

    Case, separators, accents, forms of a letter, and digits in place of letters make no difference.
    """
    capitals = unicodedata.normalize("NFKC", name).translate(_CAPITALS)
    plain = unicodedata.normalize("NFKD", capitals.casefold())
    letters = "".join(char for char in plain.translate(_ALIKE) if char.isalnum())
    # The second time for letters that only the first translation has produced.
    return letters.translate(_ALIKE).replace("rn", "m").replace("vv", "w") or name


def hidden_character(name: str) -> str:
    """Return the first character of a name that a reader cannot see, or an empty string."""
    for char in name:
        if char in _FILLERS or unicodedata.category(char) in _UNSEEN:
            return char
    return ""


def mixed_scripts(name: str) -> list[str]:
    """Return the alphabets of a name, if it mixes letters that look alike."""
    found = dict.fromkeys(
        script
        for char in unicodedata.normalize("NFKC", name)
        if char.isalpha()
        for script in [unicodedata.name(char, "").partition(" ")[0]]
        if script in _SCRIPTS
    )
    return [script.capitalize() for script in found] if len(found) > 1 else []
