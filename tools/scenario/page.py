"""The answer as one HTML file that needs nothing else: words, curves, tables."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from . import words
from .charts import COLOURS, Chart, charts
from .outcome import Outcome

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 860, 220, 52, 24
_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em;
  color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.1em; margin: 2em 0 .3em }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: .15em .7em; text-align: right; border-bottom: 1px solid #ddd; font-weight: 400 }
th { color: #666 } td:first-child, th:first-child { text-align: left; padding-left: 0 }
div { overflow-x: auto } svg { width: 100%; height: auto } text { font-size: 12px; fill: #555 }
"""


def html(outcome: Outcome) -> str:
    """The page."""
    title = escape(outcome.scenario.title or "slotmq sim")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f"<title>{title}</title><style>\n{_STYLE}</style></head><body>",
            f"<h1>{title}</h1>",
            *(f"<p>{escape(line)}</p>" for line in words.sentences(outcome) if line),
            *(line for chart in charts(outcome) for line in svg(chart)),
            *_tables(outcome),
            "</body></html>\n",
        ]
    )


def _tables(outcome: Outcome) -> Iterator[str]:
    for title, heads, rows in words.tables(outcome):
        if rows:
            yield f"<h2>{escape(title)}</h2><div><table>"
            yield _row("th", heads)
            yield from (_row("td", row) for row in rows)
            yield "</table></div>"


def _row(tag: str, cells: list[str]) -> str:
    inside = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"


def svg(chart: Chart) -> Iterator[str]:
    """One chart: two axes, a line for each row that is not all zero, a legend."""
    yield f"<h2>{escape(chart.title)}, {escape(chart.unit)}</h2>"
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 22}" role="img">'
    for part in range(5):
        value = chart.top * part / 4
        y = _y(value, chart.top)
        yield f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y}" y2="{y}" stroke="#e4e4e4"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:g}</text>'
    last = chart.until
    for part in range(5):
        x, told = _x(last * part / 4, last), _time(last * part / 4)
        anchor = "end" if part == 4 else "middle"
        yield f'<text x="{x}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{told}</text>'
    for at, (name, values) in enumerate(chart.lines.items()):
        yield _line(chart, values, COLOURS[at])
        x = _LEFT + at * 140
        yield f'<rect x="{x}" y="{_HEIGHT + 6}" width="12" height="12" fill="{COLOURS[at]}"/>'
        yield f'<text x="{x + 18}" y="{_HEIGHT + 16}">{escape(name)}</text>'
    yield "</svg>"


def _line(chart: Chart, values: list[float], colour: str) -> str:
    last = chart.until
    points = " ".join(
        f"{_x(second, last):.1f},{_y(value, chart.top):.1f}"
        for second, value in zip(chart.seconds, values, strict=True)
    )
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>'


def _x(second: float, last: float) -> float:
    return _LEFT + (_WIDTH - _LEFT) * second / last


def _y(value: float, top: float) -> float:
    return (_HEIGHT - _BOTTOM - 8) * (1 - value / top) + 8


def _time(second: float) -> str:
    minutes = round(second) // 60
    return f"{minutes // 60}:{minutes % 60:02}:{round(second) % 60:02}"
