"""Shadow: say what a guardrail would have done on recorded runs.

The guardrail hears the user's messages, decides every recorded call, and sees the results of the
calls that it lets through. It does not see the result of a call that it stops, and the run goes on
as recorded. So everything after the first stopped call is hypothetical: a real agent would have
read the denial, and might have gone another way.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.declaration import (
    MAX_TOOLS,
    Declaration,
    DeclarationError,
    read_declarations,
)
from tiltyard.contracts.lookalikes import skeleton
from tiltyard.contracts.policy import NO_POLICY, Policy
from tiltyard.episode.conversation import Conversation, OpenConversation
from tiltyard.foundation.interrupts import marked_interrupts
from tiltyard.studies.recorded import Called, RecordedRun, Returned, Said, Skipped

_STOPS: Final = (Action.DENY, Action.CONFIRM)
_BARE_KEPT: Final = 500


class Played(Struct, frozen=True):
    """What one guardrail did with one run."""

    decisions: tuple[Decision, ...]
    """One for each call, in order."""
    reduced: int = 0
    """Results of which the agent would see less."""

    @property
    def touched(self) -> tuple[int, ...]:
        """The calls that are not allowed as they are."""
        return tuple(at for at, one in enumerate(self.decisions) if one.action is not Action.ALLOW)

    @property
    def stopped(self) -> tuple[int, ...]:
        """The calls that do not run: denied, or put to the user."""
        return tuple(at for at, one in enumerate(self.decisions) if one.action in _STOPS)

    def stops_attack(self, run: RecordedRun) -> bool:
        """Tell whether a call is stopped without which the attack fails."""
        numbers = run.numbered()
        needed = run.labels.attack_calls or ()
        return any(numbers.get(call) in needed for call in self.stopped)


class Contender(Struct, frozen=True):
    """A guardrail that is ready to be asked."""

    name: str
    begin: OpenConversation


class Surroundings:
    """What conversations begin with: tools and the operator's policy."""

    def __init__(
        self, tools: tuple[Declaration, ...] | None = None, policy: Policy = NO_POLICY
    ) -> None:
        self._tools = tools
        self.policy = policy
        self._bare: dict[tuple[str, ...], tuple[Declaration, ...]] = {}
        """Equal names give the same tuple, which a conversation checks once."""

    def tools_of(self, run: RecordedRun) -> tuple[Declaration, ...]:
        """Return the operator's tools, or else the trace's, or else the names in its calls."""
        if self._tools is not None:
            return self._tools
        if run.tools is not None:
            return run.tools
        names = tuple(sorted({step.name for step in run.steps if isinstance(step, Called)}))
        if names not in self._bare:
            if len(self._bare) >= _BARE_KEPT:
                self._bare.clear()
            self._bare[names] = _declare(names)
        return self._bare[names]


def _declare(names: Sequence[str]) -> tuple[Declaration, ...]:
    """Declare tools of which only the names are known, without those that none may have."""
    declared: dict[str, Declaration] = {}
    for name in names[:MAX_TOOLS]:
        try:
            (one,) = read_declarations([{"name": name}])
        except DeclarationError:
            continue
        declared.setdefault(skeleton(name), one)
    return tuple(declared.values())


class Watcher:
    """Receives every run with what each guardrail did."""

    def note(self, run: RecordedRun, played: Sequence[Played]) -> None:
        """Note one run."""

    def skip(self, skipped: Skipped) -> None:
        """Note what could not be read."""


def shadow(
    runs: Iterable[RecordedRun | Skipped],
    contenders: Sequence[Contender],
    surroundings: Surroundings,
    watchers: Sequence[Watcher],
) -> None:
    """Play all guardrails over all runs, one run at a time."""
    with marked_interrupts():  # Once for all runs: conversations would do it for every call.
        for run in runs:
            if isinstance(run, Skipped):
                for watcher in watchers:
                    watcher.skip(run)
                continue
            tools = surroundings.tools_of(run)
            played = [_play(run, one, tools, surroundings.policy) for one in contenders]
            for watcher in watchers:
                watcher.note(run, played)


def _play(
    run: RecordedRun, contender: Contender, tools: tuple[Declaration, ...], policy: Policy
) -> Played:
    conversation = contender.begin(tools, policy)
    try:
        return play(run, conversation)
    finally:
        conversation.close()


def play(run: RecordedRun, conversation: Conversation) -> Played:
    """Play one run. `conversation` is fresh, and the caller closes it."""
    calls: list[Called] = []
    decisions: list[Decision] = []
    reduced = 0
    for step in run.steps:
        if isinstance(step, Said):
            conversation.say(step.text)
        elif isinstance(step, Called):
            calls.append(step)
            decisions.append(conversation.decide(step.name, step.args))
        elif isinstance(step, Returned):
            call, decision = calls[step.call], decisions[step.call]
            if decision.action in _STOPS:
                continue
            args = call.args
            if decision.action is Action.SANITIZE:
                args = dict(decision.sanitized_args or {})
            shown = conversation.observe(call.name, args, step.result)
            reduced += shown != step.result
    return Played(tuple(decisions), reduced)
