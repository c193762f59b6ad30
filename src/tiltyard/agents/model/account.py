"""The account of a match with a model: requests, tokens, cost, and how often replies were bad."""

from threading import Lock

from msgspec import Struct

from tiltyard.contracts.purse import MICRO


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """The price of a million tokens, in millionths of a dollar."""

    prompt: int
    completion: int


class Account:
    """Counts what a model was asked and how it answered, over one match. Repeats are free."""

    def __init__(self, price: Price | None = None) -> None:
        self.price = price
        self.requests = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.repaired = 0
        """Replies that became an action only after a repair request."""
        self.no_action = 0
        """Turns that ended because no reply was an action."""
        self.refusals = 0
        self.dropped_calls = 0
        """Tool calls that came with another one in the same reply, and were not made."""
        self._lock = Lock()

    def add_request(self, prompt: int, completion: int) -> int:
        """Count a request, and return its cost in millionths of a dollar."""
        with self._lock:
            self.requests += 1
            self.prompt_tokens += prompt
            self.completion_tokens += completion
        return self.cost_of(prompt, completion)

    def cost_of(self, prompt: int, completion: int) -> int:
        """Return the cost of tokens, in millionths of a dollar; 0 without a price."""
        return 0 if self.price is None else _cost(self.price, prompt, completion)

    def add(self, counter: str, count: int = 1) -> None:
        """Add to one of the counters above, named by its attribute."""
        with self._lock:
            setattr(self, counter, getattr(self, counter) + count)

    @property
    def cost(self) -> int | None:
        """The cost so far, in millionths of a dollar; None without a price."""
        if self.price is None:
            return None
        return _cost(self.price, self.prompt_tokens, self.completion_tokens)


def _cost(price: Price, prompt: int, completion: int) -> int:
    return -(-(price.prompt * prompt + price.completion * completion) // MICRO)
