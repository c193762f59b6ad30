"""A conversation with a guardrail in the jail, from the judge's side.

The guest runs the same code as a conversation in process. The judge believes nothing of it: it
checks decisions and reduced results again.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import structs

from tiltyard.contracts.asking import Ask, AskError, Questions, no_model
from tiltyard.contracts.decision import Decision, Fault
from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.guardrail import Result, Setting
from tiltyard.contracts.trace import PublicEvent
from tiltyard.episode.conversation import (
    CheckedSettings,
    ClosedError,
    Delivery,
    checked_call,
    checked_message,
    checked_result,
    delivered,
    permitted,
    withhold,
)
from tiltyard.episode.guardrail_caller import normalize_reason
from tiltyard.episode.history import History
from tiltyard.isolation.host import failures
from tiltyard.isolation.host.failures import GuardrailFault, Phase
from tiltyard.isolation.host.jailed_guardrail import decision_of
from tiltyard.isolation.host.session import Session
from tiltyard.isolation.wire.frames import (
    AskModel,
    CallDecided,
    Converse,
    DecideCall,
    Declare,
    FaultNote,
    ModelAnswer,
    Noted,
    ResultShown,
    Say,
    ShowResult,
)

MAX_FAULTS_KEPT: Final = 20


class JailedConversation:
    """One conversation with a fresh guest. `GuestError` ends it, and with it the match.

    `setting` has checked tools and a checked policy. `ask` answers the guardrail's questions, in
    this process.
    """

    def __init__(
        self, open_session: Callable[[], Session], setting: Setting, ask: Ask = no_model
    ) -> None:
        self._ask = ask
        self._setting = setting
        self._history = History(self._setting)
        self._faults: list[GuardrailFault] = []
        self._session: Session | None = open_session()
        self._tell(Converse(setting.tools, setting.policy), Phase.LOAD)

    @property
    def events(self) -> list[PublicEvent]:
        return [*self._history.events]

    def say(self, message: str) -> None:
        said = checked_message(message)
        self._tell(Say(said), Phase.OBSERVE)
        self._history.say(said)

    def declare(self, tools: Sequence[Declaration]) -> None:
        setting = CheckedSettings().of(tools, self._setting.policy)
        self._tell(Declare(setting.tools), Phase.OBSERVE)
        self._setting = setting
        self._history.use(setting)

    def decide(self, name: str, args: dict[str, Any]) -> Decision:
        session = self._reach()
        checked = checked_call(name, args)
        if isinstance(checked, Decision):
            return checked
        answer = session.ask(DecideCall(name, checked), Phase.DECIDE, name)
        questions = Questions(self._ask)
        while isinstance(answer, AskModel) and questions.left:
            answer = session.ask(_reply(questions, answer), Phase.DECIDE, name)
        if not isinstance(answer, CallDecided):
            raise session.broke_protocol(failures.NO_DECISION, Phase.DECIDE, name)
        self._note(session, answer.fault, Phase.DECIDE, name)
        tool = self._setting.about(name).declaration
        # The guest has restored nested arguments, so this check is the same for both contracts.
        ran, decision = permitted(checked, decision_of(answer), tool, flat=False)
        self._history.decided(name, ran, decision)
        return decision

    def observe(self, name: str, args: dict[str, Any], result: Result) -> Result:
        session = self._reach()
        checked, args = checked_result(name, args, result)
        answer = session.ask(ShowResult(name, args, checked), Phase.OBSERVE, name)
        if not isinstance(answer, ResultShown):
            raise session.broke_protocol(failures.NO_RESULT, Phase.OBSERVE, name)
        self._note(session, answer.fault, Phase.OBSERVE, name)
        delivery = _delivery(checked, answer)
        self._history.observed(name, args, delivery.result, delivery.error)
        return delivery.result

    def take_faults(self) -> list[GuardrailFault]:
        """Return the first errors inside the guardrail since the last call of this method."""
        taken, self._faults = self._faults, []
        return taken

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _reach(self) -> Session:
        if self._session is None:
            raise ClosedError("this conversation is closed; open another one")
        return self._session

    def _tell(self, frame: Converse | Declare | Say, phase: Phase) -> None:
        session = self._reach()
        if not isinstance(session.ask(frame, phase), Noted):
            raise session.broke_protocol(failures.NOT_NOTED, phase)

    def _note(self, session: Session, claim: FaultNote | None, phase: Phase, tool: str) -> None:
        if claim is not None and len(self._faults) < MAX_FAULTS_KEPT:
            self._faults.append(failures.reported_fault(claim, session.submission, phase, tool))


def _reply(questions: Questions, asked: AskModel) -> ModelAnswer:
    """Ask the model. The guest has checked its question, and nobody believes that."""
    try:
        return ModelAnswer(questions.ask(asked.question, asked.schema))
    except AskError as error:
        return ModelAnswer(error=normalize_reason(str(error)))


def _delivery(result: Result, answer: ResultShown) -> Delivery:
    """Return what the agent gets. A guest can reduce a result or withhold it, nothing else."""
    error = normalize_reason(answer.error)
    if answer.withheld:
        fault = Fault.RAISED if answer.fault is None else answer.fault.kind
        return withhold(result, error, fault)
    if answer.reduced is None:
        return Delivery(result, error)
    output, structured = answer.reduced
    return delivered(result, structs.replace(result, output=output, structured=structured))
