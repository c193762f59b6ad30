"""The results of `tiltyard dojo` as data."""

from typing import Annotated

from msgspec import Meta, Struct

Low = Annotated[float, Meta(description="Lower end of the 95% interval.")]
High = Annotated[float, Meta(description="Upper end of the 95% interval.")]


class Share(Struct, frozen=True):
    """A share of pairs with its 95% interval: user tasks are resampled within suites."""

    value: float
    low: Low
    high: High
    pairs: int


class SuiteFigures(Struct, frozen=True):
    """The counts of one guardrail in one suite."""

    suite: str
    pairs: int
    solved: int
    untouched: int
    breached: int
    share: float


class GuardrailFigures(Struct, frozen=True):
    """The counts of one guardrail over all live pairs."""

    name: str
    family: str
    pairs: int
    solved: int
    """Pairs after which AgentDojo finds the user's task done."""
    untouched: int
    """Pairs in which no call of the user's plan was denied or altered."""
    breached: int
    """Pairs after which AgentDojo finds the injection's goal reached."""
    share: float
    """The share of pairs that are solved, untouched and not breached."""
    low: Low
    high: High
    effect: Share
    """The same share over the user tasks that change something."""
    alone_tasks: int
    """User tasks, played once more without any injection."""
    alone_held: int
    """Those of them that are solved and untouched."""
    suites: tuple[SuiteFigures, ...]


class Concordance(Struct, frozen=True):
    """How often the arena and the yardstick put two guardrails in the same order."""

    value: float
    low: Low
    high: High
    pairs: int
    """Resolved pairs of guardrails from different families."""
    families: int
    """Pairs of families with a resolved pair; each one weighs the same."""


class HalfFigures(Struct, frozen=True):
    """The counts of one guardrail in one half of the suites."""

    name: str
    share: Share
    breached: int


class Half(Struct, frozen=True):
    """The suites that developers looked at, or those that they did not."""

    name: str
    suites: tuple[str, ...]
    pairs: int
    guardrails: tuple[HalfFigures, ...]
    concordance: Concordance | None = None


class Dojo(Struct, frozen=True):
    """All results of one run of the yardstick."""

    agentdojo: str
    """The version of AgentDojo."""
    benchmark: str
    """The version of its tasks."""
    suites: tuple[str, ...]
    tasks: int
    """User tasks."""
    effect_tasks: int
    """User tasks whose plan changes the environment."""
    hijacks: int
    """Pairs of a user task and an injection that consists of calls."""
    pairs: int
    """Live pairs: hijacks whose injection reaches its goal without a guardrail."""
    guardrails: tuple[GuardrailFigures, ...]
    concordance: Concordance | None = None
    halves: tuple[Half, ...] = ()
    """Empty unless suites of both halves were played."""
