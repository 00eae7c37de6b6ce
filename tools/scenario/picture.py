"""The curves as PNG, drawn by matplotlib: the extra `picture`."""

from __future__ import annotations

import io
from importlib import util

from ..errors import ToolError
from . import words
from .charts import COLOURS, charts
from .outcome import Outcome


def check() -> None:
    """ToolError: there is no matplotlib."""
    if util.find_spec("matplotlib") is None:
        raise ToolError(
            "a PNG needs matplotlib: pip install 'slotmq[picture]'; a .html needs nothing more"
        )


def png(outcome: Outcome) -> bytes:
    """The picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = charts(outcome)
    figure = Figure(figsize=(10, 7), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(
        "\n".join([outcome.scenario.title, words.delivered(outcome)]).strip(), fontsize=10
    )
    for axes, chart in zip(figure.subplots(len(shown), 1), shown, strict=True):
        for (name, values), colour in zip(chart.lines.items(), COLOURS, strict=False):
            axes.plot(chart.seconds, values, label=name, color=colour, linewidth=1.2)
        axes.set_title(f"{chart.title}, {chart.unit}", fontsize=10, loc="left")
        axes.set_ylim(0, chart.top * 1.05)
        axes.set_xlabel("seconds")
        axes.legend(fontsize=8, loc="upper left")
        axes.grid(alpha=0.3)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()
