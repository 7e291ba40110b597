# SPDX-License-Identifier: Apache-2.0
"""The figure of a claim: the share of its limit that each reported number reaches."""

from matplotlib.figure import Figure

from flitlab.sim.judge.verdict import Check, Verdict
from flitlab.sim.report.figures.style import in_style, log_axis, new_figure

MOST_BARS = 24
"""Numbers that are drawn: of more, those nearest to their limit, or beyond it."""

FAR = 4.0
"""Shares of more than this are on a logarithmic axis."""

POSSIBLE, IMPOSSIBLE = "#0072B2", "#D55E00"
NOT_CARRIED = "#56B4E9"
HATCH = {True: "", False: "///"}
"""Bars beyond the limit are hatched, too: colours alone do not reach everybody."""


@in_style
def figure_of(verdict: Verdict) -> Figure:
    """A bar for each number: of a rate its share of the limit, of a latency the least one over it; 1 is the limit."""
    chosen = sorted(verdict.checks, key=lambda check: (check.possible, -check.share))[:MOST_BARS]
    shown = [check for check in verdict.checks if check in chosen]
    figure = new_figure((6.4, 1.5 + 0.34 * len(shown)))
    ax = figure.add_subplot()
    shares = [check.share for check in shown]
    for place, (check, share) in enumerate(zip(shown, shares, strict=True)):
        colour = IMPOSSIBLE if not check.possible else POSSIBLE if check.verdict_text == check.verdict else NOT_CARRIED
        ax.barh(place, share, color=colour, hatch=HATCH[check.possible], edgecolor="white", height=0.66)
        ax.annotate(
            f"{100 * share:.3g} %{_delivered(check)}", (share, place), (4, 0), textcoords="offset points",
            va="center", fontsize=8,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        )  # fmt: skip
    ax.axvline(1, color="black", linewidth=1.2)
    ax.set_yticks(range(len(shown)), [f"{check.what} {check.reported}" for check in shown], fontsize=8)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    most = max([1.0, *shares])
    if most > FAR:
        log_axis(ax, "x")
        ax.set_xlim(min([0.5, *shares]) / 1.5, most * 2.5)
    else:
        ax.set_xlim(0, 1.18 * most)
    ax.set_xlabel("share of the limit (of a latency: the least one over it); the line is the limit")
    left_out = len(verdict.checks) - len(shown)
    more = f"\n{left_out} numbers further from their limit are not drawn" if left_out else ""
    lost = ", not carried" * any(one.is_short for one in verdict.deliveries)
    ax.set_title(f"{verdict.claim.name}: {verdict.verdict}{lost}{more}", fontsize=9)
    return figure


def _delivered(check: Check) -> str:
    """What a bar says besides of a load that does not arrive."""
    if check.delivery is None or not check.delivery.is_short:
        return ""
    return f", {100 * check.delivery.share:.3g} % of its load"
