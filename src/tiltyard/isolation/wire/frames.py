"""The frames: everything that judge and guest can say to each other, as types.

The decoder checks every field, so a guest cannot send a kind, a verb or a length that is not
written here. Nothing else in a frame from a guest is trusted.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from tiltyard.contracts.asking import MAX_QUESTION_CHARS
from tiltyard.contracts.decision import Action, Fault
from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.guardrail import Result
from tiltyard.contracts.policy import Policy
from tiltyard.contracts.tracks import Part
from tiltyard.world.results import ToolError
from tiltyard.world.text import SourceKind

MAX_MESSAGE_CHARS: Final = 500
MAX_TRACEBACK_CHARS: Final = 8_000
RESET: Final = -1
SNAPSHOT: Final = -2
MAX_MOVES: Final = 64
MAX_SNAPSHOTS: Final = 200_000
MAX_LINES: Final = 50
"""Lines of the submission in one traceback: the innermost ones."""

Plain = str | int | None
ShortText = Annotated[str, Meta(max_length=MAX_MESSAGE_CHARS)]


# From the judge to the guest


class Load(Struct, tag="load", frozen=True, array_like=True):
    """Import the submission and construct its class."""

    part: Part
    module: str
    """A file or package of the submission."""
    key: str
    """The seed of the guest's randomness."""
    packages: tuple[str, ...] = ()


class Seen(Struct, tag="seen", frozen=True, array_like=True):
    """Add an event to the context, and show it to `observe` if its call ran."""

    name: str
    args: dict[str, Plain]
    ok: bool
    output: str
    error: ToolError | None
    source: SourceKind
    decision: Action
    reason: str
    observe: bool


class Enter(Struct, tag="enter", frozen=True, array_like=True):
    """Go to a committed state; handle 0 is the beginning of an episode."""

    handle: int


class Begin(Struct, tag="begin", frozen=True, array_like=True):
    """Begin a turn with a message from the user."""

    message: str


class Close(Struct, tag="close", frozen=True, array_like=True):
    """End the turn."""


class Commit(Struct, tag="commit", frozen=True, array_like=True):
    """Keep the present state under a handle."""

    handle: int


class Forget(Struct, tag="forget", frozen=True, array_like=True):
    """Drop these states: the judge does not return to them."""

    handles: list[int]


class Redo(Struct, tag="redo", frozen=True, array_like=True):
    """Decide a call again for its effect on the state; the judge knows the decision."""

    name: str
    args: dict[str, Plain]


Note = Enter | Begin | Seen | Close | Commit | Forget | Redo


class Decide(Struct, tag="decide", frozen=True, array_like=True):
    """Apply the notes in order. Then decide a call, if `name` is not empty."""

    notes: list[Note]
    name: str = ""
    args: dict[str, Plain] = {}


class Converse(Struct, tag="converse", frozen=True, array_like=True):
    """Begin a conversation over declared tools. It lasts until the guest ends."""

    tools: tuple[Declaration, ...]
    policy: Policy


class Declare(Struct, tag="declare", frozen=True, array_like=True):
    """Replace the tools of the conversation."""

    tools: tuple[Declaration, ...]


class Say(Struct, tag="say", frozen=True, array_like=True):
    """The user says something in the conversation."""

    message: str


class DecideCall(Struct, tag="decide-call", frozen=True, array_like=True):
    """Decide a call in the conversation."""

    name: str
    args: dict[str, Any]


class ShowResult(Struct, tag="show-result", frozen=True, array_like=True):
    """Show the result of a call to `observe`."""

    name: str
    args: dict[str, Any]
    result: Result


class ModelAnswer(Struct, tag="model-answer", frozen=True, array_like=True):
    """The answer to an `AskModel`."""

    answer: Any = None
    error: str = ""
    """Why there is no answer; empty if there is one."""


class RunAttack(Struct, tag="run-attack", frozen=True, array_like=True):
    """Run the attack."""

    seed: int
    max_steps: int
    max_tool_hops: int
    time_budget_s: float


class EnvReply(Struct, tag="env-reply", frozen=True, array_like=True):
    """The result of an `EnvCall`."""

    events: list[Any] = []
    """Public events, as arrays of their fields."""
    answer: str = ""
    number: int = 0
    """The number of all events so far."""
    egress: list[tuple[str, str]] = []
    """Pairs of URL and data that were posted."""
    more: bool = False
    """More events wait: ask for them with `more`."""
    steps_left: int | None = None
    budget_spent: bool = False
    """No steps are left: the call did nothing."""
    error: str = ""
    """Why the call was refused; empty if it was not."""
    full: str = ""
    """Why no snapshot can be taken before the next reset or restore; empty if one can."""


FromJudge = (
    Load
    | Decide
    | Converse
    | Declare
    | Say
    | DecideCall
    | ShowResult
    | ModelAnswer
    | RunAttack
    | EnvReply
)


# From the guest to the judge


class Ready(Struct, tag="ready", frozen=True, array_like=True):
    """The submission is loaded."""

    python: str


class SourceLine(Struct, frozen=True, array_like=True):
    """A line of the submission, as a guest claims it."""

    file: ShortText
    line: Annotated[int, Meta(ge=1, le=1_000_000)]


FailedAt = Literal["import", "class", "construct", "contract", "run", "result"]


class Failed(Struct, tag="failed", frozen=True, array_like=True):
    """The submission could not be loaded, or its attack failed."""

    kind: FailedAt
    message: ShortText
    exception: ShortText = ""
    """The name of the exception's type, without its module."""
    lines: Annotated[list[SourceLine], Meta(max_length=MAX_LINES)] = []
    """The traceback's lines inside the submission, the innermost last."""
    traceback: Annotated[str, Meta(max_length=MAX_TRACEBACK_CHARS)] = ""


class FaultNote(Struct, frozen=True, array_like=True):
    """An error inside the guardrail, and the line of the submission that it comes from."""

    kind: Fault
    message: ShortText
    at: SourceLine | None = None


class Decided(Struct, tag="decided", frozen=True, array_like=True):
    """The guardrail's decision."""

    action: Action
    reason: str
    args: dict[str, Plain] | None = None
    fault: FaultNote | None = None
    observe_errors: list[FaultNote] = []


class Noted(Struct, tag="noted", frozen=True, array_like=True):
    """The notes are applied, and there was nothing to decide."""

    observe_errors: list[FaultNote] = []


class CallDecided(Struct, tag="call-decided", frozen=True, array_like=True):
    """The guardrail's decision about a call in a conversation."""

    action: Action
    reason: ShortText
    args: dict[str, Any] | None = None
    """With SANITIZE: the arguments to use instead, as JSON values."""
    fault: FaultNote | None = None


class ResultShown(Struct, tag="result-shown", frozen=True, array_like=True):
    """What the guardrail lets the agent see of a result."""

    withheld: bool
    """True if the guardrail failed, so that the agent gets nothing."""
    error: ShortText = ""
    fault: FaultNote | None = None
    reduced: tuple[str, Any] | None = None
    """`output` and `structured`, if the guardrail reduced them."""


class AskModel(Struct, tag="ask-model", frozen=True, array_like=True):
    """The guardrail asks a model while it decides a call: the judge answers, and waits again."""

    question: Annotated[str, Meta(max_length=MAX_QUESTION_CHARS)]
    schema: dict[str, Any]


class Forgotten(Struct, tag="forgotten", frozen=True, array_like=True):
    """The guest has dropped the requested state: send the history from the beginning."""


class EnvCall(Struct, tag="env-call", frozen=True, array_like=True):
    """The attack sends a message, or asks for the rest of an answer, or only moves."""

    method: Literal["interact", "more", "move"]
    message: str = ""
    max_tool_hops: int = 0
    moves: Annotated[list[int], Meta(max_length=MAX_MOVES)] = []
    """What to do before: `RESET`, `SNAPSHOT`, or restore the snapshot with this number. Snapshots
    are numbered from 0. Both sides know how a move ends, so it needs no answer of its own."""


class Candidates(Struct, tag="candidates", frozen=True, array_like=True):
    """The attack has ended, and returned these candidates."""

    candidates: list[list[str | None] | str]
    """The messages of each candidate. None stands for a message that is not text, a string for
    something that is not a candidate."""
    more: bool = False
    """More candidates wait: send any frame to get them."""


FromGuest = (
    Ready
    | Failed
    | Decided
    | Noted
    | CallDecided
    | ResultShown
    | AskModel
    | Forgotten
    | EnvCall
    | Candidates
)
