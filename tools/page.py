"""Reports as one HTML page that needs no other file: page.html, filled in by Jinja2, with pictures
that matplotlib draws. Both come with the extras `picture` and `telemetry`.
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
    """A heading, what to know, a picture or none, and a table."""

    title: str
    words: str = ""
    picture: str = ""  # SVG
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    more: int = 0  # rows that are not shown
    numbers: bool = False  # in all columns but the first?


def html(title: str, lines: Iterable[str], sections: Iterable[Section]) -> str:
    """The page."""
    text = resources.files(__package__).joinpath("page.html").read_text("utf-8")
    template = jinja2.Template(text, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made: str = template.render(title=title, lines=lines, sections=sections)
    return made + "\n"


def svg(figure: Figure) -> str:
    """A picture for a section."""
    FigureCanvasSVG(figure)
    for words in figure.findobj(Text):
        words.set_parse_math(False)  # it is a topic, whatever its dollars enclose
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "slotmq"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def write(file: Path, made: bytes) -> None:
    """All of it or nothing."""
    partial = file.with_name(f".{file.name}.part")
    try:
        partial.write_bytes(made)
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ToolError(f"{file}: {error.strerror}") from None
