"""Which agent works for the user: the user's choice, and how to open it.

`deterministic` is the agent of every shipped result. `openai:MODEL` is a language model at OpenAI,
or at any endpoint with the same API. `local` is a small model that runs on this machine.
`package.module:Class` is the user's own code. No other module compares an agent's name or class.
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
from tiltyard.agents.own import OwnAgent, OwnAgentError, is_own, open_own
from tiltyard.contracts.agent import NO_TRAITS, Agent, AgentGoneError, AgentTraits
from tiltyard.contracts.purse import OutOfRequestsError, Purse
from tiltyard.rulesets.ruleset import ModelRules

DETERMINISTIC: Final = "deterministic"
LOCAL: Final = "local"
OPENAI: Final = "openai:"
OWN: Final = "package.module:Class"
# A server's prompt cache can change its answers, so the local server does not use it.
_LOCAL_EXTRA: Final[dict[str, Any]] = {"cache_prompt": False}


class AgentChoiceError(ValueError):
    """The chosen agent does not exist, or does not take these options."""


class AgentChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """An agent by name, and what it may spend."""

    name: str = DETERMINISTIC
    base_url: str = ""
    max_requests: int | None = None
    max_cost: int | None = None
    """In millionths of a dollar."""
    price: Price | None = None

    @property
    def is_default(self) -> bool:
        """True for the agent of every defense match."""
        return self.name == DETERMINISTIC

    @property
    def is_own(self) -> bool:
        """True for a user's own class, which runs unjailed: open it only if the user names it."""
        return not self._is_model and is_own(self.name)

    @property
    def _is_model(self) -> bool:
        return self.name == LOCAL or self.name.startswith(OPENAI)

    @property
    def model_ruleset(self) -> str:
        """The shipped ruleset whose bounds on requests suit the agent, for use outside matches."""
        return "demo-llm" if self.name == LOCAL else "design-openai"

    @property
    def traits(self) -> AgentTraits:
        """The traits of the agent that `hire` opens."""
        if self.is_default:
            return DeterministicAgent.traits
        return ModelAgent.traits if self._is_model else NO_TRAITS

    def check(self) -> None:
        """Raise if the agent is unknown or does not take these options. Opens nothing."""
        known = self.is_default or self._is_model or self.is_own
        if not known or self.name == OPENAI:
            raise AgentChoiceError(
                f"unknown agent {self.name!r}; expected {DETERMINISTIC}, {LOCAL}, {OPENAI}MODEL or "
                f"{OWN}"
            )
        if self.base_url and not self.name.startswith(OPENAI):
            raise AgentChoiceError(f"--base-url is for {OPENAI}MODEL, not for {self.name}")
        spending = self.max_requests is not None or self.max_cost is not None
        if (spending or self.price is not None) and not self.traits.metered:
            raise AgentChoiceError(
                "--max-requests, --max-cost and --price are for language models; "
                f"the agent is {self.name}"
            )
        if self.max_cost is not None and self.price is None:
            raise AgentChoiceError(
                "--max-cost needs --price: dollars for a million tokens in and out, as in 0.4,1.6"
            )
        try:
            check_address(self.base_url)
        except AgentGoneError as error:
            raise AgentChoiceError(str(error)) from None

    def check_key(self) -> None:
        """Raise if the agent needs an API key that is not set. A replay needs none."""
        if self.name.startswith(OPENAI):
            try:
                check_key(self.base_url)
            except AgentGoneError as error:
                raise AgentChoiceError(str(error)) from None

    def check_own(self) -> None:
        """Import a user's own agent class and make an object of it; raise if that fails."""
        if self.is_own:
            _open_own(self.name)

    def in_full(self) -> "AgentChoice":
        """Return the choice with the address from the environment, for the report."""
        if not self.name.startswith(OPENAI):
            return self
        found = structs.replace(self, base_url=address_of(self.base_url))
        found.check()
        return found

    def for_one_of(self, matches: int) -> "AgentChoice":
        """Return the choice for one of several matches: they share the user's bounds equally."""
        return structs.replace(
            self,
            max_requests=None if self.max_requests is None else self.max_requests // matches,
            max_cost=None if self.max_cost is None else self.max_cost // matches,
        )


@contextmanager
def hire(choice: AgentChoice, rules: ModelRules | None, record: Record) -> Iterator[Agent]:
    """Open an agent for one match. With a closed record, the record answers, not the model."""
    choice.check()
    if choice.is_default:
        yield DeterministicAgent()
    elif choice.is_own:
        yield _open_own(choice.name)
    else:
        with _hire_model(choice, rules, record) as agent:
            yield agent


def _open_own(name: str) -> OwnAgent:
    try:
        return open_own(name)
    except OwnAgentError as error:
        raise AgentChoiceError(f"--agent {name}: {error}") from None


@contextmanager
def _hire_model(
    choice: AgentChoice, rules: ModelRules | None, record: Record
) -> Iterator[ModelAgent]:
    if rules is None:
        raise AgentChoiceError(
            "the ruleset has no [model] table, which bounds the requests to a model; "
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
            raise AgentGoneError(f"{name} could not be tried out: {error}") from None
        yield ModelAgent(model, manner, purse=purse)


def _open(
    choice: AgentChoice, rules: ModelRules, record: Record, stack: ExitStack
) -> tuple[str, Endpoint | None]:
    """Return a model's name and its endpoint; no endpoint if the record is closed."""
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
