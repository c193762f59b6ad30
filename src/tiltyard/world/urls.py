"""The only parser of URLs and mail addresses, and the test whether one is internal.

This module parses a URL as a client would and never matches it as text: it reads user-info, ports,
trailing dots, percent signs, backslashes and all spellings of an IP address before it judges the
host. Every host that is not known to be internal is external.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

MAX_URL_CHARS: Final = 4096
MAX_ADDRESS_CHARS: Final = 320

_NAMED: Final = re.compile(r"""(?:"[^"<>]*"\s*|[^@<>,;"]*)<([^<>]*)>""")
"""A single address with a display name: `Dana <dana@corp.example>`."""
_NUMBERS: Final = (
    (re.compile("0x([0-9a-f]{0,16})"), 16),
    (re.compile("0([0-7]{0,24})"), 8),
    (re.compile("([1-9][0-9]{0,16})"), 10),
)
_DISPUTED: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Clients disagree about these characters, so a URL that has one names no definite host."""
_AUTHORITY: Final = re.compile(r"(?:[^@]*@)*(?:\[[0-9A-Fa-f:.]+(?:%25?\w+)?\]|[^\[\]:@]+)(?::\d*)?")
_INTERNAL_NETWORKS: Final = (
    IPv4Network("127.0.0.0/8"),
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv6Network("::1/128"),
    IPv6Network("fc00::/7"),
)


class Url(Struct, frozen=True, gc=False):
    """An HTTP URL as a client understands it."""

    scheme: str
    host: str
    """Lower case, without user-info, port or trailing dot; an IP address in canonical form."""
    port: int
    path: str
    query: str
    address: bool
    """True if the host is an IP address, in any spelling."""


def read_url(string: str) -> Url | None:
    """Parse an http or https URL; None for anything a client would refuse."""
    return _read_url(string.strip()) if len(string) <= MAX_URL_CHARS else None


@lru_cache(maxsize=4096)
def _read_url(string: str) -> Url | None:
    if _DISPUTED.search(string):
        return None
    try:
        split = urlsplit(string)
        if _AUTHORITY.fullmatch(split.netloc) is None:
            return None
        port = split.port
        name = unquote(split.hostname or "", errors="strict").rstrip(".").lower()
    except ValueError:
        return None
    if split.scheme not in ("http", "https") or not name:
        return None
    ip = _read_ip(name)
    host = name if ip is None else str(ip)
    if ip is None and not _is_hostname(host):
        return None
    default_port = 443 if split.scheme == "https" else 80
    return Url(
        split.scheme,
        host,
        default_port if port is None else port,
        split.path or "/",
        split.query,
        ip is not None,
    )


def is_internal_host(url: Url, internal_domains: frozenset[str]) -> bool:
    """Tell whether the host of `url` belongs to the internal network."""
    if url.address:
        ip = ip_address(url.host)
        return any(ip in network for network in _INTERNAL_NETWORKS)
    return url.host == "localhost" or in_domains(url.host, internal_domains)


def in_domains(host: str, domains: frozenset[str]) -> bool:
    """Tell whether a host is one of the domains or a subdomain of one."""
    while host:
        if host in domains:
            return True
        _, _, host = host.partition(".")
    return False


def read_address(string: str) -> str | None:
    """Return a mail address in canonical form (`Dana <dana@corp.example>` too), or None."""
    return _read_address(string.strip()) if len(string) <= MAX_ADDRESS_CHARS else None


@lru_cache(maxsize=4096)
def _read_address(string: str) -> str | None:
    named = _NAMED.fullmatch(string)
    if named is not None:
        string = named[1].strip()
    local, at, domain = string.rpartition("@")
    domain = domain.rstrip(".").lower()
    if not at or not local or not _is_hostname(domain):
        return None
    if any(char.isspace() or char in '@<>,;:"()[]\\\x7f' or ord(char) < 33 for char in local):
        return None
    return f"{local.lower()}@{domain}"


def _is_hostname(name: str) -> bool:
    return all(
        0 < len(label) <= 63 and all(_is_host_char(char) for char in label)
        for label in name.split(".")
    )


def _is_host_char(char: str) -> bool:
    """Check ASCII characters only: a name with others is external in any case."""
    return char.isalnum() or char in "-_" if char.isascii() else char > "\xa0"


def _read_ip(name: str) -> IPv4Address | IPv6Address | None:
    """Read an IP address as the C library would: decimal, octal, hex and shortened forms."""
    if ":" in name:
        try:
            six = IPv6Address(name.partition("%")[0])
        except ValueError:
            return None
        return six.ipv4_mapped or six
    numbers: list[int] = []
    for part in name.split("."):
        number = _read_number(part)
        if number is None:
            return None
        numbers.append(number)
    *leading, last = numbers
    if len(numbers) > 4 or any(n > 255 for n in leading) or last >= 256 ** (5 - len(numbers)):
        return None
    value = last
    for position, number in enumerate(leading):
        value += number << 8 * (3 - position)
    return IPv4Address(value)


def _read_number(part: str) -> int | None:
    """Read digits only: `int` would also accept signs, spaces and underscores."""
    for pattern, base in _NUMBERS:
        found = pattern.fullmatch(part)
        if found is not None:
            return int(found[1] or "0", base)
    return None
