"""Plots in pages: the Vega-Lite of the reports, beside a table that needs no JavaScript."""

from collections.abc import Sequence

from markupsafe import Markup

from tiltyard.reporting import charts
from tiltyard.reporting.page import Plot, embedded
from tiltyard.service.wire import SubmissionView


def plot_data(plot: Plot) -> Markup:
    """Return a plot as JSON in which an HTML parser finds no markup."""
    return Markup(embedded(plot))  # noqa: S704 - it has no markup


def history_plot(submissions: Sequence[SubmissionView]) -> Plot | None:
    """Draw the final scores of a team's submissions in the order of their uploads."""
    rows: list[charts.Row] = []
    best = 0.0
    for number, one in enumerate(reversed(submissions), 1):
        score = one.shown_score
        if score is None:
            continue
        best = max(best, score)
        rows.append(
            {
                "submission": number,
                "name": one.name,
                "at": f"{one.at:%Y-%m-%d %H:%M} UTC",
                "final": round(score, 2),
                "best so far": round(best, 2),
            }
        )
    if not rows:
        return None
    return charts.history(
        "Final scores of your submissions", rows, x="submission", y="final", best="best so far"
    )
