"""The result as curves (PNG), or as a page with summary, curves and tables (HTML)."""

from __future__ import annotations

import io

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.text import Text

from .. import page
from . import report
from .outcome import Outcome
from .tracker import BUCKETS
from .usage import CURVES

_COLOURS = ("#2f6f4f", "#d98a1f", "#b3362b", "#3b6ea5", "#7a5195")


def html(outcome: Outcome) -> str:
    """The page."""
    tables = [
        page.Section(title, heads=heads, rows=rows, numbers=True)
        for title, heads, rows in report.tables(outcome)
        if rows
    ]
    curves = page.Section("Curves", picture=_svg(_figure(outcome)))
    lines = filter(None, report.sentences(outcome))
    return page.html(outcome.scenario.title or "slotmq sim", lines, [curves, *tables])


def _svg(figure: Figure) -> str:
    """The figure as an SVG element, the same bytes each time."""
    FigureCanvasSVG(figure)
    for words in figure.findobj(Text):
        words.set_parse_math(False)  # a topic may contain $
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "slotmq"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def png(outcome: Outcome) -> bytes:
    """The picture."""
    figure = _figure(outcome)
    title = "\n".join([outcome.scenario.title, report.delivered(outcome)]).strip()
    figure.suptitle(title, fontsize=10, parse_math=False)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()


def _figure(outcome: Outcome) -> Figure:
    """Messages a second, and how full the tables were."""
    duration = outcome.scenario.duration
    width = max(1, -(-duration // BUCKETS))
    count = -(-duration // width)
    times = [at * width for at in range(count)]
    sizes = {table.name: table.size for table in outcome.tables}
    rates = dict.fromkeys(("delivered", "late", "lost"), 1000 / width)
    shares = {name: 100 / sizes[name] for name in CURVES if sizes[name]}
    figure = Figure(figsize=(10, 7), layout="constrained")
    charts = (("Messages a second", rates), ("How full the tables were, %", shares))
    for axes, (title, factors) in zip(figure.subplots(len(charts), 1), charts, strict=True):
        for (name, factor), colour in zip(factors.items(), _COLOURS, strict=False):
            values = [value * factor for value in outcome.curves[name][:count]]
            axes.plot(times, values, label=name, color=colour, linewidth=1.2)
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlim(0, duration)
        axes.set_xticks(range(0, duration + 1, max(1, duration // 4000) * 1000))  # whole seconds
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda ms, _: report.clock(round(ms)))
        axes.legend(fontsize=8, loc="upper left")
        axes.grid(alpha=0.3)
    return figure
