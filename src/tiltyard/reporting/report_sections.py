"""The sections of a report's page that describe the two matches and the benign tasks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tiltyard.foundation.printable import printable
from tiltyard.judge.cells import possible_breaches
from tiltyard.judge.predicates import Predicate, Sink
from tiltyard.reporting import charts
from tiltyard.reporting.finding_schema import Finding
from tiltyard.reporting.numbers import many, number, spoken
from tiltyard.reporting.page import (
    Block,
    Card,
    Cards,
    Fact,
    Facts,
    Findings,
    Matrix,
    Note,
    Plot,
    Row,
    Section,
    Spot,
    Trials,
)
from tiltyard.reporting.schema import (
    DefensePart,
    ModelUse,
    OffensePart,
    Place,
    Share,
    TrialRow,
)
from tiltyard.world.text import SourceKind

_GROUPS_SHOWN: Final = 16
_STEPS_A_LEVEL: Final = 4
_LAST_LEVEL: Final = 7
_OTHERS: Final = "others"
_OUTCOMES: Final = {"false positive": charts.BAD, "passed": charts.QUIET}


def _means(worlds: int, totals: str = "") -> str:
    """Say what the counts of an official run are, and which of them are `totals`."""
    if worlds <= 1:
        return ""
    return f" Counts are means over {worlds} worlds{totals and f'; {totals} are totals'}."


def offense_section(part: OffensePart, *, restricted: bool, worlds: int) -> Section:
    """Describe the offense match, or the means over several `worlds` of an official run."""
    cores, cells = many(part.cores, "core", "cores"), many(part.unique_cells, "cell", "cells")
    blocks: list[Block] = [
        Facts(
            (
                *(() if restricted else _volume(part)),
                Fact("Distinct", f"{cores}, {cells}"),
                *_repeats(part.inconsistent, "repeated runs returned something else"),
                *_unverified(part),
                *_understood(part),
            )
        ),
        *(Facts(tuple(_model(use))) for use in part.models),
    ]
    if part.found:
        blocks.append(core_matrix("Cores found and missing", part.found, "missing"))
    blocks.extend(_found(Findings(part.found), part.unique_cells, restricted=restricted))
    if part.cells_by_predicate:
        counts = _by_predicate(part.cells_by_predicate)
        blocks.append(charts.bars("Cells by predicate", counts, "cells"))
    lead = f"The submitted attack plays against the guardrail “{part.opponent}”."
    lead += _means(worlds, "" if restricted else "steps and candidates")
    return Section("offense", "Offense", tuple(blocks), lead)


def _understood(part: OffensePart) -> tuple[Fact, ...]:
    heard = part.understood
    if heard is None:
        return ()
    said = f"{number(heard.understood)} of {many(heard.messages, 'message', 'messages')}"
    prose = (
        f"; the agent took this one for prose: {printable(heard.example)}" if heard.example else ""
    )
    return (Fact("Understood", said + prose),)


def _volume(part: OffensePart) -> tuple[Fact, ...]:
    """Return what the attack itself decides; a restricted report does not say it."""
    return (
        Fact("Findings", f"{number(part.findings)}, including repeated ones"),
        Fact("Candidates", f"the attack returned {part.candidates}{_refused(part)}"),
        Fact("Steps", _of_budget(part.steps, part.budget)),
    )


def _refused(part: OffensePart) -> str:
    listed = ", ".join(f"{count} {reason}" for reason, count in part.refused.items())
    return f"; the judge refused: {listed}" if listed else ""


def _unverified(part: OffensePart) -> Iterator[Fact]:
    if part.unverified:
        first = part.unverified[0]
        count = len(part.unverified)
        yield Fact(
            "Unverified", f"{count}, not scored; candidate {first.candidate}: {first.reason}"
        )


def _model(use: ModelUse) -> Iterator[Fact]:
    """Describe the language model that was the agent."""
    yield Fact("Agent", f"{use.name} ({use.manner})")
    if use.server:
        yield Fact("Server", use.server)
    yield Fact("Requests", _of_budget(use.requests, use.budget))
    yield Fact("Tokens", f"{use.prompt_tokens:,} in, {use.completion_tokens:,} out")
    if use.cost is not None:
        yield Fact("Cost", f"${use.cost:.2f}")
    unusual = {
        "repaired": use.repaired,
        "without an action": use.no_action,
        "refusals": use.refusals,
        "extra calls dropped": use.dropped_calls,
    }
    listed = ", ".join(f"{name}: {count:,}" for name, count in unusual.items() if count)
    yield Fact("Replies", listed or "every reply was a valid action")
    yield Fact("Record", use.record, code=True)


def defense_section(part: DefensePart, *, restricted: bool, worlds: int) -> Section:
    """Describe the defense match, or the means over several `worlds` of an official run."""
    blocks: list[Block] = [
        Facts(
            (
                Fact("Breaches", f"{number(part.breaches)} (distinct cores and target classes)"),
                *_searched(part),
                *(() if restricted else (Fact("Steps", _of_budget(part.steps, part.budget)),)),
                Fact("Battery", _battery(part)),
                *_repeats(part.inconsistent, "chains got other decisions from a fresh guardrail"),
            )
        )
    ]
    if part.faults:
        texts = tuple(fault.text for fault in part.faults)
        blocks.append(Note("Errors in the guardrail; each one denies its call", "bad", texts))
    if part.found:
        blocks.append(core_matrix("Cores that got through", part.found, "held"))
    found = Findings(part.found, scored=False)
    blocks.extend(_found(found, part.breaches, restricted=restricted))
    if part.breaches_by_predicate:
        counts = _by_predicate(part.breaches_by_predicate)
        blocks.append(charts.bars("Breaches by predicate", counts, "breaches", color=charts.BAD))
    blocks.extend(_search(part))
    lead = f"The attack “{part.opponent}” plays against the submitted guardrail."
    lead += _means(worlds, "" if restricted else "steps")
    return Section("defense", "Defense", tuple(blocks), lead)


def _battery(part: DefensePart) -> str:
    return (
        f"{part.battery.chains:,} chains that every guardrail meets "
        f"(built once, with {part.battery.steps:,} steps)"
    )


def _found(block: Findings, counted: float, *, restricted: bool) -> Iterator[Block]:
    if block.findings:
        yield block
    elif not counted:
        yield Note("Nothing was found.", "quiet")
    elif restricted:
        yield Note("A restricted report does not show the chains.", "quiet")


def core_matrix(caption: str, found: Sequence[Finding], empty: str) -> Matrix:
    """Return all possible cores, by predicate and sink in rows and by source in columns."""
    cores = {breach[:3] for breach in possible_breaches()}
    sources = [source for source in SourceKind if any(core[1] == source for core in cores)]
    ids: dict[tuple[str, ...], list[str]] = {}
    for finding in found:
        ids.setdefault((finding.predicate, finding.source, finding.sink), []).append(finding.id)
    rows = tuple(
        (
            f"{spoken(predicate)}, {sink}",
            tuple(
                Spot(
                    tuple(ids.get((predicate, source, sink), ())),
                    possible=(predicate, source, sink) in cores,
                )
                for source in sources
            ),
        )
        for predicate in Predicate
        for sink in Sink
        if any(core[0] == predicate and core[2] == sink for core in cores)
    )
    return Matrix(caption, tuple(sources), rows, empty)


def _searched(part: DefensePart) -> tuple[Fact, ...]:
    """Return how far the search came; a restricted report does not say."""
    reached = f"{part.cells:,} cells of the search in {part.interactions:,} interactions"
    return (Fact("Search", reached),) if part.interactions else ()


def _search(part: DefensePart) -> Iterator[Block]:
    if part.archive:
        yield Row((archive_by_documents(part.archive), archive_by_effect(part.archive)))
    if part.curve:
        cells = [(point.steps, point.cells) for point in part.curve]
        claims = [(point.steps, point.claims) for point in part.curve]
        yield Row(
            (
                charts.line("Cells of the search over steps", cells, "steps", "cells"),
                charts.line("Claims over steps", claims, "steps", "claims"),
            )
        )


def archive_by_documents(places: Sequence[Place]) -> Plot:
    """Draw the search's archive by depth and by the kinds of documents that were read."""
    kinds = {place: ", ".join(place.read) or "nothing" for place in places}
    common = Counter[str]()
    for place, kind in kinds.items():
        common[kind] += place.cells
    shown = {kind for kind, _ in common.most_common(_GROUPS_SHOWN)}
    grouped = [(kinds[place] if kinds[place] in shown else _OTHERS, place) for place in places]
    return _archive("Cells of the search by depth and documents read", grouped, "documents read")


def archive_by_effect(places: Sequence[Place]) -> Plot:
    """Draw the search's archive by depth and effect; several effects count several times."""
    grouped = [(effect, place) for place in places for effect in place.effects or ("none",)]
    return _archive("Cells of the search by depth and effect", grouped, "effect")


def _archive(title: str, grouped: Sequence[tuple[str, Place]], what: str) -> Plot:
    cells, visits = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    breached: set[tuple[int, str]] = set()
    totals = Counter[str]()
    for name, place in grouped:
        key = (place.depth, name)
        cells[key] += place.cells
        visits[key] += place.visits
        totals[name] += place.cells
        if place.breach:
            breached.add(key)
    named = sorted(totals, key=lambda name: (name == _OTHERS, -totals[name], name))
    order = {name: position for position, name in enumerate(named)}
    rows = [
        {
            "steps taken": _steps_of(depth),
            what: name,
            "cells": count,
            "visits": visits[depth, name],
            "breach": "yes" if (depth, name) in breached else "no",
            "order": order[name],
            "x_order": depth,
        }
        for (depth, name), count in sorted(cells.items(), key=lambda item: str(item[0]))
    ]
    note = "A larger circle stands for more cells. A diamond marks where verified breaches end."
    return charts.bubbles(
        title, rows, x="steps taken", y=what, size="cells", mark="breach", note=note
    )


def _steps_of(level: int) -> str:
    first = level * _STEPS_A_LEVEL
    return f"{first}+" if level >= _LAST_LEVEL else f"{first}–{first + _STEPS_A_LEVEL - 1}"


def benign_section(part: DefensePart, *, restricted: bool) -> Section:
    cards = [
        Card(
            "False positives",
            number(part.false_positives),
            f"{part.benign_trials}",
            "scored",
            share=part.false_positives / max(1, part.benign_trials),
            tone="bad" if part.false_positives else "good",
        ),
        *_share_card("Extended suite", part.extended, "tasks passed; not scored"),
        *_share_card(
            "Utility under attack", part.under_attack, "tasks done without a breach; not scored"
        ),
    ]
    blocks: list[Block] = [Cards(tuple(cards))]
    plots: list[Block] = []
    if part.trials:
        plots.append(trials_by_operation(part.trials))
    elif part.false_positives_by_operation:
        counts = part.false_positives_by_operation
        plots.append(
            charts.bars("False positives by operation", counts, "trials", color=charts.BAD)
        )
    failed = tuple(trial for trial in part.trials if trial.false_positive)
    if failed:
        blocks.append(Trials(failed))
    elif not part.false_positives:
        blocks.append(Note("Every benign task passed.", "good"))
    elif restricted:
        blocks.append(Note("A restricted report does not show the stopped calls.", "quiet"))
    blocks += plots
    lead = "Tasks of ordinary users. A good guardrail lets all of them pass."
    return Section("benign", "Benign tasks", tuple(blocks), lead)


def trials_by_operation(trials: Sequence[TrialRow]) -> Plot:
    """Draw how many trials of each benign operation passed, and how many failed."""
    counts: dict[str, Counter[str]] = {}
    for trial in trials:
        outcome = "false positive" if trial.false_positive else "passed"
        counts.setdefault(trial.operation, Counter())[outcome] += 1
    columns = ("operation", "outcome", "trials")
    return charts.stacked_bars("Benign trials by operation", [*counts.items()], columns, _OUTCOMES)


def _share_card(label: str, share: Share | None, note: str) -> tuple[Card, ...]:
    if share is None:
        return ()
    ratio = share.passed / max(1, share.total)
    return (Card(label, f"{share.passed}", f"{share.total}", note, share=ratio),)


def _repeats(count: int, what: str) -> tuple[Fact, ...]:
    return (Fact("Inconsistent", f"{count} {what}"),) if count else ()


def _of_budget(steps: int, budget: int) -> str:
    return f"{steps:,} of {budget:,}"


def _by_predicate(counts: dict[str, float]) -> dict[str, float]:
    return {spoken(predicate): count for predicate, count in counts.items()}
