"""What a match with a model has spent, and what it may still spend.

A purse bounds one part of a match: the attack's search, or the hearing of one candidate. Bounds
are divided before work begins, never raced for, so a match that is played again runs out where
it ran out before.
"""

from threading import Lock
from typing import Final

from msgspec import Struct

from tiltyard.contracts.agent import OutOfRequestsError

MICRO: Final = 1_000_000


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """Of a million tokens, in millionths of a dollar."""

    prompt: int
    completion: int


class Purse:
    """So many requests, and so many millionths of a dollar; None is without end."""

    def __init__(self, requests: int | None = None, cost: int | None = None) -> None:
        self.requests = requests
        self.cost = cost
        self.spent_requests = 0
        self.spent_cost = 0
        self._used: set[str] = set()
        """Questions that were paid for: what is asked again is known."""
        self._lock = Lock()

    def pay_request(self, key: str, most: int = 0) -> bool:
        """Pay for a question that costs no more than this, or raise; False if it is paid for."""
        with self._lock:
            if key in self._used:
                return False
            if self.requests is not None and self.spent_requests >= self.requests:
                told = f"the {self.requests} requests are spent"
                raise OutOfRequestsError(told if self.requests else "no requests are left")
            if self.cost is not None and self.spent_cost + max(1, most) > self.cost:
                left = max(0, self.cost - self.spent_cost)
                raise OutOfRequestsError(
                    f"of ${dollars(self.cost)} there are ${dollars(left)} left, and one more "
                    f"request may cost ${dollars(most)}"
                )
            self._used.add(key)
            self.spent_requests += 1
            self.spent_cost += most
            return True

    def pay_tokens(self, cost: int) -> None:
        """Pay so much more; less than nothing is given back."""
        with self._lock:
            self.spent_cost += cost

    def take(self, requests: int | None, shares: int = 1) -> "Purse":
        """Return a purse with a share of what is left, and no more than so many requests."""
        left = None if self.requests is None else max(0, self.requests - self.spent_requests)
        cost = None if self.cost is None else max(0, self.cost - self.spent_cost)
        bounds = [one for one in (left, requests) if one is not None]
        return Purse(
            min(bounds) // shares if bounds else None, None if cost is None else cost // shares
        )

    def take_part(self, part: int, whole: int) -> "Purse":
        """Return a purse for a part that is so many of so many requests.

        Of one that began with less it is the same part, as far as that is left.
        """
        purse = self.take(part if self.requests is None else self.requests * part // whole)
        if purse.cost is not None:
            purse.cost = min(purse.cost, (self.cost or 0) * part // whole)
        return purse

    def close(self) -> None:
        """Have nothing left: whoever still pays from it comes to an end."""
        self.requests = 0

    def settle(self, other: "Purse") -> None:
        """Pay what was spent from a purse that was taken from this one."""
        self.spent_requests += other.spent_requests
        self.spent_cost += other.spent_cost


class Account:
    """What a model was asked and how it answered, over a whole match. Every question once."""

    def __init__(self, price: Price | None = None) -> None:
        self.price = price
        self.requests = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.repaired = 0
        """Replies that were no action until the model was told so."""
        self.no_action = 0
        """Turns that ended because no reply was an action."""
        self.refusals = 0
        self.dropped_calls = 0
        """Calls that came along with another, and were not made."""
        self._lock = Lock()

    def add_request(self, prompt: int, completion: int) -> int:
        """Count a request, and return what it cost in millionths of a dollar."""
        with self._lock:
            self.requests += 1
            self.prompt_tokens += prompt
            self.completion_tokens += completion
        return self.cost_of(prompt, completion)

    def cost_of(self, prompt: int, completion: int) -> int:
        """Return what so many tokens cost, in millionths of a dollar; nothing without a price."""
        return 0 if self.price is None else _cost(self.price, prompt, completion)

    def add(self, what: str, count: int = 1) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + count)

    @property
    def cost(self) -> int | None:
        """What it cost so far, in millionths of a dollar; None without a price."""
        if self.price is None:
            return None
        return _cost(self.price, self.prompt_tokens, self.completion_tokens)


def dollars(cost: int) -> str:
    """Return millionths of a dollar as dollars, to the last digit."""
    told = f"{cost / MICRO:.6f}".rstrip("0")
    return told + "0" * (2 - len(told.partition(".")[2]))


def _cost(price: Price, prompt: int, completion: int) -> int:
    return -(-(price.prompt * prompt + price.completion * completion) // MICRO)
