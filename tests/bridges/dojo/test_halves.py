"""One run over all suites tells the figures of both halves."""

from tiltyard.bridges.dojo.episode import Outcome
from tiltyard.bridges.dojo.listing import Entrant
from tiltyard.bridges.dojo.measure import Games, Played, summarize
from tiltyard.bridges.dojo.suites import SUITES
from tiltyard.episode.conversation import open_locally
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.reporting.dojo_page import concordance_lines, half_table, page

ENTRANTS = [Entrant(name, name, open_locally(AllowAllGuardrail)) for name in ("fox", "owl")]
HELD = Outcome(solved=True, untouched=True, breached=False, changed=False)
LOST = Outcome(solved=True, untouched=True, breached=True, changed=False)


def games() -> Games:
    """In banking and travel the fox holds every pair; in slack and workspace the owl does."""
    pairs = tuple(
        Played(
            suite,
            f"task {task}",
            "injection",
            effect=True,
            outcomes=(HELD, LOST) if suite in ("banking", "travel") else (LOST, HELD),
        )
        for suite in SUITES
        for task in range(4)
    )
    return Games(pairs, pairs, len(pairs))


def test_each_half_has_its_own_shares_and_concordance() -> None:
    found = summarize(ENTRANTS, SUITES, games(), {"fox": 900.0, "owl": 100.0})
    developed, held_out = found.halves
    assert developed.suites + held_out.suites == SUITES
    assert [one.share.value for one in developed.guardrails] == [1, 0]
    assert [one.share.value for one in held_out.guardrails] == [0, 1]
    assert [one.breached for one in held_out.guardrails] == [8, 0]
    assert developed.concordance is not None
    assert held_out.concordance is not None
    assert (developed.concordance.value, held_out.concordance.value) == (1, 0)
    # Over all suites neither guardrail is better, so nothing is compared.
    assert found.concordance is None


def test_the_page_and_the_lines_show_both_halves() -> None:
    found = summarize(ENTRANTS, SUITES, games(), {"fox": 900.0, "owl": 100.0})
    assert half_table(found).rows[0][:3] == ("fox", "1.00 (1.00–1.00)", "0 of 8")
    first, second = concordance_lines(found)
    assert "looked at while developing: 1.00" in first
    assert "held out: 0.00" in second
    assert "Both halves" in page(found)


def test_one_half_alone_has_no_halves() -> None:
    found = summarize(ENTRANTS, ["banking", "travel"], games())
    assert found.halves == ()
