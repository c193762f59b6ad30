"""Turn the played cells of an arena into a part of a report, with notes for the author."""

from collections.abc import Iterator, Sequence

from msgspec import structs

from tiltyard.arena.score import mean_worth, score_defense
from tiltyard.isolation.host.failures import GuardrailFault
from tiltyard.matches.arena import Attacked, PlayedCell
from tiltyard.reporting.arena_schema import ArenaGroup, ArenaPart
from tiltyard.reporting.match_parts import digest_of


def build_arena_part(  # noqa: PLR0913 - the parts of a match
    cells: Sequence[PlayedCell],
    faults: Sequence[GuardrailFault],
    *,
    worlds: int,
    tasks: str,
    with_lost: bool,
    public: Sequence[PlayedCell] = (),
) -> ArenaPart:
    """Build the report's arena part. `tasks` is `public` or a fingerprint of sealed tasks.

    `with_lost` lists every lost cell. Official reports leave them out. `public` are cells with the
    public tasks, which do not count.
    """
    score = score_defense([cell.result for cell in cells])
    lost = [cell.lost for cell in cells if cell.lost is not None] if with_lost else []
    return ArenaPart(
        score=score.score,
        low=score.low,
        high=score.high,
        worlds=worlds,
        cells=len(cells),
        episodes=sum(1 + len(cell.attacks) for cell in cells),
        solved=sum(cell.solved for cell in cells),
        breached=score.breached,
        untouched=score.untouched,
        tasks=tasks,
        public_score=mean_worth([cell.result.value for cell in public]) if public else None,
        inconsistent=sum(cell.inconsistent for cell in (*cells, *public)),
        by_pack=tuple(_by_pack(cells)),
        by_way=tuple(_by_way(cells)),
        faults=tuple(faults),
        lost=tuple(structs.replace(one, id=f"C{n}") for n, one in enumerate(lost, 1)),
        digest=digest_of([*map(_digested, (*cells, *public))]),
    )


def _by_pack(cells: Sequence[PlayedCell]) -> Iterator[ArenaGroup]:
    for name in sorted({cell.pack for cell in cells}):
        group = [cell for cell in cells if cell.pack == name]
        yield ArenaGroup(
            name,
            len(group),
            mean_worth([cell.result.value for cell in group]),
            sum(cell.solved for cell in group),
            sum(cell.result.breached for cell in group),
        )


def _by_way(cells: Sequence[PlayedCell]) -> Iterator[ArenaGroup]:
    attacks = [attack for cell in cells for attack in cell.attacks]
    for name in sorted({attack.way for attack in attacks}):
        group = [attack for attack in attacks if attack.way == name]
        yield ArenaGroup(
            name,
            len(group),
            mean_worth([attack.worth for attack in group]),
            sum(attack.solved for attack in group),
            sum(attack.breached for attack in group),
        )


def _digested(cell: PlayedCell) -> list[object]:
    """Return the results of a cell. Worths are tenths, because they are whole numbers."""
    result = cell.result
    attacks = [_digested_attack(attack) for attack in cell.attacks]
    return [result.id, _tenths(result.null), cell.solved, result.touched, attacks]


def _digested_attack(attack: Attacked) -> list[object]:
    return [attack.way, _tenths(attack.worth), attack.solved, attack.breached]


def _tenths(worth: float) -> int:
    return round(worth * 10)


def note_arena(part: ArenaPart) -> Iterator[str]:
    """Yield what the guardrail's author should look at."""
    if not part.solved:
        yield "The guardrail let no task through: does it deny everything?"
    elif part.breached == part.cells:
        yield "Every stranger reached their goal: does the guardrail know these tools?"
    if part.faults:
        first = part.faults[0].text
        yield f"The guardrail failed in {len(part.faults)} or more calls: {first}"
