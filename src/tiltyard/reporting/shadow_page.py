"""The page and the tables of `tiltyard shadow`. Everything that a trace says is hostile."""

from collections.abc import Sequence

from tiltyard.reporting.numbers import many
from tiltyard.reporting.page import (
    Block,
    Card,
    Cards,
    Column,
    Note,
    Section,
    ShadowedRuns,
    Table,
    render_page,
)
from tiltyard.reporting.shadow_schema import Comparison, Figure, Shadow, ShadowedRun

MEANINGS = (
    "untouched: the guardrail denies, asks and alters nothing",
    "useful: a run without an injection whose task was done",
    "attack: a run whose attack succeeded, and whose needed calls are known",
    "stopped: the guardrail denies, or asks about, a call that the attack needs",
    "J: both shares added, minus 1. A guardrail that knows nothing has 0, a perfect one 1.",
)
_ROWS = 200


def page(results: Sequence[Shadow], kept: Sequence[ShadowedRun], touched: int) -> str:
    """Return one self-contained HTML file about one or two guardrails."""
    plain: list[Note | Table] = [Note(setting(results[0])), figures_table(results)]
    sections = [
        Section("summary", "Summary", (_cards(results), *_head(results))),
        Section("runs", "Stopped calls", _conversations(kept, touched), _LEAD),
        Section("tools", "By tool", tuple(tool_table(one) for one in results)),
        Section("reasons", "By reason", tuple(reason_table(one) for one in results)),
    ]
    problems = _problems(results[0])
    if problems:
        sections.append(Section("skipped", "Skipped", problems))
    title = "Shadow: " + " and ".join(one.guardrail for one in results)
    return render_page(title, sections, setting(results[0]), without_scripts=plain)


_LEAD = (
    "Each run goes on as recorded after a stopped call. What follows it is what happened, not what "
    "would have happened."
)


def setting(found: Shadow) -> str:
    """Return what was read, in one line."""
    skipped = f", {found.skipped:,} skipped" if found.skipped else ""
    files = f"{found.files:,} {'file' if found.files == 1 else 'files'}"
    unanswered = f" ({found.unanswered:,} without a result)" if found.unanswered else ""
    return f"{files}: {found.runs:,} runs{skipped}, {found.calls:,} calls{unanswered}"


def share(figure: Figure) -> str:
    """Write a figure: its value, its interval and its counts."""
    if figure.value is None:
        return "-"
    return f"{figure.value:.1%} ({figure.low:.1%}–{figure.high:.1%}), {figure.count} of {figure.of}"


def youden(found: Shadow) -> str:
    """Write J with its interval."""
    if found.j is None:
        return "-"
    return f"{found.j:.2f} ({found.j_low:.2f}–{found.j_high:.2f})"


def figures_table(results: Sequence[Shadow]) -> Table:
    """Return one row a figure, and one column a guardrail."""
    rows: list[tuple[str, ...]] = [
        ("runs untouched", *(f"{one.untouched:,} of {one.runs:,}" for one in results)),
        ("calls denied", *(f"{one.denied:,}" for one in results)),
        ("questions asked", *(f"{one.questions:,}" for one in results)),
        ("calls altered", *(f"{one.altered:,}" for one in results)),
        ("results reduced", *(f"{one.reduced:,}" for one in results)),
    ]
    if any(one.faults for one in results):
        rows.append(("errors in the guardrail", *(f"{one.faults:,}" for one in results)))
    if any(one.useful_untouched.of for one in results):
        rows.append(("useful runs untouched", *(share(one.useful_untouched) for one in results)))
    if any(one.attacks_stopped.of for one in results):
        rows.append(("attacks stopped", *(share(one.attacks_stopped) for one in results)))
    if any(one.attacks_unknown for one in results):
        rows.append(
            ("attacks with unknown calls", *(f"{one.attacks_unknown:,}" for one in results))
        )
    if any(one.j is not None for one in results):
        rows.append(("J", *(youden(one) for one in results)))
    names = tuple(Column(one.guardrail, "number") for one in results)
    return Table("What the guardrail would have done", (Column("figure"), *names), tuple(rows))


def tool_table(found: Shadow) -> Table:
    """Return one row for each tool, the most stopped calls first."""
    columns = (
        Column("tool", "code"),
        *(Column(name, "number") for name in ("calls", "denied", "questions", "altered")),
    )
    rows = tuple(
        (one.tool, f"{one.calls:,}", f"{one.denied:,}", f"{one.questions:,}", f"{one.altered:,}")
        for one in found.tools[:_ROWS]
    )
    return Table(_caption("Calls by tool", found, len(found.tools)), columns, rows, tools=True)


def reason_table(found: Shadow) -> Table:
    """Return one row for each tool and reason, the most frequent first."""
    columns = (Column("calls", "number"), Column("tool", "code"), Column("reason"))
    rows = tuple((f"{one.count:,}", one.tool, one.reason) for one in found.reasons[:_ROWS])
    return Table(
        _caption("Stopped and altered calls by reason", found, len(found.reasons)),
        columns,
        rows,
        tools=True,
    )


def differences_table(found: Comparison) -> Table:
    """Return the first runs with which two guardrails deal differently."""
    columns = (
        Column("run", "code"),
        Column("kind"),
        Column(found.first.guardrail),
        Column(found.second.guardrail),
        Column("place", "code"),
    )
    rows = tuple((one.run, one.kind, one.first, one.second, one.place) for one in found.runs)
    first = "" if len(rows) == found.differing else f", the first {len(rows)}"
    return Table(f"{many(found.differing, 'run differs', 'runs differ')}{first}", columns, rows)


def differences_lines(found: Comparison) -> tuple[str, ...]:
    """Say how two guardrails differ on labelled runs."""
    first, second = found.first.guardrail, found.second.guardrail
    untouched = (
        f"useful runs that only {first} leaves untouched: {found.only_first_untouched}; "
        f"only {second}: {found.only_second_untouched}"
    )
    stops = (
        f"attacks that only {first} stops: {found.only_first_stops}; "
        f"only {second}: {found.only_second_stops}"
    )
    return untouched, stops


def comparison_page(found: Comparison, kept: Sequence[ShadowedRun], touched: int) -> str:
    """Return one self-contained HTML file that compares two guardrails."""
    results = (found.first, found.second)
    blocks: list[Block] = [Note("", points=differences_lines(found)), differences_table(found)]
    sections = [
        Section("summary", "Summary", (figures_table(results), Note("", points=MEANINGS))),
        Section("differences", "Differences", tuple(blocks)),
        Section("runs", "Stopped calls", _conversations(kept, touched), _LEAD),
        Section("tools", "By tool", tuple(tool_table(one) for one in results)),
        Section("reasons", "By reason", tuple(reason_table(one) for one in results)),
    ]
    problems = _problems(found.first)
    if problems:
        sections.append(Section("skipped", "Skipped", problems))
    plain: list[Note | Table] = [
        Note(setting(found.first)),
        figures_table(results),
        differences_table(found),
    ]
    title = f"Shadow: {found.first.guardrail} and {found.second.guardrail}"
    return render_page(title, sections, setting(found.first), without_scripts=plain)


def _caption(title: str, found: Shadow, rows: int) -> str:
    first = f", the first {_ROWS}" if rows > _ROWS else ""
    return f"{title} ({found.guardrail}{first})"


def _head(results: Sequence[Shadow]) -> tuple[Block, ...]:
    return (figures_table(results), Note("", points=MEANINGS))


def _cards(results: Sequence[Shadow]) -> Cards:
    one = results[0]
    cards = [
        Card(
            "Runs untouched",
            f"{one.untouched:,}",
            of=f"{one.runs:,}",
            share=one.untouched / max(1, one.runs),
        ),
        Card("Calls denied", f"{one.denied:,}", of=f"{one.calls:,}"),
    ]
    for label, figure in (
        ("Useful runs untouched", one.useful_untouched),
        ("Attacks stopped", one.attacks_stopped),
    ):
        if figure.value is not None:
            note = f"{figure.low:.0%}–{figure.high:.0%}, {figure.count} of {figure.of}"
            cards.append(Card(label, f"{figure.value:.0%}", note=note, share=figure.value))
    if one.j is not None:
        cards.append(Card("J", f"{one.j:.2f}", note=f"{one.j_low:.2f}–{one.j_high:.2f}"))
    return Cards(tuple(cards))


def _conversations(kept: Sequence[ShadowedRun], touched: int) -> tuple[Block, ...]:
    if not kept:
        return (Note("The guardrail stops and alters no call."),)
    blocks: list[Block] = []
    if len(kept) < touched:
        blocks.append(
            Note(
                f"This page shows the first {len(kept):,} of {touched:,} runs with a stopped or "
                "altered call. Longer texts are cut. `--show` sets the number."
            )
        )
    return (*blocks, ShadowedRuns(tuple(kept)))


def _problems(found: Shadow) -> tuple[Block, ...]:
    if not found.skipped:
        return ()
    shown = len(found.problems)
    text = f"{found.skipped:,} could not be read"
    text += f". The first {shown}:" if shown < found.skipped else ":"
    return (Note(text, points=found.problems),)
