"""The guardrail's side of a conversation over declared tools."""

from pathlib import Path
from typing import Any

from tiltyard.contracts.asking import AskError
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import setting_of
from tiltyard.episode.conversation import LocalConversation
from tiltyard.isolation.guest.guest_caller import GuestCaller
from tiltyard.isolation.guest.virtual_clock import Clock
from tiltyard.isolation.wire.channel import Channel, MalformedError
from tiltyard.isolation.wire.frames import (
    AskModel,
    CallDecided,
    Converse,
    DecideCall,
    Declare,
    ModelAnswer,
    Noted,
    ResultShown,
    Say,
    ShowResult,
)


class ConversationServer:
    """One guardrail in one conversation. It uses the same code as a conversation in process."""

    def __init__(self, guardrail: Any, wire: Channel[Any], clock: Clock, submission: Path) -> None:
        self._guardrail = guardrail
        self._wire = wire
        self._clock = clock
        self._caller = GuestCaller(guardrail, submission, clock)

    def serve(self, opening: Converse) -> None:
        """Answer the judge until it closes the channel."""
        # The judge has checked the tools and the policy.
        setting = setting_of(opening.tools, opening.policy)
        conversation = LocalConversation(
            self._guardrail, setting=setting, caller=self._caller, ask=self._ask
        )
        self._wire.send(Noted())
        while True:
            frame = self._wire.receive()
            self._clock.at_event(conversation.event_count)
            if isinstance(frame, Say):
                conversation.say(frame.message)
                self._wire.send(Noted())
            elif isinstance(frame, Declare):
                conversation.use(setting_of(frame.tools, opening.policy))
                self._wire.send(Noted())
            elif isinstance(frame, DecideCall):
                self._wire.send(self._decided(conversation.decide(frame.name, frame.args)))
            elif isinstance(frame, ShowResult):
                self._wire.send(self._shown(conversation, frame))
            else:
                raise MalformedError(f"expected a conversation, not {type(frame).__name__}")

    def _ask(self, question: str, schema: dict[str, Any]) -> Any:
        """Let the judge ask the model: a guest has no network."""
        self._wire.send(AskModel(question, schema))
        reply = self._wire.receive()
        if not isinstance(reply, ModelAnswer):
            raise MalformedError(f"expected ModelAnswer, not {type(reply).__name__}")
        if reply.error:
            raise AskError(reply.error)
        return reply.answer

    def _decided(self, decision: Decision) -> CallDecided:
        args, fault = decision.sanitized_args, decision.fault
        return CallDecided(
            decision.action,
            decision.reason,
            None if args is None else dict(args),
            None if fault is None else self._caller.fault_note(fault, decision.reason),
        )

    def _shown(self, conversation: LocalConversation, frame: ShowResult) -> ResultShown:
        delivery = conversation.deliver(frame.name, frame.args, frame.result)
        note = None
        if delivery.fault is not None:
            note = self._caller.fault_note(delivery.fault, delivery.error)
        kept = delivery.result
        if delivery.withheld or kept == frame.result:
            return ResultShown(delivery.withheld, delivery.error, note)
        return ResultShown(delivery.withheld, delivery.error, note, (kept.output, kept.structured))
