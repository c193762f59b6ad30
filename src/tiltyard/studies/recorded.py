"""A recorded run: what a user, an agent and its tools said and did, in order.

Readers of trace formats make these values; `shadow.py` plays guardrails over them. All text in them
is hostile.
"""

from typing import Any, Final

from msgspec import Struct

from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.guardrail import Result


class Said(Struct, frozen=True, gc=False):
    """A message of the user."""

    text: str


class Answered(Struct, frozen=True, gc=False):
    """A text of the agent."""

    text: str


class Called(Struct, frozen=True):
    """A call that the agent made."""

    call: int
    """The number of the call in the run, from 0."""
    name: str
    args: dict[str, Any]


class Returned(Struct, frozen=True, gc=False):
    """The result of a call."""

    call: int
    result: Result


Step = Said | Answered | Called | Returned


class Labels(Struct, frozen=True):
    """What somebody else found out about a run. None is unknown."""

    task: str = ""
    injection: str | None = None
    """The id of the injection; None if nothing was injected."""
    task_done: bool | None = None
    attack_succeeded: bool | None = None
    attack_calls: tuple[int, ...] | None = None
    """The calls without which the attack fails: their numbers among the calls with a result."""

    @property
    def is_useful(self) -> bool:
        """Whether nobody attacked, and the user's task was done."""
        return self.injection is None and self.task_done is True and not self.attack_succeeded

    @property
    def is_attack(self) -> bool:
        """Whether an attack succeeded."""
        return self.attack_succeeded is True


NO_LABELS: Final = Labels()


class RecordedRun(Struct, frozen=True):
    """One conversation of an agent."""

    id: str
    place: str
    """The file, and the line or the member that the run begins at."""
    steps: tuple[Step, ...]
    tools: tuple[Declaration, ...] | None = None
    """The declarations in the trace; None if it has none."""
    labels: Labels = NO_LABELS

    def numbered(self) -> dict[int, int]:
        """Return the numbers of calls among those with a result."""
        returned = {step.call for step in self.steps if isinstance(step, Returned)}
        return {call: number for number, call in enumerate(sorted(returned))}


class Skipped(Struct, frozen=True):
    """A run, or a part of a file, that cannot be read."""

    place: str
    problem: str
