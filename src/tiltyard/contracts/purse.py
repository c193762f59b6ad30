"""A purse: how many requests, and how much money, a metered agent may still spend.

A purse bounds one part of a match: the attack's search, or the verification of one candidate. A
match divides its purse before the work begins, so a replayed match runs out at the same request.
"""

from threading import Lock
from typing import Final

MICRO: Final = 1_000_000
"""Money is counted in millionths of a dollar."""


class OutOfRequestsError(Exception):
    """The purse is empty. The current work stays undone; the match goes on."""


class Purse:
    """A number of requests and a sum in millionths of a dollar; None means no bound."""

    def __init__(self, requests: int | None = None, cost: int | None = None) -> None:
        self.requests = requests
        self.cost = cost
        self.spent_requests = 0
        self.spent_cost = 0
        self._paid: set[str] = set()
        """Keys of the requests paid so far. The record answers them if they are repeated."""
        self._lock = Lock()

    def pay_request(self, key: str, most: int = 0) -> bool:
        """Pay for a request that costs at most `most`. Return False if it was paid before.

        Raises OutOfRequestsError if the purse does not hold enough.
        """
        with self._lock:
            if key in self._paid:
                return False
            if self.requests is not None and self.spent_requests >= self.requests:
                spent = f"the {self.requests} requests are spent"
                raise OutOfRequestsError(spent if self.requests else "no requests are left")
            if self.cost is not None and self.spent_cost + max(1, most) > self.cost:
                left = max(0, self.cost - self.spent_cost)
                raise OutOfRequestsError(
                    f"${dollars(left)} of ${dollars(self.cost)} is left, and the next request "
                    f"may cost ${dollars(most)}"
                )
            self._paid.add(key)
            self.spent_requests += 1
            self.spent_cost += most
            return True

    def pay_tokens(self, cost: int) -> None:
        """Pay `cost` more; a negative cost is a refund."""
        with self._lock:
            self.spent_cost += cost

    def take(self, requests: int | None, shares: int = 1) -> "Purse":
        """Return a new purse with one of `shares` equal parts of what is left.

        `requests` bounds the requests before the division.
        """
        left = None if self.requests is None else max(0, self.requests - self.spent_requests)
        cost = None if self.cost is None else max(0, self.cost - self.spent_cost)
        bounds = [one for one in (left, requests) if one is not None]
        return Purse(
            min(bounds) // shares if bounds else None, None if cost is None else cost // shares
        )

    def take_part(self, part: int, whole: int) -> "Purse":
        """Return a new purse with `part` of `whole` requests.

        A purse that began with fewer than `whole` requests gives the same fraction.
        """
        purse = self.take(part if self.requests is None else self.requests * part // whole)
        if purse.cost is not None:
            purse.cost = min(purse.cost, (self.cost or 0) * part // whole)
        return purse

    def close(self) -> None:
        """Refuse every further request."""
        self.requests = 0

    def settle(self, other: "Purse") -> None:
        """Add what was spent from `other`, a purse taken from this one."""
        self.spent_requests += other.spent_requests
        self.spent_cost += other.spent_cost


def dollars(cost: int) -> str:
    """Return millionths of a dollar as dollars, with all digits."""
    shown = f"{cost / MICRO:.6f}".rstrip("0")
    return shown + "0" * (2 - len(shown.partition(".")[2]))
