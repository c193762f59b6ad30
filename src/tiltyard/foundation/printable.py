"""Make hostile text safe to print.

Text from a submission, a model or a trace may contain terminal escape sequences, changes of writing
direction or invalid Unicode. Every room that prints such text, or puts it into an error message,
calls `printable`.
"""

from collections.abc import Container

_DOTS = "..."


def printable(
    text: object,
    *,
    keep: Container[str] = "",
    spell_out: Container[str] = "",
    replacement: str | None = None,
    limit: int | None = None,
) -> str:
    r"""Return `text` without unprintable characters.

    An unprintable character becomes its Python escape, such as `\x1b`, or `replacement` if one is
    given. Unprintable characters in `keep` stay as they are; printable characters in `spell_out`
    are treated as unprintable. Text with more than `limit` characters ends in `...`.
    """
    string = str(text)
    if limit is not None and len(string) > limit:
        string = string[: max(0, limit - len(_DOTS))] + _DOTS
    return "".join(
        char
        if char in keep or (char.isprintable() and char not in spell_out)
        else _escape(char)
        if replacement is None
        else replacement
        for char in string
    )


def _escape(char: str) -> str:
    escaped = char.encode("unicode_escape").decode("ascii")
    return escaped if escaped != char else f"\\x{ord(char):02x}"
