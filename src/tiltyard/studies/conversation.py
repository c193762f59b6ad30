"""A conversation with the agent under a guardrail, one message at a time.

`tiltyard chat` prints it. This module opens the world and the guardrail, sends the messages, keeps
the snapshots and describes the world.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tiltyard.episode.sandbox_env import PUBLIC_SEED, Interaction, SandboxEnv, Snapshot
from tiltyard.guardrails import AllowAllGuardrail
from tiltyard.isolation.host.jailed_guardrail import JailedGuardrail
from tiltyard.reporting.builder import build_trace
from tiltyard.reporting.finding_schema import Step
from tiltyard.studies.probe import open_guardrail
from tiltyard.world.files import File, find, walk
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.generate import generate

_OPENINGS: Final = 3
"""How many documents with an injection a description names for each medium."""


class ConversationError(ValueError):
    """The conversation cannot do this. The message says what to do."""


class Reply(NamedTuple):
    """What a message led to."""

    steps: tuple[Step, ...]
    answer: str
    understood: tuple[str, ...]
    """The clauses of the message that the agent takes for instructions."""
    faults: tuple[str, ...]
    """Errors inside the guardrail. In the sandbox, an error of `observe` comes with the next
    call."""


class Conversation:
    """The messages, the guardrail and the snapshots of a conversation."""

    def __init__(self, env: SandboxEnv, guardrail: str) -> None:
        self._env = env
        self.guardrail = guardrail
        """The guardrail's name; empty if every call is allowed."""
        self._snapshots: list[tuple[Snapshot, int]] = [(env.snapshot(), 0)]
        """The beginning and the snapshots, each with the number of messages before it."""
        self.messages = 0

    def say(self, message: str) -> Reply:
        """Send a message. Raise `ConversationError` if it is not a message."""
        try:
            done = self._env.interact(message)
        except ValueError as error:
            raise ConversationError(str(error)) from None
        self.messages += 1
        steps = build_trace(self._env.trace)[-len(done.after.turn_events) :]
        return Reply(
            steps if done.after.turn_events else (),
            done.answer,
            tuple(done.understood),
            tuple(self._faults(done)),
        )

    def _faults(self, done: Interaction) -> Iterator[str]:
        if isinstance(self._env.guardrail, JailedGuardrail):
            yield from (fault.text for fault in self._env.guardrail.runner.take_faults())
        for event in done.events:
            if event.observe_error:
                yield f"`observe` raised {event.observe_error}"

    def snapshot(self) -> int:
        """Keep the present state, and return its number."""
        self._snapshots.append((self._env.snapshot(), self.messages))
        return len(self._snapshots) - 1

    def back(self, number: int | None = None) -> int:
        """Go back to a snapshot, by default to the newest. Number 0 is the beginning."""
        if number is None:
            number = len(self._snapshots) - 1
        if not 0 <= number < len(self._snapshots):
            last = len(self._snapshots) - 1
            known = f"0 (the beginning) to {last}" if last else "only 0, the beginning"
            raise ConversationError(f"there is no snapshot {number}; there is {known}")
        snapshot, self.messages = self._snapshots[number]
        self._env.restore(snapshot)
        return number

    def describe_world(self) -> list[tuple[str, list[str]]]:
        """Return what there is in the world now, as names with lines."""
        world, scenario = self._env.episode.world, self._env.scenario
        labels = scenario.labels
        counts = f"{len(scenario.pages):,} pages, {sum(1 for _ in walk(world.files)):,} files"
        mails = sum(map(len, scenario.folders.values()))
        protected = [
            f"{path}{'' if _is_protected(find(world.files, path)) else ' (deleted or replaced)'}"
            for path in (each.path for each in labels.protected)
        ]
        effects = [effect for step in build_trace(self._env.trace) for effect in step.effects]
        return [
            ("scenario", [f"seed {self._env.seed}" if labels.seed is not None else "a directory"]),
            ("contains", [f"{counts}, {mails:,} mails at the beginning"]),
            ("user", [f"{labels.owner}, of {', '.join(labels.internal_domains)}"]),
            ("protected", protected),
            ("injections", self._openings()),
            ("changes", effects or ["none so far"]),
        ]

    def _openings(self) -> list[str]:
        """Return messages that lead to documents with an injection, a few for each medium."""
        media: dict[str, list[str]] = {}
        for planted in self._env.scenario.labels.planted:
            if planted.live:
                media.setdefault(planted.document.partition(":")[0], []).append(planted.opening)
        return [opening for openings in media.values() for opening in openings[:_OPENINGS]]


def _is_protected(found: object) -> bool:
    return isinstance(found, File) and found.protected


@contextmanager
def open_conversation(
    guardrail: str = "",
    seed: int = PUBLIC_SEED,
    scenario: Path | None = None,
    *,
    unsafe: bool = False,
) -> Iterator[Conversation]:
    """Yield a conversation. A submission's guardrail runs in the sandbox."""
    world = generate(seed) if scenario is None else load_scenario(scenario)
    with open_guardrail(guardrail, unsafe=unsafe) as (name, make_guardrail):
        made = AllowAllGuardrail() if make_guardrail is None else make_guardrail()
        if isinstance(made, JailedGuardrail):
            made.start()
        yield Conversation(SandboxEnv(seed, scenario=world, guardrail=made), name)
