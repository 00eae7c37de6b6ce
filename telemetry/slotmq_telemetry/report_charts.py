"""The charts of the report, as specifications of Vega-Lite made with Altair (tools/page.py)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from slotmq_tools import cache

Row = dict[str, Any]
Spec = dict[str, Any]
RECORDED, QUIET, LOST, OFF, HARVESTED = STATES = (
    "recorded", "up, without messages", "lost", "off or restarted", "harvested",
)  # fmt: skip
PALETTE = (  # of boards, one after the other
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b79a20", "#b279a2", "#9d755d",
    "#7b6fd0", "#d67195", "#2f6f4f", "#8cb4e0", "#a0522d", "#88d27a", "#6b6ecf", "#ffbf79",
    "#439894", "#ff9d98", "#79706e", "#d8b5a5",
)  # fmt: skip
_COLOURS = ("#2f6f4f", "#a9cdb8", "#c8372d", "#9a9a9a", "#2b5fa8")
_HEIGHTS = {RECORDED: 14, QUIET: 14, LOST: 14, OFF: 3}  # pixels of a bar
VEGA_LITE = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]  # as Altair writes it
CROWD = 5  # boards; bands of more hide each other
_LIMIT = "containerSize()[0] < 600 ? 100 : 220"  # pixels of a board's name
LEGEND = 12  # boards; a legend of more would be larger than the chart
_SHOWN = "(!shown.length || indexof(shown, datum.board) >= 0)"
_UTC = "utcFormat({}, '%Y-%m-%d %H:%M:%S')"
# Days and hours; a day where it begins.
_LABEL = (
    "utcFormat(datum.value, until - since > 2.6e8 || !(datum.value % 864e5) ? '%d %b'"
    " : until - since > 3e5 ? '%H:%M' : '%H:%M:%S')"
)


def program() -> str:
    """The JavaScript that draws them. It takes seconds to put together, so it is kept."""

    def fill(folder: Path) -> None:
        made = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VEGA_LITE)
        (folder / "vega.js").write_text(made, "utf-8")

    made = cache.folder(f"vega-{version('vl-convert-python')}-{VEGA_LITE}", fill) / "vega.js"
    return made.read_text("utf-8").replace("</script", "<\\/script")


def lines(
    rows: Sequence[Row], boards: Sequence[str], since: int, until: int, *, bands: bool
) -> Spec:
    """`mean` of each board over time, with min and max as a band; rows of report_series.runs.

    `boards` are those of all charts: each has its colour in all."""
    there = {row["board"] for row in rows}
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(boards) if name in there}
    made = _lines(tuple(colours.items()), len(boards) > 1, bands)
    return _filled(made, [_short(row) for row in rows], since, until)


@lru_cache
def _lines(colours: tuple[tuple[str, str], ...], is_one_of_many: bool, bands: bool) -> Spec:
    legend = _legend(symbolType="stroke") if is_one_of_many and len(colours) <= LEGEND else None
    names, values = zip(*colours, strict=True)
    scale = alt.Scale(domain=[*names], range=[*values])
    base = (
        alt.Chart(alt.NamedData("rows"))
        .transform_filter(f"{_SHOWN} && datum.start >= since && datum.start <= until")
        .transform_calculate(time=_UTC.format("datum.start"))
        .encode(
            x=_x("start:T"),
            color=alt.Color("board:N", title=None, legend=legend, scale=scale),
            detail="run:N",
        )
    )
    y, low = (alt.Y(name, title=None, scale=alt.Scale(zero=False)) for name in ("mean:Q", "min:Q"))
    tips = ["board:N", alt.Tooltip("time:N", title="UTC"), alt.Tooltip("mean:Q", title="value")]
    layers = []
    if bands:
        layers = [
            base.mark_area(opacity=0.2 if len(colours) < CROWD else 0.07, clip=True).encode(
                y=low, y2="max:Q"
            )
        ]
        tips[2:] = ["mean:Q", "min:Q", "max:Q", "count:Q"]
    near = alt.selection_point(
        name="near", nearest=True, on="pointerover", clear="pointerout", empty=False
    )
    dots = base.mark_point(filled=True, clip=True).encode(
        y=y, tooltip=tips, size=alt.value(28),
        opacity=alt.condition(near, alt.value(1), alt.value(0)),
    ).add_params(near)  # fmt: skip
    single = base.transform_filter("datum.alone").mark_point(filled=True, clip=True, size=18)
    layers += [base.mark_line(strokeWidth=1.3, clip=True).encode(y=y), single.encode(y=y), dots]
    return _spec(alt.layer(*layers).properties(height=150, width="container"))


def states(rows: Sequence[Row], boards: Sequence[str], since: int, until: int) -> Spec:
    """When each board recorded, lost, was off and was harvested: a line for each board.

    A row has board, state, since, until and text.
    """
    y = alt.Y("board:N", sort=[*boards], title=None, axis=alt.Axis(labelLimit=alt.ExprRef(_LIMIT)))
    colour = alt.Color(
        "state:N", title=None, scale=alt.Scale(domain=[*STATES], range=[*_COLOURS]),
        legend=_legend(symbolType="square"),
    )  # fmt: skip
    base = (
        alt.Chart(alt.NamedData("rows"))
        .transform_filter(_SHOWN)
        .transform_calculate(begins=_UTC.format("datum.since"), ends=_UTC.format("datum.until"))
    )
    tips = [
        "board:N",
        "state:N",
        alt.Tooltip("begins:N", title="from (UTC)"),
        alt.Tooltip("ends:N", title="to"),
        alt.Tooltip("text:N", title="what"),
    ]
    bars = [
        base.transform_filter(alt.datum.state == state)
        .mark_bar(height=_HEIGHTS[state], clip=True, strokeWidth=1)
        .encode(x=_x("since:T"), x2="until:T", y=y, color=colour, stroke=colour, tooltip=tips)
        for state in (OFF, QUIET, RECORDED, LOST)
    ]
    visits = (
        base.transform_filter(alt.datum.state == HARVESTED)
        .transform_filter("datum.since >= since && datum.since <= until")
        .mark_point(shape="triangle-down", filled=True, size=36, opacity=1, yOffset=-10)
        .encode(x=_x("since:T"), y=y, color=colour, tooltip=[*tips[:3], tips[4]])
    )
    made = alt.layer(*bars, visits).properties(height=alt.Step(26), width="container")
    return _filled(_spec(made), rows, since, until)


def _x(name: str) -> alt.X:
    ends = {"domainMin": alt.ExprRef("since"), "domainMax": alt.ExprRef("until")}
    axis = alt.Axis(
        labelOverlap=True, labelExpr=_LABEL, tickCount=alt.ExprRef("max(2, width / 90)")
    )
    return alt.X(name, title=None, axis=axis, scale=alt.Scale(type="utc", nice=False, **ends))


def _legend(**options: Any) -> alt.Legend:
    """In as many columns as there is room for."""
    columns = alt.ExprRef("max(1, floor(containerSize()[0] / 160))")
    return alt.Legend(orient="top", columns=columns, labelLimit=120, symbolOpacity=1, **options)


def _short(row: Row) -> Row:
    """With as many digits as a chart shows."""
    return {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in row.items()}


def _spec(chart: Any) -> Spec:
    made: Spec = (
        chart.configure(font="system-ui, sans-serif", view=alt.ViewConfig(stroke=None))
        .configure_axis(gridColor="#e8e8e8", domainColor="#999", tickColor="#999")
        .to_dict()
    )
    return made


def _filled(spec: Spec, rows: Sequence[Row], since: int, until: int) -> Spec:
    """With its rows, which Altair would look at one by one."""
    values = {"shown": [], "since": since, "until": until}
    params = [{"name": name, "value": value} for name, value in values.items()]
    return {**spec, "params": [*spec.get("params", ()), *params], "data": {"values": [*rows]}}
