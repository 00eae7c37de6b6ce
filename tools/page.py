"""Reports as a single HTML page: Jinja2 fills in page.html, matplotlib draws the charts as SVG.

Both libraries come with the extras `picture` and `telemetry`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import jinja2
import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.text import Text

from .errors import ToolError


@dataclass(frozen=True)
class Section:
    """One part of the page: heading, text, chart, table; all but the heading may be empty."""

    title: str
    words: str = ""
    picture: str = ""  # SVG
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    more: int = 0  # how many rows were left out
    numbers: bool = False  # align all columns but the first to the right


def html(title: str, lines: Iterable[str], sections: Iterable[Section]) -> str:
    """The page as text; `lines` are the paragraphs below the title."""
    text = resources.files(__package__).joinpath("page.html").read_text("utf-8")
    template = jinja2.Template(text, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made: str = template.render(title=title, lines=lines, sections=sections)
    return made + "\n"


def svg(figure: Figure) -> str:
    """The figure as an SVG element, the same bytes each time."""
    FigureCanvasSVG(figure)
    for words in figure.findobj(Text):
        words.set_parse_math(False)  # a topic may contain $
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "slotmq"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def write(file: Path, made: bytes) -> None:
    """Write the file as a whole or not at all. ToolError: it cannot be written."""
    partial = file.with_name(f".{file.name}.part")
    try:
        partial.write_bytes(made)
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ToolError(f"{file}: {error.strerror}") from None
