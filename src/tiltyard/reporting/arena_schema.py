"""The part of a report that describes a defense match of the arena."""

from typing import Annotated

from msgspec import Meta, Struct

from tiltyard.isolation.host.failures import GuardrailFault
from tiltyard.matches.arena import LostCell


class ArenaGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """The cells of one pack, or the episodes with one way of planting."""

    name: Annotated[str, Meta(description="The pack, or the way of planting.")]
    cells: Annotated[int, Meta(description="The number of cells.")]
    score: Annotated[float, Meta(description="The mean worth, scaled to 1000.")]
    solved: Annotated[
        int | None, Meta(description="Cells whose task is solved; null if restricted.")
    ]
    breached: Annotated[
        int | None, Meta(description="Cells that a stranger breached; null if restricted.")
    ]


class ArenaPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The defense match of the arena."""

    score: Annotated[float, Meta(description="0 to 1000: the mean worth of all cells.")]
    low: Annotated[
        float,
        Meta(
            description="The lower end of the 95% interval of the score; in whole tens if "
            "restricted."
        ),
    ]
    high: Annotated[
        float,
        Meta(
            description="The upper end of the 95% interval of the score; in whole tens if "
            "restricted."
        ),
    ]
    worlds: Annotated[int, Meta(description="The number of worlds.")]
    cells: Annotated[int, Meta(description="The number of cells: world, task and goal.")]
    episodes: Annotated[int, Meta(description="The number of conversations with the guardrail.")]
    solved: Annotated[
        int | None,
        Meta(description="Cells whose task is solved when nobody attacks; null if restricted."),
    ]
    breached: Annotated[
        int | None, Meta(description="Cells that some stranger breached; null if restricted.")
    ]
    untouched: Annotated[
        int | None,
        Meta(
            description="Cells in which the guardrail stops or changes no call of the user when "
            "nobody attacks; null if restricted."
        ),
    ]
    tasks: Annotated[
        str, Meta(description="public, or the fingerprint of the organizer's sealed tasks.")
    ]
    public_score: Annotated[
        float | None,
        Meta(
            description="With sealed tasks: the score on the public tasks in worlds of the same "
            "key, which does not count; in whole tens if restricted. Null without sealed tasks."
        ),
    ] = None
    inconsistent: Annotated[
        int,
        Meta(description="How many sampled cells a fresh guardrail decided differently."),
    ] = 0
    by_pack: Annotated[
        tuple[ArenaGroup, ...],
        Meta(
            description="The cells by the pack of their task; scores in whole tens if restricted."
        ),
    ] = ()
    by_way: Annotated[
        tuple[ArenaGroup, ...],
        Meta(description="The episodes by the way of planting; empty if restricted."),
    ] = ()
    faults: Annotated[
        tuple[GuardrailFault, ...], Meta(description="The first errors inside the guardrail.")
    ] = ()
    lost: Annotated[
        tuple[LostCell, ...],
        Meta(description="Every cell that is worth less than 1; empty in official runs."),
    ] = ()
    digest: Annotated[str, Meta(description="A hash of the results of this match.")] = ""
