"""A conversation: one guardrail, a user, and calls of declared tools.

Everything that is not the simulated machine of the ruleset `design` talks to a guardrail through
this module: the arena, the dojo and every bridge. The caller runs the tools; a conversation decides
calls and filters results.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, structs

from tiltyard.contracts.asking import Ask, Questions, no_model
from tiltyard.contracts.decision import Action, Decision, Fault
from tiltyard.contracts.declaration import Declaration, check_declarations
from tiltyard.contracts.guardrail import (
    Context,
    Guardrail,
    MakeGuardrail,
    Result,
    Setting,
    check_guardrail,
    contract_of,
    setting_of,
)
from tiltyard.contracts.hostile_json import JsonError, clone
from tiltyard.contracts.policy import NO_POLICY, Policy, check_policy
from tiltyard.contracts.trace import PublicEvent
from tiltyard.episode.guardrail_caller import GuardrailCaller, normalize_reason
from tiltyard.episode.history import FlatHistory, History
from tiltyard.episode.redaction import NotARedactionError
from tiltyard.episode.reduction import (
    copy_args,
    copy_result,
    flat_args,
    reduce_args,
    reduce_result,
)
from tiltyard.foundation.interrupts import marked_interrupts
from tiltyard.world.results import ToolError

MAX_MESSAGE_BYTES: Final = 500_000
MAX_TOOL_NAME_CHARS: Final = 256


class Conversation(Protocol):
    """One conversation with a guardrail. Call its methods from one thread."""

    @property
    def events(self) -> list[PublicEvent]:
        """All calls so far, with decisions and with the results that the agent got."""

    def say(self, message: str) -> None:
        """Tell the guardrail what the user says."""

    def declare(self, tools: Sequence[Declaration]) -> None:
        """Replace the tools that the agent has. Raise a DeclarationError if they are wrong."""

    def decide(self, name: str, args: dict[str, Any]) -> Decision:
        """Ask whether a call may run. An error inside the guardrail is a denial with a `fault`.

        With SANITIZE, `sanitized_args` are the arguments to run the call with.
        """

    def observe(self, name: str, args: dict[str, Any], result: Result) -> Result:
        """Show the guardrail the result of a call that ran. Return what the agent may see."""

    def close(self) -> None:
        """End the conversation."""


class OpenConversation(Protocol):
    """Begins a conversation with a fresh guardrail."""

    def __call__(self, tools: Sequence[Declaration], policy: Policy, /) -> Conversation: ...


class ClosedError(RuntimeError):
    """The conversation has ended."""


class Delivery(Struct, frozen=True):
    """What the agent gets of a result, and the guardrail's error if there was one."""

    result: Result
    error: str = ""
    fault: Fault | None = None
    withheld: bool = False
    """True if the agent gets an error instead of the result."""


class CheckedSettings:
    """Checks tools and policies, and remembers the last ones.

    A caller that begins many conversations over the same tools has them checked once. The tools
    must be a tuple, which cannot change in between.
    """

    def __init__(self) -> None:
        self._last: tuple[Sequence[Declaration], Policy, Setting] | None = None

    def of(self, tools: Sequence[Declaration], policy: Policy) -> Setting:
        """Return the setting of a conversation. Raise if the tools or the policy are wrong."""
        if self._last is not None and self._last[0] is tools and self._last[1] is policy:
            return self._last[2]
        check_declarations(tools)
        check_policy(policy)
        setting = setting_of(tools, policy)
        self._last = (tools, policy, setting) if isinstance(tools, tuple) else None
        return setting


class LocalConversation:
    """A conversation with a guardrail in this process.

    `setting` is for callers that have checked the tools and the policy before: then `tools` and
    `policy` are not read. `ask` answers the questions of `context.ask`.
    """

    def __init__(  # noqa: PLR0913 - all but one have defaults
        self,
        guardrail: Guardrail,
        tools: Sequence[Declaration] = (),
        policy: Policy = NO_POLICY,
        *,
        setting: Setting | None = None,
        caller: GuardrailCaller | None = None,
        ask: Ask = no_model,
    ) -> None:
        check_guardrail(guardrail)
        self._ask = ask
        self._contract = contract_of(guardrail)
        self._setting = CheckedSettings().of(tools, policy) if setting is None else setting
        self._history = (History if self._contract == 2 else FlatHistory)(self._setting)
        self._caller = GuardrailCaller(guardrail) if caller is None else caller
        self._closed = False

    @property
    def events(self) -> list[PublicEvent]:
        return [*self._history.events]

    @property
    def event_count(self) -> int:
        return len(self._history.events)

    def say(self, message: str) -> None:
        self._check_open()
        self._history.say(checked_message(message))

    def declare(self, tools: Sequence[Declaration]) -> None:
        self._check_open()
        self.use(CheckedSettings().of(tools, self._setting.policy))

    def use(self, setting: Setting) -> None:
        """Replace the setting. The caller has checked its tools."""
        self._setting = setting
        self._history.use(setting)

    def decide(self, name: str, args: dict[str, Any]) -> Decision:
        self._check_open()
        checked = checked_call(name, args)
        if isinstance(checked, Decision):
            return checked
        given = self._given(checked)
        about = self._setting.about(name)
        questions = Questions(self._ask)
        context = Context(self._history, about, self._setting, questions.ask)
        with marked_interrupts():
            asked = self._caller.ask(name, given, clone(given), context)
        questions.close()
        flat = self._contract == 1
        ran, decision = permitted(checked, asked, about.declaration, flat=flat)
        self._history.decided(name, ran, decision)
        return decision

    def observe(self, name: str, args: dict[str, Any], result: Result) -> Result:
        return self.deliver(name, args, result).result

    def deliver(self, name: str, args: dict[str, Any], result: Result) -> Delivery:
        """Show the guardrail a result. Return what the agent gets, with the guardrail's error."""
        self._check_open()
        checked, args = checked_result(name, args, result)
        with marked_interrupts():
            delivery = self._deliver(name, args, checked)
        self._history.observed(name, args, delivery.result, delivery.error)
        return delivery

    def _deliver(self, name: str, args: dict[str, Any], result: Result) -> Delivery:
        if self._contract == 1:
            seen = Result(result.ok, result.output, result.error, result.source)
            error = self._caller.show_result(name, flat_args(args), seen)[1]
            return Delivery(result, error, Fault.RAISED if error else None)
        returned, error = self._caller.show_result(name, clone(args), _own(result))
        if error:
            return withhold(result, error, Fault.RAISED)
        return delivered(result, returned)

    def _given(self, args: dict[str, Any]) -> dict[str, Any]:
        return args if self._contract == 2 else flat_args(args)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this conversation is closed; open another one")

    def close(self) -> None:
        self._closed = True
        self._caller.close()


def _own(result: Result) -> Result:
    """Return a result that the guardrail may change without effect on the original."""
    if result.structured is None:
        return result
    return structs.replace(result, structured=clone(result.structured))


def open_locally(make_guardrail: MakeGuardrail, ask: Ask = no_model) -> OpenConversation:
    """Return a function that begins conversations in this process, each with a new guardrail."""
    settings = CheckedSettings()

    def begin(tools: Sequence[Declaration], policy: Policy) -> LocalConversation:
        return LocalConversation(make_guardrail(), setting=settings.of(tools, policy), ask=ask)

    return begin


def checked_message(message: str) -> str:
    """Return a message as valid Unicode; raise a ValueError if it is too long."""
    if not isinstance(message, str):
        raise TypeError(f"message is a {type(message).__name__}; expected a str")
    encoded = str.encode(message, "utf-8", "replace")
    if len(encoded) > MAX_MESSAGE_BYTES:
        raise ValueError(
            f"message has {len(encoded):,} bytes; the limit is {MAX_MESSAGE_BYTES:,}: shorten it"
        )
    return encoded.decode()


def checked_call(name: str, args: Mapping[str, Any]) -> dict[str, Any] | Decision:
    """Return a copy of the arguments, or a denial: no guardrail can judge such a call."""
    try:
        _check_name(name)
        return copy_args(args)
    except JsonError as error:
        return Decision.deny(normalize_reason(f"not asked: the arguments{error}"))


def _check_name(name: str) -> None:
    valid = type(name) is str and len(name) <= MAX_TOOL_NAME_CHARS
    if not valid or name != name.encode("utf-8", "replace").decode():
        raise JsonError(f" come with a name that is no text of {MAX_TOOL_NAME_CHARS} characters")


def checked_result(
    name: str, args: Mapping[str, Any], result: Result
) -> tuple[Result, dict[str, Any]]:
    """Return copies of a result and of the arguments that led to it.

    A result that no guardrail can check is replaced by an error.
    """
    try:
        _check_name(name)
        arguments = copy_args(args)
    except JsonError as error:
        raise ValueError(
            f"observe: the arguments{error}; pass those that `decide` allowed"
        ) from None
    try:
        return copy_result(result), arguments
    except JsonError:
        source = result.source if type(result.source) is str else "tool"
        return Result(ok=False, output="", error=UNCHECKABLE, source=source[:100]), arguments


UNCHECKABLE: Final = "uncheckable"
"""The error of a result that is too large, or not JSON."""


def permitted(
    args: dict[str, Any], decision: Decision, tool: Declaration | None, *, flat: bool
) -> tuple[dict[str, Any], Decision]:
    """Return the arguments to run a call with, and the decision with checked arguments."""
    if decision.action is not Action.SANITIZE:
        return args, decision
    try:
        less = reduce_args(args, decision.sanitized_args or {}, tool, flat=flat)
    except NotARedactionError as error:
        reason = normalize_reason(f"sanitize: {error} (said: {decision.reason})")
        return args, Decision(Action.DENY, reason, None, Fault.NOT_A_REDACTION)
    return less, Decision(Action.SANITIZE, decision.reason, less)


def delivered(result: Result, returned: object) -> Delivery:
    """Return what the agent gets, if `observe` returned this."""
    if returned is None:
        return Delivery(result)
    try:
        return Delivery(reduce_result(result, returned))
    except NotARedactionError as error:
        return withhold(result, normalize_reason(str(error)), Fault.NOT_A_REDACTION)


def withhold(result: Result, error: str, fault: Fault) -> Delivery:
    """Return what the agent gets if the guardrail failed: an error without content."""
    code = ToolError.GUARDRAIL_ERROR.value
    nothing = Result(ok=False, output="", error=code, source=result.source)
    return Delivery(nothing, error, fault, withheld=True)
