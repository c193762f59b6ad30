"""The leaderboard as a table, as Markdown and as an HTML page.

`COLUMNS` defines the columns once. The command line, Markdown and the page all use it. To add a
column, add a `LeaderboardColumn` there.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from tiltyard.reporting.leaderboard_schema import Board, Entry, Leaderboard, Standing
from tiltyard.reporting.markdown import bullets, escape, fill, table
from tiltyard.reporting.numbers import figure
from tiltyard.reporting.page import Block, Column, Note, Section, Table, render_page

_DIGITS_SHOWN: Final = 12
_RANKING: Final = (
    "Ranked by final score, then by raw offense points, then by fewer breaches, then by fewer "
    "false positives. Ties share a rank (1, 2, 2, 4)."
)


class LeaderboardColumn(Struct, frozen=True):
    """A column of the leaderboard: its title, how to align it, and its text for a standing."""

    title: str
    kind: Literal["text", "number", "code"]
    text: Callable[[Standing], str]


def _name(standing: Standing) -> str:
    twins = f" (same bytes as {', '.join(standing.same_bytes_as)})"
    return standing.run.name + (twins if standing.same_bytes_as else "")


def _false_positives(standing: Standing) -> str:
    run = standing.run
    return (
        "-"
        if run.benign_trials is None
        else f"{figure(run.false_positives)} of {run.benign_trials}"
    )


COLUMNS: Final = (
    LeaderboardColumn("rank", "number", lambda one: str(one.rank)),
    LeaderboardColumn("name", "text", _name),
    LeaderboardColumn("final", "number", lambda one: figure(one.run.final_score)),
    LeaderboardColumn("offense", "number", lambda one: figure(one.run.offense)),
    LeaderboardColumn("raw", "number", lambda one: figure(one.run.raw)),
    LeaderboardColumn("defense", "number", lambda one: figure(one.run.defense)),
    LeaderboardColumn("breaches", "number", lambda one: figure(one.run.breaches)),
    LeaderboardColumn("false positives", "number", _false_positives),
    LeaderboardColumn("runs", "number", lambda one: str(one.runs)),
    LeaderboardColumn("run", "code", lambda one: one.run.run_id),
    LeaderboardColumn("submission", "code", lambda one: one.run.submission[:_DIGITS_SHOWN]),
)


def titles() -> list[str]:
    return [column.title for column in COLUMNS]


def rows(board: Board) -> list[list[str]]:
    """Return the cells of each standing, in the order of `COLUMNS`."""
    return [[column.text(standing) for column in COLUMNS] for standing in board.standings]


def remarks(board: Leaderboard) -> Iterator[str]:
    """Yield the sentences that a reader needs beside the ranks."""
    if len(board.boards) > 1:
        yield (
            f"These runs belong to {len(board.boards)} leagues. Each league has its own ranks, "
            "because runs with another ruleset, key or version of Tiltyard cannot be compared."
        )
    if not board.boards:
        yield "None of these runs can be compared."
    for word in board.unused:
        yield f"The disqualification {word} matches no run here. Check its spelling."
    for unread in board.unread:
        yield f"Skipped {unread.path}: {unread.reason}"


def markdown(board: Leaderboard) -> str:
    """Return the leaderboard as a Markdown document; names of submissions are escaped."""
    apart = bullets(_line(run, "; ".join(run.why_not)) for run in board.apart)
    return fill(
        "leaderboard.md",
        leagues="\n".join(map(_league, board.boards)),
        not_comparable=f"## Not comparable\n\n{apart}" if apart else "",
        remarks=bullets(map(escape, remarks(board))),
    )


def _league(board: Board) -> str:
    out = bullets(_line(one.run, one.reason) for one in board.disqualified)
    return fill(
        "leaderboard_league.md",
        title=escape(board.league.title),
        standings=table(titles(), [[*map(escape, row)] for row in rows(board)]),
        disqualified=f"Disqualified:\n\n{out}" if out else "",
    )


def _line(run: Entry, reason: str) -> str:
    return f"{escape(run.name)} ({escape(run.run_id)}): {escape(reason)}"


def page(board: Leaderboard, links: Mapping[str, str] | None = None) -> str:
    """Return the leaderboard as one self-contained HTML file.

    `links` has the link to the report of each run, by run id.
    """
    links = links or {}
    sections = [_section(one, at, links) for at, one in enumerate(board.boards, 1)]
    if board.apart:
        listed = [(run, "; ".join(run.why_not)) for run in board.apart]
        blocks = (_listed("Runs that no league ranks", listed, links),)
        sections.append(Section("apart", "Not comparable", blocks))
    said = tuple(remarks(board))
    if said:
        sections.append(Section("remarks", "Remarks", (Note("", points=said),)))
    plain = [block for one in sections for block in one.blocks if isinstance(block, Note | Table)]
    return render_page("Leaderboard", sections, without_scripts=plain)


def _section(board: Board, at: int, links: Mapping[str, str]) -> Section:
    columns = tuple(Column(column.title, column.kind) for column in COLUMNS)
    cells = tuple(map(tuple, rows(board)))
    linked = tuple(links.get(one.run.run_id, "") for one in board.standings)
    standings = Table("Standings", columns, cells, linked, tools=True)
    blocks: list[Block] = [standings, Note(_RANKING, "quiet")]
    if board.disqualified:
        out = [(one.run, one.reason) for one in board.disqualified]
        blocks.append(_listed("Disqualified", out, links))
    return Section(f"league-{at}", f"League {at}", tuple(blocks), board.league.title)


def _listed(caption: str, runs: list[tuple[Entry, str]], links: Mapping[str, str]) -> Table:
    columns = (Column("name"), Column("final", "number"), Column("run", "code"), Column("reason"))
    cells = tuple((run.name, figure(run.final_score), run.run_id, reason) for run, reason in runs)
    linked = tuple(links.get(run.run_id, "") for run, _ in runs)
    return Table(caption, columns, cells, linked, tools=True)
