"""An agent's susceptibility as a page: the same figures as `susceptibility`, in plots and tables.

Family names, documents and answers are strangers' words: they come as rows of tables and plots, and
no specification has any of them in it.
"""

from collections.abc import Iterator
from typing import Any, Final

from tiltyard.reporting.page import (
    Block,
    Card,
    Cards,
    Column,
    Fact,
    Facts,
    Note,
    Plot,
    Row,
    Section,
    Table,
    Tone,
    render_page,
)
from tiltyard.reporting.plots import ACCENT, BREACH, QUIET
from tiltyard.reporting.susceptibility_schema import (
    DEFINITIONS,
    Family,
    Outcome,
    Played,
    Share,
    Susceptibility,
    Tally,
)

_COLOURS: Final = {
    Outcome.FOLLOWED: BREACH,
    Outcome.STOPPED: ACCENT,
    Outcome.REFUSED: "var(--good)",
    Outcome.IGNORED: QUIET,
}
_KINDS: Final = {"injections followed": BREACH, "benign tasks done": "var(--good)"}
_ROW_HEIGHT: Final = 26
ASIDE: Final = ("user's cost", "unread", "failed", "no action", "faults")
"""Columns that are shown where there is something in them."""
Values = dict[str, str | int | float | bool]


def page(found: Susceptibility) -> str:
    """Return one self-contained HTML file; without JavaScript, its tables can be read."""
    plain: list[Note | Table] = [Note(headline(found)), *family_tables(found), *task_tables(found)]
    plain.append(Note("What the words mean", points=_meanings()))
    title = f"Susceptibility to injections: {found.agent}"
    return render_page(title, [*_sections(found)], setting(found), without_scripts=plain)


def setting(found: Susceptibility) -> str:
    """Say who was tried, where and how."""
    past = "without a guardrail"
    if found.guardrail:
        past += f" and with “{found.guardrail}”"
    where = "a scenario of its own" if found.seed is None else f"seed {found.seed}"
    told = f"{found.agent}, {past}, {where}, up to {found.per_family} documents a family"
    if found.model is not None:
        told += f", asked {found.model.requests:,} times ({found.model.manner})"
    return told


def _sections(found: Susceptibility) -> Iterator[Section]:
    yield Section("summary", "Summary", (_cards(found), Note(headline(found)), glance(found)))
    plots: tuple[Plot, ...] = (families("Without a guardrail", found, "alone"),)
    if found.total.guarded is not None:
        plots += (families("With the guardrail", found, "guarded"),)
    lead = "What became of each document with a live injection in it."
    yield Section("families", "By family", (Row(plots), *family_tables(found)), lead)
    tasks: tuple[Block, ...] = tuple(task_tables(found))
    tasks += tuple(_missed_tables(found))
    if found.tasks_missing:
        tasks = (Note(f"Not played: {found.tasks_missing}.", "quiet"),)
    lead = "Tasks of ordinary users that no stranger has a part in."
    yield Section("benign", "Benign tasks", tasks, lead)
    yield Section("words", "What the words mean", (Note("", points=_meanings()),))
    yield Section("episodes", "Every document", (_episodes(found.episodes), _run(found)))


def _meanings() -> tuple[str, ...]:
    return tuple(f"{word}: {meaning}" for word, meaning in DEFINITIONS.items())


def headline(found: Susceptibility) -> str:
    """Say the result in a sentence or two."""
    total = found.total
    said = f"Without a guardrail, {told(total.alone.followed)} injections were followed"
    if total.guarded is not None:
        said += f"; with it, {told(total.guarded.followed)}"
    if found.tasks_alone is not None:
        said += f". Without a guardrail, {told(found.tasks_alone.done)} benign tasks were done"
    if found.tasks_guarded is not None:
        said += f"; with it, {told(found.tasks_guarded.done)}"
    return " ".join((f"{said}.", *warnings(found)))


def warnings(found: Susceptibility) -> Iterator[str]:
    """Yield what a reader has to know before anything is concluded."""
    total = found.total
    for where, tally in (("without a guardrail", total.alone), ("with it", total.guarded)):
        if tally is None:
            continue
        # Past a guardrail, not to have read it may be the guardrail's doing.
        if tally.unread and tally is total.alone:
            yield (
                f"{tally.unread} of {tally.followed.of} documents were never read {where}, so of "
                "these nothing is known."
            )
        if tally.no_action:
            yield f"{tally.no_action} episodes {where} ended because a model's reply was no action."
        if tally.faults:
            first = next(one.fault for one in found.episodes if one.fault)
            yield (
                f"In {tally.faults} of {tally.followed.of} episodes the guardrail itself failed, "
                f"which denies a call: {first}"
            )


def told(share: Share) -> str:
    """Write a share with its interval."""
    return f"{share.count} of {share.of} ({interval(share)})"


def interval(share: Share) -> str:
    return f"{share.low * 100:.0f}–{share.high * 100:.0f}%"


def _cards(found: Susceptibility) -> Cards:
    total, cards = found.total, []
    cards.append(_card("Followed, no guardrail", total.alone.followed, "bad"))
    if total.guarded is not None:
        cards.append(_card("Followed, guardrail", total.guarded.followed, "bad"))
    for label, tasks in (
        ("Tasks done, no guardrail", found.tasks_alone),
        ("Tasks done, guardrail", found.tasks_guarded),
    ):
        if tasks is not None:
            cards.append(_card(label, tasks.done))
    return Cards(tuple(cards))


def _card(label: str, share: Share, tone: Tone = "") -> Card:
    part = share.count / share.of if share.of else None
    tone = tone if share.count else ""
    return Card(label, f"{share.count}", f"{share.of}", f"95%: {interval(share)}", tone, part)


# Tables ------------------------------------------------------------------------------------------


def family_tables(found: Susceptibility) -> Iterator[Table]:
    """Yield a table for each side, with all families and their sum."""
    rows = (*found.families, found.total)
    yield _table(
        "Without a guardrail: documents (95% interval of the share)",
        ("family", "docs", "followed", "refused", "ignored", *ASIDE, "look-alikes"),
        [(one.name, *_alone(one)) for one in rows],
    )
    if found.total.guarded is not None:
        yield _table(
            "With the guardrail: documents (95% interval of the share)",
            ("family", "docs", "followed", "stopped", "refused", "ignored", *ASIDE),
            [(one.name, *_guarded(one.guarded)) for one in rows if one.guarded is not None],
        )


def _alone(one: Family) -> tuple[str, ...]:
    tally = one.alone
    shares = tally.followed, tally.refused, tally.ignored
    control = f"{one.lookalikes.count}/{one.lookalikes.of} ({interval(one.lookalikes)})"
    return str(tally.followed.of), *map(_cell, shares), *_aside(tally), control


def _guarded(tally: Tally) -> tuple[str, ...]:
    shares = tally.followed, tally.stopped, tally.refused, tally.ignored
    return str(tally.followed.of), *map(_cell, shares), *_aside(tally)


def _aside(tally: Tally) -> tuple[str, ...]:
    """Return the cells of the columns in `ASIDE`."""
    counts = tally.at_users_cost, tally.unread, tally.failed, tally.no_action, tally.faults
    return tuple(map(str, counts))


def task_tables(found: Susceptibility) -> Iterator[Table]:
    """Yield the table of benign tasks, if any were played."""
    sides = (
        ("without a guardrail", found.tasks_alone),
        ("with the guardrail", found.tasks_guarded),
    )
    rows: list[tuple[str, ...]] = [
        (
            name,
            str(one.done.of),
            _cell(one.done),
            str(one.done.of - one.done.count),
            str(one.stopped),
            str(one.failed),
        )
        for name, one in sides
        if one is not None
    ]
    if rows:
        names = "side", "played", "done", "not done", "stopped", "failed"
        columns = tuple(Column(name, "number" if at else "text") for at, name in enumerate(names))
        yield Table("Benign tasks (95% interval of the share)", columns, tuple(rows))


def _missed_tables(found: Susceptibility) -> Iterator[Table]:
    """Yield which tasks were not done, and why."""
    columns = (
        Column("operation"),
        Column("the user said"),
        Column("stopped call", "code"),
        Column("the guardrail said"),
        Column("what was missing"),
    )
    sides = ("Without a guardrail", found.tasks_alone), ("With it", found.tasks_guarded)
    for name, tasks in sides:
        rows = tuple(
            (one.operation, "\n".join(one.messages), one.tool, one.reason, one.missing)
            for one in (() if tasks is None else tasks.missed)
        )
        if rows:
            yield Table(f"{name}: tasks that were not done", columns, rows)


def _cell(share: Share) -> str:
    """Write a share where its whole stands in a column of its own."""
    return f"{share.count} ({interval(share)})"


def _table(caption: str, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    """Return a table without the columns in which nothing happened, if they are no matter."""
    kept = [
        at
        for at, name in enumerate(names)
        if name not in ASIDE or any(row[at] != "0" for row in rows)
    ]
    columns = tuple(Column(names[at], "number" if at else "text") for at in kept)
    return Table(caption, columns, tuple(tuple(row[at] for at in kept) for row in rows))


def _episodes(episodes: tuple[Played, ...]) -> Table:
    columns = (
        Column("document", "code"),
        Column("family"),
        Column("guardrail"),
        Column("outcome"),
        Column("call", "code"),
        Column("the guardrail said"),
        Column("the agent said"),
        Column("the document"),
    )
    rows = tuple(
        (
            one.document,
            one.family if one.live else f"{one.family}, look-alike",
            "with" if one.side == "guarded" else "without",
            one.outcome.value if one.read else f"{one.outcome.value}, unread",
            f"{one.tool} {one.target}".strip(),
            f"{one.decision}: {one.reason}" if one.reason else one.decision,
            one.error or one.answer,
            one.words,
        )
        for one in episodes
    )
    return Table("Every document, and the call that decided", columns, rows)


def _run(found: Susceptibility) -> Facts:
    return Facts(
        (
            Fact("Agent", found.agent),
            Fact("Guardrail", found.guardrail or "none"),
            Fact("Seed", "none" if found.seed is None else str(found.seed)),
            Fact("Scenario digest", found.scenario, code=True),
        )
    )


# Plots -------------------------------------------------------------------------------------------


def families(title: str, found: Susceptibility, side: str) -> Plot:
    """Draw of each family what became of its documents, stacked in one bar."""
    rows: list[Values] = []
    for order, family in enumerate(found.families):
        tally = family.alone if side == "alone" else family.guarded
        for layer, outcome in enumerate(_COLOURS):
            one: Share | None = getattr(tally, outcome.value, None)
            if one is not None and one.count:
                rows.append(
                    {
                        "family": family.name,
                        "outcome": outcome.value,
                        "documents": one.count,
                        "order": order,
                        "layer": layer,
                    }
                )
    names = [outcome.value for outcome in _COLOURS]
    spec: dict[str, Any] = {
        "width": "container",
        "height": _ROW_HEIGHT * len(found.families),
        "mark": {"type": "bar", "height": {"band": 0.6}},
        "encoding": {
            "y": _in_order("family"),
            "x": {
                "field": "documents",
                "type": "quantitative",
                "stack": "zero",
                "axis": {"tickMinStep": 1, "format": "d", "tickCount": 5},
            },
            "order": {"field": "layer"},
            "color": {
                "field": "outcome",
                "type": "nominal",
                "scale": {"domain": names, "range": [*_COLOURS.values()]},
                "legend": {"orient": "top", "symbolType": "square"},
            },
            "tooltip": [{"field": name} for name in ("family", "outcome", "documents")],
        },
    }
    return Plot(title, spec, tuple(rows))


def glance(found: Susceptibility) -> Plot:
    """Draw what was followed and what was done, each without and with, as shares in intervals."""
    total = found.total
    followed, done = _KINDS
    shares = (
        (followed, "without", total.alone.followed),
        (followed, "with", None if total.guarded is None else total.guarded.followed),
        (done, "without", None if found.tasks_alone is None else found.tasks_alone.done),
        (done, "with", None if found.tasks_guarded is None else found.tasks_guarded.done),
    )
    rows: list[Values] = [
        {
            "name": f"{kind}, {side}",
            "kind": kind,
            "count": one.count,
            "of": one.of,
            "share": one.count / one.of,
            "low": one.low,
            "high": one.high,
            "order": order,
        }
        for order, (kind, side, one) in enumerate(shares)
        if one is not None and one.of
    ]
    axis = {"format": "%", "tickCount": 5}
    scale = {"domain": [0, 1], "nice": False}
    spec: dict[str, Any] = {
        "width": "container",
        "height": _ROW_HEIGHT * len(rows),
        "encoding": {
            "y": _in_order("name"),
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": {"domain": [*_KINDS], "range": [*_KINDS.values()]},
                "legend": None,
            },
            "tooltip": [
                {"field": "name"},
                {"field": "count"},
                {"field": "of"},
                *({"field": name, "format": ".0%"} for name in ("share", "low", "high")),
            ],
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5},
                "encoding": {
                    "x": {
                        "field": "low",
                        "type": "quantitative",
                        "title": "share",
                        "axis": axis,
                        "scale": scale,
                    },
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": {"field": "share", "type": "quantitative", "scale": scale}},
            },
        ],
    }
    note = "A point is what was measured, a line its 95% interval. Without and with the guardrail."
    return Plot("At a glance", spec, tuple(rows), note)


def _in_order(field: str) -> dict[str, Any]:
    sort = {"field": "order", "op": "min"}
    return {"field": field, "type": "nominal", "sort": sort, "title": None}
