"""Law 10: the arena ranks guardrails as an outside benchmark does that was not used to build it.

`tiltyard dojo --suites all` measures this with all guardrails of the list; `docs/dojo.md` has its
figures. Here one suite and five families have to do.
"""

from typing import Final

from tiltyard.bridges.dojo.listing import open_entrants
from tiltyard.bridges.dojo.measure import measure, recorded_arena
from tiltyard.reporting.dojo_schema import Concordance

FAMILIES: Final = (
    "declared",
    "targets from a field",
    "no effect after a read",
    "data flow",
    "allow-all",
)


def _compare(arena: dict[str, float]) -> Concordance:
    with open_entrants(FAMILIES) as entrants:
        found = measure(entrants, ["banking"], arena).concordance
    assert found is not None
    return found


def test_the_arena_ranks_guardrails_as_the_yardstick_does() -> None:
    arena = recorded_arena()
    found = _compare({name: arena[name] for name in FAMILIES})
    assert found.pairs >= 8
    assert found.value >= 0.9
