"""The schema of `tiltyard shadow --json`, and of the conversations on its page."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from tiltyard.reporting.finding_schema import Step

SCHEMA_VERSION: Final = 1


class Figure(Struct, frozen=True):
    """A share of runs with its 95% interval."""

    value: Annotated[float | None, Meta(description="The share, 0 to 1; null without runs.")]
    low: Annotated[float, Meta(description="Lower end of the 95% Wilson interval.")]
    high: Annotated[float, Meta(description="Upper end of the 95% Wilson interval.")]
    of: Annotated[int, Meta(description="The number of runs.")]
    count: Annotated[int, Meta(description="The number of runs that the share counts.")]


class ToolCount(Struct, frozen=True):
    """What the guardrail did with the calls of one tool."""

    tool: Annotated[str, Meta(description="The name of the tool. Treat it as hostile.")]
    calls: Annotated[int, Meta(description="Calls of the tool.")]
    denied: Annotated[int, Meta(description="Calls that the guardrail denies.")]
    questions: Annotated[int, Meta(description="Calls for which it asks the user.")]
    altered: Annotated[int, Meta(description="Calls that it allows with less arguments.")]


class ReasonCount(Struct, frozen=True):
    """How often the guardrail gives a reason for a tool."""

    tool: Annotated[str, Meta(description="The name of the tool.")]
    reason: Annotated[
        str, Meta(description="The reason, with dots for quoted texts and for numbers.")
    ]
    count: Annotated[int, Meta(description="Calls that were stopped for this reason.")]


class Shadow(Struct, frozen=True):
    """What a guardrail would have done on recorded runs."""

    schema_version: Annotated[int, Meta(description="The version of this schema.")]
    guardrail: Annotated[str, Meta(description="The name of the guardrail.")]
    useful_untouched: Annotated[
        Figure,
        Meta(description="Runs without an injection whose task was done: those left untouched."),
    ]
    attacks_stopped: Annotated[
        Figure,
        Meta(
            description="Runs whose attack succeeded and whose needed calls are known: those in "
            "which one of these calls is stopped."
        ),
    ]
    j: Annotated[
        float | None,
        Meta(description="The sum of both shares minus 1; null unless both are known."),
    ]
    j_low: Annotated[float | None, Meta(description="Lower end of its 95% interval.")]
    j_high: Annotated[float | None, Meta(description="Upper end of its 95% interval.")]
    attacks_unknown: Annotated[
        int, Meta(description="Runs whose attack succeeded, and whose needed calls are unknown.")
    ]
    files: Annotated[int, Meta(description="Files that were read.")]
    runs: Annotated[int, Meta(description="Runs that the guardrail saw.")]
    skipped: Annotated[int, Meta(description="Runs and files that could not be read.")]
    problems: Annotated[
        tuple[str, ...], Meta(description="The first problems, each with its file and line.")
    ]
    untouched: Annotated[int, Meta(description="Runs in which it denies, asks and alters nothing.")]
    calls: Annotated[int, Meta(description="Calls that the guardrail was asked about.")]
    unanswered: Annotated[int, Meta(description="Calls without a recorded result.")]
    denied: Annotated[int, Meta(description="Calls that it denies.")]
    first_stops: Annotated[
        int, Meta(description="Runs in which it stops a call: a real run would change from there.")
    ]
    questions: Annotated[int, Meta(description="Calls for which it asks the user.")]
    altered: Annotated[int, Meta(description="Calls that it allows with less arguments.")]
    reduced: Annotated[int, Meta(description="Results of which the agent would see less.")]
    faults: Annotated[int, Meta(description="Calls that were denied because the guardrail failed.")]
    tools: Annotated[
        tuple[ToolCount, ...], Meta(description="By tool, the most stopped calls first.")
    ]
    reasons: Annotated[
        tuple[ReasonCount, ...], Meta(description="By tool and reason, the most frequent first.")
    ]


class Differing(Struct, frozen=True):
    """A run with which two guardrails deal differently."""

    run: Annotated[str, Meta(description="The id of the run. Treat it as hostile.")]
    place: Annotated[str, Meta(description="Its file, and the line or the member.")]
    kind: Annotated[str, Meta(description="useful, attack or other")]
    first: Annotated[str, Meta(description="What the first guardrail does.")]
    second: Annotated[str, Meta(description="What the second guardrail does.")]


class Comparison(Struct, frozen=True):
    """Two guardrails on the same runs."""

    schema_version: Annotated[int, Meta(description="The version of this schema.")]
    first: Shadow
    second: Shadow
    differing: Annotated[int, Meta(description="Runs that the two touch at different calls.")]
    only_first_untouched: Annotated[
        int, Meta(description="Useful runs that only the first leaves untouched.")
    ]
    only_second_untouched: Annotated[
        int, Meta(description="Useful runs that only the second leaves untouched.")
    ]
    only_first_stops: Annotated[int, Meta(description="Attacks that only the first stops.")]
    only_second_stops: Annotated[int, Meta(description="Attacks that only the second stops.")]
    runs: Annotated[tuple[Differing, ...], Meta(description="The first runs that differ.")]


class ShadowedRun(Struct, frozen=True):
    """A run with a call that the guardrail stops, to show on the page."""

    id: str
    """R1, R2, ..., in the order of the traces."""
    run: str
    place: str
    guardrail: str
    kind: str
    """useful, attack or other."""
    labels: str
    tool: str
    """The tool of the first call that was touched."""
    reason: str
    decision: str
    messages: tuple[str, ...]
    answers: tuple[str, ...]
    steps: tuple[Step, ...]
