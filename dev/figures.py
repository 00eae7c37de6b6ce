"""What tools write into documents: texts between `<!-- NAME:begin -->` and `<!-- NAME:end -->`.

    python -m slotmq_dev.figures

writes those that the sources and docs/figures.json tell: the tables of keys, and what a benchmark
has found. The tools that measure write there too: `bench`, `bench.instructions` into
docs/figures.json; `heap`, `wear` and `emulator.cycles` their own tables.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from slotmq_tools.errors import ToolError

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs/figures.json"


def get(text: str, name: str) -> str:
    """What stands between the markers of this name. ToolError: they are not there, once each."""
    return _parts(text, name)[1].strip("\n")


def put(text: str, name: str, body: str) -> str:
    """The text with this between the markers. ToolError: they are not there, once each."""
    before, _, after = _parts(text, name)
    return f"{before}\n{body}\n{after}"


def write(file: Path, **bodies: str) -> None:
    """Write each of them between the markers of its name."""
    text = file.read_text()
    for name, body in bodies.items():
        text = put(text, name, body)
    file.write_text(text)


def _parts(text: str, name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, _, rest = text.partition(begin)
    body, _, after = rest.partition(end)
    if (text.count(begin), text.count(end), rest.count(end)) != (1, 1, 1):
        raise ToolError(f"{begin} and {end} must stand around the text, once")
    return before + begin, body, end + after


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """A table in Markdown; numbers: of all columns but the first."""
    rule = ["---", *(["---:" if numbers else "---"] * (len(columns) - 1))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, rule, *rows))


def measured() -> dict[str, Any]:
    """docs/figures.json."""
    found: dict[str, Any] = json.loads(DATA.read_text())
    return found


def keep(part: str, found: dict[str, Any]) -> None:
    """Add these figures to a part of docs/figures.json, and write what is made of them."""
    data = measured()
    data[part] = {**data[part], **found}
    DATA.write_text(json.dumps(data, indent=1) + "\n")
    main()


def made() -> dict[str, dict[str, str]]:
    """The texts that this program writes: by document and marker."""
    from . import keys
    from .bench import page

    return {"docs/configure.md": keys.tables(), **page.texts(measured())}


def main() -> None:
    """Write them."""
    for name, bodies in made().items():
        write(ROOT / name, **bodies)


if __name__ == "__main__":
    main()
