"""Reports as a single HTML page, which needs nothing else: Jinja2 fills in page.html.

Pictures are SVG, or specifications of Vega-Lite that a script of the page draws once they are
scrolled to. Tables sort by a click on a heading. Of long lists the first items are shown. What
belongs to a board can be chosen by board and site. Jinja2 comes with the extras `picture` and
`telemetry`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from .errors import ToolError


@dataclass(frozen=True)
class Chart:
    """A specification of Vega-Lite; `shown`, `since` and `until` are parameters that it may have.

    `shown` has the names of the boards that are chosen, [] all; the others are ms since 1970.
    """

    title: str
    spec: Mapping[str, Any]
    whose: Sequence[str] = ()  # the boards in it


@dataclass(frozen=True)
class Section:
    """One part of the page: heading, text, sentences, charts, table; all but the heading may be
    empty. `whose` names the boards of each sentence or row."""

    title: str
    words: str = ""
    picture: str = ""  # SVG
    charts: Sequence[Chart] = ()
    sentences: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    whose: Sequence[Sequence[str]] = ()
    more: int = 0  # how many rows or sentences were left out
    numbers: bool = False  # align all columns but the first to the right


def html(
    title: str, lines: Iterable[str], sections: Iterable[Section],
    sites: Mapping[str, Sequence[str]] = {}, program: str = "",
) -> str:  # fmt: skip
    """The page as text; `lines` are the paragraphs below the title.

    With `sites`, the boards of each site ("": no site), boards and a time can be chosen. `program`
    is the JavaScript that draws charts.
    """
    folder = resources.files(__package__)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["data"] = _data
    template = environment.from_string(folder.joinpath("page.html").read_text("utf-8"))
    script = folder.joinpath("page.js").read_text("utf-8")
    made: str = template.render(
        title=title, lines=lines, sections=sections, sites=sites, script=script, program=program
    )
    return made + "\n"


def _data(value: Any) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def write(file: Path, made: bytes) -> None:
    """Write the file as a whole or not at all, but into a pipe or a device. ToolError: it cannot
    be written."""
    target = file.resolve()  # a link stays one
    partial = target.with_name(f".{target.name}.part")
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(made)
            return
        partial.write_bytes(made)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ToolError(f"{file}: {error.strerror}") from None
