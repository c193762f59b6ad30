"""Send a signed message to an address that an organizer has typed.

The address may be hostile, or resolve to a machine of ours. So this module resolves the name once,
refuses every address that is not public, connects to the address that it has checked, follows no
redirect, uses no proxy, and waits a few seconds at most.
"""

import hmac
import ipaddress
import socket
import ssl
import threading
import time
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from typing import Final, Self
from urllib.parse import urlsplit

from msgspec import Struct

SIGNATURE: Final = "Tiltyard-Signature"
_TIMEOUT_SECONDS: Final = 5.0
_TOTAL_SECONDS: Final = 10.0
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressError(ValueError):
    """An address that is not called; the message says why."""


class Address(Struct, frozen=True):
    """The parts of a webhook's URL."""

    secure: bool
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, url: str, *, loopback: bool = False) -> Self:
        """Read a URL. With `loopback`, http is allowed."""
        try:
            found = urlsplit(url)
            port = found.port
        except ValueError:
            raise AddressError("This is not an address such as https://example.org/hook.") from None
        if any(ord(character) <= ord(" ") or ord(character) > ord("~") for character in url):
            raise AddressError("An address has neither spaces nor other special characters.")
        if found.scheme != "https" and not (loopback and found.scheme == "http"):
            raise AddressError("A webhook needs an address that begins with https://.")
        if not found.hostname or found.username is not None or found.password is not None:
            raise AddressError("A webhook needs a host, and neither a user nor a password.")
        secure = found.scheme == "https"
        query = f"?{found.query}" if found.query else ""
        made = cls(
            secure, found.hostname, port or (443 if secure else 80), f"{found.path or '/'}{query}"
        )
        made._check_literal(loopback=loopback)
        return made

    def _check_literal(self, *, loopback: bool) -> None:
        """Refuse at once what is written as a number. Names are checked when they are called."""
        try:
            written = ipaddress.ip_address(self.host)
        except ValueError:
            return
        if not is_public(written) and not (loopback and written.is_loopback):
            raise AddressError(f"{self.host} is not a public address.")

    def resolve(self, *, loopback: bool = False) -> str:
        """Return an address of the host. Raise unless every one of its addresses is public."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise AddressError(f"{self.host} has no address.") from None
        addresses = [str(one[4][0]) for one in found]
        for one in addresses:
            address = ipaddress.ip_address(one.partition("%")[0])
            if not is_public(address) and not (loopback and address.is_loopback):
                raise AddressError(f"{self.host} resolves to {one}, which is not public.")
        return addresses[0]


def is_public(address: Ip) -> bool:
    """Return whether an address is on the public internet, also through a translation."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address.is_site_local:
            return False
    return address.is_global and not address.is_multicast


def signature_of(secret: str, moment: int, body: bytes) -> str:
    """Return the value of the header: the time, and the HMAC-SHA256 of time, dot and body."""
    found = hmac.new(secret.encode(), f"{moment}.".encode() + body, sha256).hexdigest()
    return f"t={moment},v1={found}"


def is_signed(secret: str, header: str, body: bytes, now: float, tolerance: float = 300.0) -> bool:
    """Return whether a header is the signature of a body, made a moment ago."""
    moment = header.partition(",")[0].removeprefix("t=")
    if not moment.isdecimal() or abs(now - int(moment)) > tolerance:
        return False
    return hmac.compare_digest(signature_of(secret, int(moment), body), header)


class _Pinned(HTTPConnection):
    """A connection to an address that was checked, under the name of its host."""

    def __init__(self, address: Address, ip: str) -> None:
        super().__init__(address.host, address.port, timeout=_TIMEOUT_SECONDS)
        self._address, self._ip = address, ip

    def connect(self) -> None:
        self.sock = socket.create_connection((self._ip, self._address.port), _TIMEOUT_SECONDS)
        if self._address.secure:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self._address.host)

    def break_off(self) -> None:
        """End the connection from another thread."""
        if self.sock is not None:
            try:
                self.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return


def send(
    url: str, secret: str, body: bytes, headers: dict[str, str], *, loopback: bool = False
) -> int:
    """Send a message, and return the status of the answer. Raise `AddressError` or `OSError`."""
    address = Address.parse(url, loopback=loopback)
    connection = _Pinned(address, address.resolve(loopback=loopback))
    sent = {
        **headers,
        "Content-Type": "application/json",
        "User-Agent": "Tiltyard",
        SIGNATURE: signature_of(secret, int(time.time()), body),
    }
    # A receiver that answers one byte at a time must not hold up the others.
    watchdog = threading.Timer(_TOTAL_SECONDS, connection.break_off)
    watchdog.daemon = True
    watchdog.start()
    try:
        connection.request("POST", address.target, body, sent)
        return connection.getresponse().status
    except HTTPException as error:
        raise OSError(f"the answer is not HTTP: {error}") from None
    finally:
        watchdog.cancel()
        connection.close()
