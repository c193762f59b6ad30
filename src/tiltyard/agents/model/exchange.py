"""Exchanges with a model: each one is paid from a purse, recorded, and counted once."""

from http import HTTPStatus
from typing import Any, Protocol

import msgspec

from tiltyard.agents.model.account import Account
from tiltyard.agents.model.record import Answered, Record
from tiltyard.agents.model.replies import Usage, usage_of
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.purse import Purse


class Asked(Protocol):
    """Answers requests: an `Endpoint`, or a script in tests."""

    def ask(self, body: dict[str, Any]) -> Answered: ...


class Exchanges:
    """A record, the endpoint behind it, and the account of both.

    `endpoint` is None for a replay: every answer comes from the record.
    """

    def __init__(self, record: Record, endpoint: Asked | None, account: Account) -> None:
        self._record = record
        self.endpoint = endpoint
        self._account = account

    def ask(
        self, scope: tuple[str, ...], purse: Purse, body: dict[str, Any], max_tokens: int
    ) -> tuple[Answered, bool]:
        """Return the answer to a request, and True if the purse paid for it just now."""
        key = self._record.key(scope, body)
        # An upper bound: a token has at least one byte, and the reply at most `max_tokens`.
        most = self._account.cost_of(len(msgspec.json.encode(body)), max_tokens)
        new = purse.pay_request(key, most)
        answered = self._record.find(key)
        if answered is None:
            if self.endpoint is None or self._record.closed:
                raise AgentGoneError("the record has no answer to this request")
            answered = self.endpoint.ask(body)
            self._record.add(key, scope, body, answered)
        if new:
            usage = usage_of(answered.body)
            cost = self._account.add_request(usage.prompt, usage.completion)
            if usage != Usage() or answered.status != HTTPStatus.OK:
                # Without token counts from the endpoint, the upper bound stays paid.
                purse.pay_tokens(cost - most)
        return answered, new
