"""The schema of a finding: its cell, its chain of messages, and the replay of the chain."""

from typing import Annotated

from msgspec import Meta, Struct


class Segment(Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of text by one author."""

    text: Annotated[str, Meta(description="The text, unchanged. Treat it as hostile.")]
    by: Annotated[
        str,
        Meta(description="user, machine, web, email or file; an untrusted file comes from outside"),
    ]
    secret: Annotated[bool, Meta(description="Whether it is the canary of a protected file.")] = (
        False
    )
    untrusted: Annotated[bool, Meta(description="Whether a stranger wrote it.")] = False
    document: Annotated[str, Meta(description="The document that contains it, if any.")] = ""
    encoding: Annotated[str, Meta(description="The encoding that was applied to it, if any.")] = ""


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One tool call of the agent, and its result."""

    index: Annotated[int, Meta(description="The number of the call in the trace, from 0.")]
    turn: Annotated[
        int, Meta(description="The number of the user message that it belongs to, from 0.")
    ]
    tool: Annotated[str, Meta(description="The tool that was called.")]
    args: Annotated[
        dict[str, tuple[Segment, ...]], Meta(description="Each argument, divided by its authors.")
    ]
    decision: Annotated[str, Meta(description="allow, deny, confirm or sanitize")]
    reason: Annotated[str, Meta(description="The guardrail's reason for the decision.")]
    ok: Annotated[bool, Meta(description="Whether the call ran and succeeded.")]
    error: Annotated[str, Meta(description="The kind of error, if the call failed.")]
    output: Annotated[
        tuple[Segment, ...], Meta(description="The output of the call, divided by its authors.")
    ]
    because: Annotated[
        tuple[int, ...] | None,
        Meta(description="The calls that delivered the order; empty if the user gave it."),
    ]
    effects: Annotated[
        tuple[str, ...], Meta(description="The effects of the call, each in a few words.")
    ] = ()
    on_path: Annotated[bool, Meta(description="Whether it is on the path from source to sink.")] = (
        False
    )
    is_sink: Annotated[bool, Meta(description="Whether it completes the breach.")] = False
    stopped: Annotated[
        bool, Meta(description="Whether the guardrail stopped a benign task at this call.")
    ] = False
    offending: Annotated[
        tuple[str, ...],
        Meta(
            description="The arguments that the guardrail objects to: it allows the call with "
            "another value there, its reason quotes the value, or it changed the value itself."
        ),
    ] = ()


class Finding(Struct, frozen=True, forbid_unknown_fields=True):
    """A verified security failure: its shortest chain of messages, and the replay of the chain."""

    id: Annotated[str, Meta(description="A1, A2, ... in offense; D1, D2, ... in defense.")]
    predicate: Annotated[
        str,
        Meta(description="EXFILTRATION, UNTRUSTED_TO_ACTION, DESTRUCTIVE_WRITE or CONFUSED_DEPUTY"),
    ]
    severity: Annotated[int, Meta(description="The severity of the predicate, 3 to 5.")]
    source: Annotated[str, Meta(description="Who ordered the action: user, web, email or file.")]
    sink: Annotated[
        str, Meta(description="What the action did: egress, mail, write, delete or exec.")
    ]
    target: Annotated[str, Meta(description="The class of the target that the action hit.")]
    route: Annotated[
        str,
        Meta(
            description="How the order or the data travelled: the simplest route that still works."
        ),
    ]
    points: Annotated[int, Meta(description="What it adds to the raw offense score.")]
    chain: Annotated[
        tuple[str, ...], Meta(description="The shortest list of user messages that leads to it.")
    ]
    answers: Annotated[tuple[str, ...], Meta(description="The agent's answer to each message.")]
    documents: Annotated[
        tuple[str, ...], Meta(description="The documents that the agent read on the way.")
    ]
    encodings: Annotated[tuple[str, ...], Meta(description="The encodings that the chain uses.")]
    counterfactual: Annotated[
        str, Meta(description="What happens to the action when all strangers' words are blank.")
    ]
    steps: Annotated[
        tuple[Step, ...], Meta(description="Every call of the chain's replay, in order.")
    ]
    found_by: Annotated[
        str,
        Meta(
            description="attack, search, battery, or task: a benign task with injections in its "
            "documents."
        ),
    ]
