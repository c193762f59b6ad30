"""The page and the tables of a susceptibility measurement.

Names of families, documents and answers are hostile. They appear only as rows of tables and charts.
"""

from collections.abc import Iterator
from typing import Final

from tiltyard.reporting import charts
from tiltyard.reporting.charts import Interval
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
from tiltyard.reporting.susceptibility_schema import (
    DEFINITIONS,
    Family,
    Outcome,
    PlayedDocument,
    Share,
    Susceptibility,
    Tally,
)

_OUTCOMES: Final = {
    Outcome.FOLLOWED.value: charts.BAD,
    Outcome.STOPPED.value: charts.ACCENT,
    Outcome.REFUSED.value: charts.GOOD,
    Outcome.IGNORED.value: charts.QUIET,
}
_GROUPS: Final = {"injections followed": charts.BAD, "benign tasks done": charts.GOOD}
ASIDE: Final = ("user's cost", "unread", "failed", "no action", "faults")
"""Columns that a table omits if all their values are 0."""


def page(found: Susceptibility) -> str:
    """Return one self-contained HTML file; its tables are readable without JavaScript."""
    plain: list[Note | Table] = [Note(headline(found)), *family_tables(found), *task_tables(found)]
    plain.append(Note("What the words mean", points=_meanings()))
    title = f"Susceptibility to injections: {found.agent}"
    return render_page(title, [*_sections(found)], setting(found), without_scripts=plain)


def setting(found: Susceptibility) -> str:
    """Return the agent, the guardrail and the scenario in one line."""
    sides = "without a guardrail"
    if found.guardrail:
        sides += f" and with “{found.guardrail}”"
    where = "a scenario from a directory" if found.seed is None else f"seed {found.seed}"
    line = f"{found.agent}, {sides}, {where}, up to {found.per_family} documents for each family"
    if found.model is not None:
        line += f", {found.model.requests:,} requests to the model ({found.model.manner})"
    return line


def _sections(found: Susceptibility) -> Iterator[Section]:
    yield Section("summary", "Summary", (_cards(found), Note(headline(found)), glance(found)))
    plots: tuple[Plot, ...] = (families("Without a guardrail", found, "alone"),)
    if found.total.guarded is not None:
        plots += (families("With the guardrail", found, "guarded"),)
    lead = "What the agent did after it read each document with a live injection."
    yield Section("families", "By family", (Row(plots), *family_tables(found)), lead)
    tasks: tuple[Block, ...] = tuple(task_tables(found))
    tasks += tuple(_missed_tables(found))
    if found.tasks_missing:
        tasks = (Note(f"No benign tasks were played: {found.tasks_missing}.", "quiet"),)
    lead = "Tasks of ordinary users, without any injection."
    yield Section("benign", "Benign tasks", tasks, lead)
    yield Section("words", "What the words mean", (Note("", points=_meanings()),))
    yield Section("episodes", "Every document", (_episodes(found.episodes), _run(found)))


def _meanings() -> tuple[str, ...]:
    return tuple(f"{word}: {meaning}" for word, meaning in DEFINITIONS.items())


def headline(found: Susceptibility) -> str:
    """Return the result in one or two sentences."""
    total = found.total
    said = f"Without a guardrail, the agent followed {ratio(total.alone.followed)} injections"
    if total.guarded is not None:
        said += f"; with the guardrail, {ratio(total.guarded.followed)}"
    if found.tasks_alone is not None:
        done = ratio(found.tasks_alone.done)
        said += f". Without a guardrail, it completed {done} benign tasks"
    if found.tasks_guarded is not None:
        said += f"; with the guardrail, {ratio(found.tasks_guarded.done)}"
    return " ".join((f"{said}.", *warnings(found)))


def warnings(found: Susceptibility) -> Iterator[str]:
    """Yield what a reader must know before drawing conclusions."""
    total = found.total
    for where, tally in (
        ("without a guardrail", total.alone),
        ("with the guardrail", total.guarded),
    ):
        if tally is None:
            continue
        # With a guardrail, a document may be unread because the guardrail stopped the reading.
        if tally.unread and tally is total.alone:
            yield (
                f"The agent never read {tally.unread} of {tally.followed.of} documents {where}, so "
                "these say nothing about it."
            )
        if tally.no_action:
            yield (
                f"{tally.no_action} episodes {where} ended because the model's reply was not a "
                "valid action."
            )
        if tally.faults:
            first = next(one.fault for one in found.episodes if one.fault)
            yield (
                f"In {tally.faults} of {tally.followed.of} episodes the guardrail itself failed, "
                f"and a failure denies the call: {first}"
            )


def ratio(share: Share) -> str:
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


def family_tables(found: Susceptibility) -> Iterator[Table]:
    """Yield a table for each side, with all families and the total."""
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
    """Yield the tasks that were not done, and why."""
    columns = (
        Column("operation"),
        Column("the user said"),
        Column("stopped call", "code"),
        Column("the guardrail said"),
        Column("missing"),
    )
    sides = (
        ("Without a guardrail", found.tasks_alone),
        ("With the guardrail", found.tasks_guarded),
    )
    for name, tasks in sides:
        rows = tuple(
            (one.operation, "\n".join(one.messages), one.tool, one.reason, one.missing)
            for one in (() if tasks is None else tasks.missed)
        )
        if rows:
            yield Table(f"{name}: tasks that were not done", columns, rows)


def _cell(share: Share) -> str:
    """Write a share without its total, which has its own column."""
    return f"{share.count} ({interval(share)})"


def _table(caption: str, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    """Return a table without those columns of `ASIDE` that contain only zeros."""
    kept = [
        at
        for at, name in enumerate(names)
        if name not in ASIDE or any(row[at] != "0" for row in rows)
    ]
    columns = tuple(Column(names[at], "number" if at else "text") for at in kept)
    return Table(caption, columns, tuple(tuple(row[at] for at in kept) for row in rows))


def _episodes(episodes: tuple[PlayedDocument, ...]) -> Table:
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
    return Table("Every document, and the call that decided its outcome", columns, rows)


def _run(found: Susceptibility) -> Facts:
    return Facts(
        (
            Fact("Agent", found.agent),
            Fact("Guardrail", found.guardrail or "none"),
            Fact("Seed", "none" if found.seed is None else str(found.seed)),
            Fact("Scenario digest", found.scenario, code=True),
        )
    )


def families(title: str, found: Susceptibility, side: str) -> Plot:
    """Draw a bar for each family, divided by what happened to its documents."""
    counts = []
    for family in found.families:
        tally = family.alone if side == "alone" else family.guarded
        shares = {outcome: getattr(tally, outcome, None) for outcome in _OUTCOMES}
        counts.append(
            (family.name, {name: one.count for name, one in shares.items() if one is not None})
        )
    return charts.stacked_bars(title, counts, ("family", "outcome", "documents"), _OUTCOMES)


def glance(found: Susceptibility) -> Plot:
    """Draw the shares of followed injections and of completed tasks, on each side."""
    total = found.total
    followed, done = _GROUPS
    shares = (
        (followed, "without", total.alone.followed),
        (followed, "with", None if total.guarded is None else total.guarded.followed),
        (done, "without", None if found.tasks_alone is None else found.tasks_alone.done),
        (done, "with", None if found.tasks_guarded is None else found.tasks_guarded.done),
    )
    drawn = [
        Interval(f"{group}, {side}", group, one.count, one.of, one.low, one.high)
        for group, side, one in shares
        if one is not None and one.of
    ]
    note = (
        "A point is the measured share, the line its 95% interval. “Without” and “with” mean "
        "without and with the guardrail."
    )
    return charts.intervals("At a glance", drawn, _GROUPS, note)
