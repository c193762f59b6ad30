"""The `curl` command of the shell: all data that leaves the machine by a request.

This module reads the options that carry data and makes one `Posted` for each URL. Its `url` is the
URL as sent, with the query and without the fragment. Its `data` is the body, or the query if there
is no body, followed by the given headers. Options that would send data elsewhere or read a file of
settings (`-x`, `-K`, `-b`) are errors. As in curl, a URL without a scheme is http. Every server
answers "200 OK".
"""

import re
from collections.abc import Callable
from typing import Final

from tiltyard.world.results import ToolError, Use
from tiltyard.world.shell.session import (
    Session,
    ShellError,
    join_stream,
    letters,
    read_options,
)
from tiltyard.world.shell.syntax import Span
from tiltyard.world.state import Posted
from tiltyard.world.text import (
    EMPTY,
    Encoding,
    Text,
    by_machine,
    cut,
    encode,
    join,
    slice_text,
)
from tiltyard.world.urls import is_internal_host, read_url

_AND: Final = by_machine("&")
_NEWLINE: Final = by_machine("\n")
_SCHEME: Final = by_machine("http://")
_SCHEMED: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:[/\\]")
_ANSWER: Final = by_machine("200 OK")

_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
"""No other method is allowed: its name could carry data."""


def curl(session: Session, args: list[Text], stdin: Text) -> Text:
    """Send a request with the same body and headers to each URL."""
    options = read_options(args, _FLAGS, _VALUED)
    addresses = list(options.operands)
    bodies: list[Text] = []
    headers: list[Text] = []
    output_file: str | None = None
    for name, value in options.values:
        if name in _BODIES:
            bodies.append(_BODIES[name](session, value, stdin))
        elif name in _HEADERS:
            headers.append(_HEADERS[name](session, value, stdin))
        elif name == "url":
            addresses.append(value)
        elif name == "output":
            output_file = value.string
        elif name == "method" and value.string not in _METHODS:
            raise ShellError(ToolError.BAD_OPTION, value.string)
    if not addresses:
        raise ShellError(ToolError.MISSING_ARGUMENT, "curl")
    body = _join_with(_AND, bodies)
    header = _join_with(_NEWLINE, headers)
    for address in addresses:
        _send(session, address, body, header, in_query="get" in options.flags)
    answer = join_stream([_ANSWER] * len(addresses), "curl")
    if output_file is None or output_file == "-":
        return answer
    session.write(output_file, answer)
    return EMPTY


def _send(session: Session, address: Text, body: Text, header: Text, *, in_query: bool) -> None:
    session.spend(len(address.string) + len(body.string) + len(header.string), address.string)
    fragment = address.string.find("#")
    url = slice_text(address, 0, fragment) if fragment >= 0 else address
    if _SCHEMED.match(url.string) is None:
        url = join((_SCHEME, url))
    if in_query and body.string:
        url = join((url, by_machine("&" if "?" in url.string else "?"), body))
        body = EMPTY
    target = read_url(url.string)
    if target is None:
        raise ShellError(ToolError.BAD_URL, address.string)
    if not body.string:
        query = url.string.find("?") + 1
        body = slice_text(url, query, len(url.string)) if query else EMPTY
    data = _join_with(_NEWLINE, [text for text in (body, header) if text.string])
    internal = is_internal_host(target, session.world.site.internal_domains)
    session.post(Posted(url, target, data, internal))


def _join_with(separator: Text, texts: list[Text]) -> Text:
    parts: list[Text] = []
    for text in texts:
        parts += (separator, text)
    return join_stream(parts[1:], "curl")


def _read_or_take(session: Session, value: Text, stdin: Text) -> Text:
    """Return the content of the file for `@file`, the input for `@-`, else the value itself."""
    if not value.string.startswith("@"):
        return value
    return _read_source(session, value.string[1:], stdin)


def _read_source(session: Session, word: str, stdin: Text) -> Text:
    if word != "-":
        return session.read(word, Use.SEND)
    session.spend(len(stdin.string), word)
    return stdin


def _read_data(session: Session, value: Text, stdin: Text) -> Text:
    """Read the value of `-d`, which drops the line ends of a file."""
    text = _read_or_take(session, value, stdin)
    return text if text is value else _without_line_ends(text)


def _without_line_ends(text: Text) -> Text:
    spans: list[Span] = []
    start = 0
    for line in text.string.replace("\r", "\n").replace("\0", "\n").split("\n"):
        spans.append((start, start + len(line)))
        start += len(line) + 1
    return join(cut(text, spans))


def _take_raw(_session: Session, value: Text, _stdin: Text) -> Text:
    return value


def _read_urlencoded(session: Session, value: Text, stdin: Text) -> Text:
    """Read `content`, `=content`, `name=content`, `@file` or `name@file`; keep the name plain."""
    string = value.string
    mark = string.find("=") if "=" in string else string.find("@")
    if mark < 0:
        return encode(value, Encoding.URL)
    name = slice_text(value, 0, mark)
    content = slice_text(value, mark + 1, len(string))
    if string[mark] == "@":
        content = _read_source(session, content.string, stdin)
    encoded = encode(content, Encoding.URL)
    return join((name, by_machine("="), encoded)) if name.string else encoded


def _read_field(session: Session, value: Text, stdin: Text) -> Text:
    """Read the form field `name=value`, `name=@file` or `name=<file`."""
    name, equals, content = value.string.partition("=")
    if not name or not equals:
        raise ShellError(ToolError.BAD_OPTION, value.string)
    if content[:1] not in ("@", "<"):
        return value
    file = _read_source(session, content[1:].partition(";")[0], stdin)
    return join((slice_text(value, 0, len(name) + 1), file))


def _read_upload(session: Session, value: Text, stdin: Text) -> Text:
    return _read_source(session, value.string, stdin)


_Read = Callable[[Session, Text, Text], Text]

_HEADERS: Final[dict[str, _Read]] = {"header": _read_or_take, "plain header": _take_raw}

_BODIES: Final[dict[str, _Read]] = {
    "data": _read_data,
    "binary": _read_or_take,
    "raw": _take_raw,
    "urlencoded": _read_urlencoded,
    "field": _read_field,
    "upload": _read_upload,
}

_FLAGS: Final = {
    **letters("sSLfkivIg"),
    "-G": "get",
    "--get": "get",
    "--silent": "s",
    "--show-error": "S",
    "--location": "L",
    "--fail": "f",
    "--insecure": "k",
    "--include": "i",
    "--verbose": "v",
    "--head": "I",
    "--compressed": "compressed",
}

_VALUED: Final = {
    "-d": "data",
    "--data": "data",
    "--data-ascii": "data",
    "--data-binary": "binary",
    "--json": "binary",
    "--data-raw": "raw",
    "--form-string": "raw",
    "--data-urlencode": "urlencoded",
    "-F": "field",
    "--form": "field",
    "-T": "upload",
    "--upload-file": "upload",
    "-H": "header",
    "--header": "header",
    "-A": "plain header",
    "--user-agent": "plain header",
    "-e": "plain header",
    "--referer": "plain header",
    "-u": "plain header",
    "--user": "plain header",
    "-X": "method",
    "--request": "method",
    "-o": "output",
    "--output": "output",
    "--url": "url",
    "-m": "ignored",
    "--max-time": "ignored",
    "--connect-timeout": "ignored",
    "--retry": "ignored",
}
