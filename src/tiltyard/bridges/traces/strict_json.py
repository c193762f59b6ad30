"""Read JSON that strangers wrote, without a second meaning.

A value that two parsers would read differently is an error: a key that occurs twice, NaN, text that
is not Unicode.
"""

import json
from typing import Any, Final

from tiltyard.bridges.traces.errors import BadRunError
from tiltyard.foundation.strict_json import UnclearError, strict_decoder

MAX_DIGITS: Final = 400
"""A longer number is no measurement of anything, and slow to read."""
_HALF: Final = "\\ud"
"""How an escaped half of a surrogate pair begins, in lower case."""


def parse_json(raw: bytes | bytearray | str, what: str = "the line") -> Any:
    """Return the value of a JSON text. `what` names the text in errors."""
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        value = _DECODER.decode(text)
    except UnicodeDecodeError:
        raise BadRunError(f"{what} is not UTF-8") from None
    except UnclearError as error:
        raise BadRunError(str(error)) from None
    except json.JSONDecodeError as error:
        raise BadRunError(f"{what} is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise BadRunError(f"{what} is nested too deeply") from None
    if _HALF in text.lower():
        _check_unicode(value, what)
    return value


def _check_unicode(value: Any, what: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadRunError(f"{what} contains half of a surrogate pair") from None


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise UnclearError(f"a number has {len(digits):,} digits")
    return int(digits)


_DECODER: Final = strict_decoder(_integer)
