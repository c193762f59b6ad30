"""A language model as the agent: its replies become tool calls and answers."""

from typing import Any, Final

from tiltyard.agents.model.account import Account
from tiltyard.agents.model.exchange import Asked, Exchanges
from tiltyard.agents.model.prompt import Mode, action_schema, conversation, repair, tool_list
from tiltyard.agents.model.record import Answered, Record
from tiltyard.agents.model.replies import (
    NO_COMPLETION,
    Call,
    Problem,
    Said,
    read_reply,
)
from tiltyard.contracts.agent import AgentGoneError, AgentTraits, AgentUsage, View
from tiltyard.contracts.purse import Purse
from tiltyard.contracts.trace import NO_TRACE, Answer, OpenTurn
from tiltyard.rulesets.ruleset import ModelRules
from tiltyard.world.results import ToolCall

NO_ACTION: Final = "(no action: {})"
SEED: Final = 0


class Manner:
    """How to ask a model: a form of request that its endpoint understands."""

    def __init__(self, mode: Mode, *, plain: bool = False) -> None:
        self.mode = mode
        self.plain = plain
        """Without temperature and seed, which reasoning models refuse."""

    @property
    def name(self) -> str:
        return f"{self.mode.value}, plain" if self.plain else self.mode.value

    def body(self, model: str, messages: list[Any], rules: ModelRules) -> dict[str, Any]:
        """Return a whole request: everything that the answer may depend on."""
        body: dict[str, Any] = {"model": model, "messages": messages}
        if self.plain:
            body["max_completion_tokens"] = rules.max_tokens
        else:
            body |= {"max_tokens": rules.max_tokens, "temperature": 0, "seed": SEED}
        if self.mode is Mode.STRUCTURED:
            schema = {"name": "action", "schema": action_schema(), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        else:
            body |= {"tools": tool_list(), "parallel_tool_calls": False}
        return body


MANNERS: Final = tuple(
    Manner(mode, plain=plain) for plain in (False, True) for mode in (Mode.STRUCTURED, Mode.TOOLS)
)
"""In the order in which `find_manner` tries them."""


class Model:
    """A model with its record and its account, for one match."""

    def __init__(  # noqa: PLR0913 - everything that a request depends on
        self,
        name: str,
        rules: ModelRules,
        record: Record,
        *,
        endpoint: Asked | None,
        account: Account | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.rules = rules
        self.record = record
        self.account = account or Account()
        self.exchanges = Exchanges(record, endpoint, self.account)
        self._extra = extra or {}

    def ask(
        self, scope: tuple[str, ...], purse: Purse, manner: Manner, messages: list[Any]
    ) -> tuple[Answered, bool]:
        """Return the answer to a conversation, and True if the purse paid for it just now."""
        body = manner.body(self.name, messages, self.rules) | self._extra
        return self.exchanges.ask(scope, purse, body, self.rules.max_tokens)

    def find_manner(self, purse: Purse) -> Manner:
        """Try all manners, and return the first one that the model understands."""
        problems: dict[str, str] = {}
        for manner in MANNERS:
            messages = _trial(manner.mode)
            answered, _ = self.ask(("manner",), purse, manner, messages)
            reply = _read(answered, manner.mode)
            # In tools mode the model must call one: some endpoints drop the list of tools.
            if isinstance(reply, Call) or (manner.mode is Mode.STRUCTURED and _is_said(reply)):
                return manner
            why = reply.why if isinstance(reply, Problem) else "no tool was called"
            problems[manner.name] = why if answered.status == 200 else f"{why} {answered.body}"
        if set(problems.values()) == {NO_COMPLETION}:
            raise AgentGoneError(f"{NO_COMPLETION}; is the address right? It usually ends in /v1")
        reasons = "; ".join(f"{name}: {why}" for name, why in problems.items())
        raise AgentGoneError(f"{self.name} cannot call tools in any known way ({reasons})")


def _is_said(reply: object) -> bool:
    return isinstance(reply, Said) and not reply.refused


def _trial(mode: Mode) -> list[Any]:
    asked = OpenTurn(NO_TRACE, "List my mail folder inbox.", []).trace
    return conversation(asked, "me@corp.example", mode, 1_000)


class ModelAgent:
    """A model at work on one part of a match."""

    traits = AgentTraits(recorded=True, metered=True)

    def __init__(
        self,
        model: Model,
        manner: Manner,
        scope: tuple[str, ...] = (),
        purse: Purse | None = None,
    ) -> None:
        self.model = model
        self.manner = manner
        self.name = model.name
        self.scope = scope
        self.purse = purse or Purse()

    @property
    def rules(self) -> ModelRules:
        return self.model.rules

    @property
    def record_digest(self) -> str:
        return self.model.record.digest

    def usage(self) -> AgentUsage:
        model, account = self.model, self.model.account
        identity = model.record.identity
        return AgentUsage(
            model.name,
            "" if identity is None else identity.server,
            self.manner.name,
            account.requests,
            account.prompt_tokens,
            account.completion_tokens,
            account.cost,
            account.repaired,
            account.no_action,
            account.refusals,
            account.dropped_calls,
        )

    def within(self, *names: str) -> "ModelAgent":
        return ModelAgent(self.model, self.manner, names, self.purse)

    def paying_from(self, purse: Purse) -> "ModelAgent":
        return ModelAgent(self.model, self.manner, self.scope, purse)

    def begin(self) -> None:
        """Return None: the agent needs no memory, because the trace has the whole conversation."""

    def next_action(self, view: View) -> tuple[ToolCall | Answer, None]:
        rules, account, mode = self.model.rules, self.model.account, self.manner.mode
        messages = conversation(view.trace, view.owner, mode, rules.output_chars)
        repairs = 0
        while True:
            answered, new = self.model.ask(self.scope, self.purse, self.manner, messages)
            reply = _read(answered, mode)
            if not isinstance(reply, Problem):
                break
            if repairs == rules.repairs or reply.hopeless:
                if new:
                    account.add("no_action")
                return Answer(NO_ACTION.format(reply.why)), None
            messages = repair(messages, reply.said, reply.why, mode)
            repairs += 1
        if new:
            account.add("repaired", int(repairs > 0))
            self._count(reply)
        if isinstance(reply, Call):
            args: dict[str, Any] = dict(reply.args)
            return ToolCall(reply.tool, args), None
        return Answer(reply.text), None

    def _count(self, reply: Call | Said) -> None:
        if isinstance(reply, Call):
            self.model.account.add("dropped_calls", reply.others)
        else:
            self.model.account.add("refusals", int(reply.refused))


def _read(answered: Answered, mode: Mode) -> Call | Said | Problem:
    if answered.status != 200:
        why = f"the endpoint does not take this conversation ({answered.status})"
        return Problem(why, "", hopeless=True)
    return read_reply(answered.body, mode)
