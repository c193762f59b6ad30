"""Send the messages of webhooks, in a thread of the worker."""

import threading
from typing import Final

import msgspec
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from tiltyard.service.actions.webhooks import Message, note_result, take_due
from tiltyard.service.outbound import AddressError, send

_PAUSE_SECONDS: Final = 2.0


class Messenger:
    """Sends what is due until it is stopped. Any number of workers can do so at the same time."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="messenger", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(15)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                close_old_connections()
                sent = deliver_due()
            except DatabaseError:
                connection.close()
                sent = 0
            if not sent:
                self._stop.wait(_PAUSE_SECONDS)
        connection.close()


def deliver_due() -> int:
    """Send the messages that are due, and note the answers. Return how many there were."""
    messages = take_due()
    for message in messages:
        note_result(message, _send(message))
    return len(messages)


def _send(message: Message) -> int | None:
    """Send a message. Return the status; None if there was no answer."""
    headers = {"Tiltyard-Event": message.kind, "Tiltyard-Delivery": str(message.delivery)}
    body = msgspec.json.encode(message.body)
    try:
        loopback = settings.WEBHOOKS_TO_LOOPBACK
        return send(message.url, message.secret, body, headers, loopback=loopback)
    except (AddressError, OSError):
        return None
