"""Which agent works for the user: named by the user, opened here.

`deterministic` is the one that every shipped number is made with. A language model is
`openai:MODEL`, at OpenAI or at any endpoint that speaks like it, or `local`, which needs nothing
but this machine.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.agents.local import LocalModelError, LocalServer
from tiltyard.agents.model.account import Account, Price
from tiltyard.agents.model.agent import Model, ModelAgent
from tiltyard.agents.model.endpoint import Endpoint, address_of, check_address, check_key
from tiltyard.agents.model.record import Identity, Record
from tiltyard.contracts.agent import NO_TRAITS, Agent, AgentGoneError, AgentTraits
from tiltyard.contracts.purse import OutOfRequestsError, Purse
from tiltyard.rulesets.ruleset import ModelRules

DETERMINISTIC: Final = "deterministic"
LOCAL: Final = "local"
OPENAI: Final = "openai:"
# The cache of a server of our own has a part in its answers, so it does without.
_LOCAL_EXTRA: Final[dict[str, Any]] = {"cache_prompt": False}


class AgentChoiceError(ValueError):
    """Nobody by that name, or not with these wishes."""


class AgentChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """Whom the user wants, and what may be spent on it."""

    name: str = DETERMINISTIC
    base_url: str = ""
    max_requests: int | None = None
    max_cost: int | None = None
    """In millionths of a dollar."""
    price: Price | None = None

    @property
    def is_default(self) -> bool:
        """True for the agent that every defense match is played with."""
        return self.name == DETERMINISTIC

    @property
    def traits(self) -> AgentTraits:
        """The traits of the agent that `hire` opens."""
        if self.is_default:
            return DeterministicAgent.traits
        return ModelAgent.traits if _is_model(self.name) else NO_TRAITS

    def check_key(self) -> None:
        """Raise if there is no key where one is needed. For what was played before, none is."""
        if self.name.startswith(OPENAI):
            try:
                check_key(self.base_url)
            except AgentGoneError as error:
                raise AgentChoiceError(str(error)) from None

    def in_full(self) -> "AgentChoice":
        """Return the same with the address that the environment gives: a report has to know it."""
        if not self.name.startswith(OPENAI):
            return self
        found = structs.replace(self, base_url=address_of(self.base_url))
        found.check()
        return found

    def for_one_of(self, matches: int) -> "AgentChoice":
        """Return the same for one of several matches: a ceiling is for all of them together."""
        return structs.replace(
            self,
            max_requests=None if self.max_requests is None else self.max_requests // matches,
            max_cost=None if self.max_cost is None else self.max_cost // matches,
        )

    def check(self) -> None:
        """Raise if this cannot be had, before anything is begun."""
        if not self.is_default and not _is_model(self.name):
            raise AgentChoiceError(
                f"there is no agent {self.name!r}; there are {DETERMINISTIC}, {LOCAL} "
                f"and {OPENAI}MODEL"
            )
        if self.base_url and not self.name.startswith(OPENAI):
            raise AgentChoiceError(f"--base-url is for {OPENAI}MODEL, not for {self.name}")
        spending = self.max_requests is not None or self.max_cost is not None
        if (spending or self.price is not None) and not self.traits.metered:
            raise AgentChoiceError("the deterministic agent costs nothing, and has no ceiling")
        if self.max_cost is not None and self.price is None:
            raise AgentChoiceError(
                "--max-cost needs --price: dollars for a million tokens in and out, as in 0.4,1.6"
            )
        try:
            check_address(self.base_url)
        except AgentGoneError as error:
            raise AgentChoiceError(str(error)) from None


def _is_model(name: str) -> bool:
    return name == LOCAL or (name.startswith(OPENAI) and name != OPENAI)


@contextmanager
def hire(choice: AgentChoice, rules: ModelRules | None, record: Record) -> Iterator[Agent]:
    """Open an agent for one match. With a record that is closed, no model is asked at all."""
    choice.check()
    if choice.is_default:
        yield DeterministicAgent()
        return
    if rules is None:
        raise AgentChoiceError(
            "the ruleset has no [model] table, which says what a model may be asked; "
            "design-openai has one"
        )
    with ExitStack() as stack:
        name, endpoint = _open(choice, rules, record, stack)
        extra = _LOCAL_EXTRA if choice.name == LOCAL else {}
        account = Account(choice.price)
        model = Model(name, rules, record, endpoint=endpoint, account=account, extra=extra)
        wished = rules.requests if choice.max_requests is None else choice.max_requests
        purse = Purse(min(rules.requests, wished), choice.max_cost)
        try:
            manner = model.find_manner(purse)
        except OutOfRequestsError as error:
            raise AgentGoneError(f"{error} before it is known how {name} is asked") from None
        yield ModelAgent(model, manner, purse=purse)


def _open(
    choice: AgentChoice, rules: ModelRules, record: Record, stack: ExitStack
) -> tuple[str, Endpoint | None]:
    """Return a model's name, and whom to ask; nobody when all is recorded."""
    if record.closed:
        known = record.identity
        if known is None or known.agent != choice.name:
            raise AgentGoneError(f"there is no record of a match with {choice.name} here")
        record.begin(known)
        return known.model, None
    if choice.name == LOCAL:
        try:
            server = stack.enter_context(LocalServer())
        except LocalModelError as error:
            raise AgentGoneError(str(error)) from None
        name, base_url, version = server.model, server.url, server.version
    else:
        name, base_url, version = choice.name.removeprefix(OPENAI), choice.base_url, ""
    record.begin(Identity(choice.name, name, version))
    endpoint = Endpoint(
        name,
        base_url=base_url,
        with_key=choice.name != LOCAL,
        seconds=rules.seconds,
        retries=rules.retries,
    )
    stack.callback(endpoint.close)
    return name, endpoint
