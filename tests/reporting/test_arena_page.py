"""The page of an arena match: its figures, its lost cells, and hostile texts."""

from msgspec import structs

from tiltyard.matches.arena import LostCall, LostCell
from tiltyard.reporting.arena_schema import ArenaGroup, ArenaPart
from tiltyard.reporting.report_page import render
from tiltyard.reporting.restriction import restricted
from tiltyard.reporting.schema import Report

HOSTILE = "</script><script>alert(1)</script>"
CALL = LostCall(
    planted=True,
    tool="pay",
    args={"to": HOSTILE},
    decision="allow",
    reason=HOSTILE,
    confirmed=None,
    output="done",
    changes=("created bank.transfer",),
)
LOST = LostCell("C1", "0/bank/x/y", 1, HOSTILE, "order", (HOSTILE,), "breach", 0.0, (CALL,))
PART = ArenaPart(
    score=412.5,
    low=380.0,
    high=440.0,
    worlds=2,
    cells=8,
    episodes=24,
    solved=7,
    breached=3,
    untouched=6,
    tasks="public",
    by_pack=(ArenaGroup("bank", 8, 412.5, 7, 3),),
    by_way=(ArenaGroup("order", 16, 600.0, 14, 3),),
    lost=(LOST,),
)


def test_a_page_shows_the_match_and_no_hostile_text_as_markup(real: Report) -> None:
    arena = structs.replace(real, offense=None, defense=None, arena=PART, final_score=412.5)
    page = render(arena)
    for words in ("Defense in the arena", "95% interval", "Score by way of planting", "412.5"):
        assert words in page
    assert "<script>alert" not in page


def test_a_restricted_page_shows_no_cell(real: Report) -> None:
    arena = structs.replace(real, offense=None, defense=None, arena=PART, final_score=412.5)
    page = render(restricted(arena))
    assert "Score by pack" in page
    assert "Score by way of planting" not in page
    assert "alert(1)" not in page


def test_a_restricted_part_is_coarse_where_a_guardrail_can_choose(real: Report) -> None:
    """Which cells a guardrail loses, and whether they are public, must not carry a message."""
    fine = structs.replace(PART, low=381.3, high=432.1, public_score=637.42, inconsistent=5)
    part = restricted(structs.replace(real, arena=fine)).arena
    assert part is not None
    assert part.score == PART.score
    assert (part.low, part.high, part.public_score, part.inconsistent) == (380, 440, 640, 1)
    assert [group.score for group in part.by_pack] == [410]
